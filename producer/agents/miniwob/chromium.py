"""One Chromium with the driver that started it, and checks that both are installed."""

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from producer.errors import UsageError
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
"""Options that make screenshots identical at every start, and that disable the network."""
WINDOW_PX: Final = (500, 320)
"""The benchmark's own window size. An episode's screen is the window's top left corner."""
LAUNCH_LIMIT_S: Final = 20.0
"""A browser that takes longer to start has failed."""


def chromium_path() -> str | None:
    """Path of the installed browser; None if there is none."""
    return next((path for path in map(shutil.which, COMMANDS) if path), None)


class Chromium:
    """One browser. Every method runs on the browsers' thread."""

    def __init__(self, playwright: "Playwright", browser: "Browser", pid: int) -> None:
        self._playwright = playwright
        self._browser = browser
        self.pid = pid
        self.num_open = 0
        """Number of open windows."""
        self.num_opened = 0
        """Number of windows opened so far."""
        self.is_lost = False
        """Whether the browser can no longer open windows."""

    @classmethod
    async def launch(cls) -> "Chromium":
        """Start a browser without a window. Raises playwright.async_api.Error."""
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
        """Whether the browser's process is alive."""
        return self._browser.is_connected()

    async def new_context(self) -> "BrowserContext":
        """Open a window with a fresh profile."""
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
        """Kill the process. Calls on its windows then fail."""
        if self.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def end(self, limit_s: float) -> None:
        """Close the browser and its driver. Kills the browser after `limit_s`."""
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
    """Raise UsageError if Playwright or a browser is missing. Checked once per process."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        message = f"Playwright is missing: run {install_command('miniwob')}"
        raise UsageError(message) from error
    if chromium_path() is not None:
        return
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
    if not own.is_file():
        message = (
            "no Chromium is installed: apt-get install chromium, or `playwright install chromium`"
        )
        raise UsageError(message)
