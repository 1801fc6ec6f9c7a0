"""One Chromium with the driver that started it, and what this machine has of both."""

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from producer.errors import NotFoundError
from schemas.distribution import install_command

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

COMMANDS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names of an installed browser; the first that exists is used."""
SWITCHES: Final = {
    "force-device-scale-factor": "1",
    "force-color-profile": "srgb",
    "font-render-hinting": "none",
    "disable-lcd-text": None,
    "disable-gpu": None,
    "disable-partial-raster": None,
    "disable-smooth-scrolling": None,
    "host-resolver-rules": "MAP * ~NOTFOUND",
}
"""Options for the same screenshot bytes at every start, and for no network."""
WINDOW_PX: Final = (500, 320)
"""As the benchmark's own; an episode's screen is its top left corner."""
LAUNCH_LIMIT_S: Final = 20.0
"""A browser that has not started by then has failed."""


def chromium_path() -> str | None:
    """The installed browser; None: there is none."""
    return next((path for path in map(shutil.which, COMMANDS) if path), None)


class Chromium:
    """One browser. Every method runs on the browsers' thread."""

    def __init__(self, playwright: "Playwright", browser: "Browser", pid: int) -> None:
        self._playwright = playwright
        self._browser = browser
        self.pid = pid
        self.num_open = 0
        """Windows that are open."""
        self.num_opened = 0
        """Windows that were ever opened."""
        self.is_lost = False
        """It opens no window any more."""

    @classmethod
    async def launch(cls) -> "Chromium":
        """Start one, without a window. playwright.async_api.Error."""
        from playwright.async_api import async_playwright

        playwright = await async_playwright().start()
        switches = [f"--{key}" + (f"={value}" if value else "") for key, value in SWITCHES.items()]
        try:
            browser = await playwright.chromium.launch(
                executable_path=chromium_path(),
                args=switches,
                timeout=LAUNCH_LIMIT_S * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
            session = await browser.new_browser_cdp_session()
            processes = await session.send("SystemInfo.getProcessInfo")
        except BaseException:
            await playwright.stop()
            raise
        pid = next(one["id"] for one in processes["processInfo"] if one["type"] == "browser")
        return cls(playwright, browser, pid)

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._browser.is_connected()

    async def new_context(self) -> "BrowserContext":
        """A window with a fresh profile."""
        return await self._browser.new_context(
            viewport={"width": WINDOW_PX[0], "height": WINDOW_PX[1]},
            offline=True,
            accept_downloads=False,
            locale="en-US",
            timezone_id="UTC",
            color_scheme="light",
            reduced_motion="reduce",
        )

    def kill(self) -> None:
        """End the process at once; its windows fail."""
        if self.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def end(self, limit_s: float) -> None:
        """Close it and its driver; kill it where that takes longer than so many seconds."""
        from playwright.async_api import Error

        with suppress(Error):
            try:
                async with asyncio.timeout(limit_s):
                    await self._browser.close()
            except TimeoutError:
                self.kill()
            await self._playwright.stop()


@lru_cache(maxsize=1)
def check_browser() -> None:
    """NotFoundError where Playwright or a browser is missing; asked once in a process."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        message = f"Playwright is missing: run {install_command('miniwob')}"
        raise NotFoundError(message) from error
    if chromium_path() is not None:
        return
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
    if not own.is_file():
        message = (
            "no Chromium is installed: apt-get install chromium, or `playwright install chromium`"
        )
        raise NotFoundError(message)
