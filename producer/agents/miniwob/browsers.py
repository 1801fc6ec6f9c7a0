"""Chromium for the pages of this process: started when needed, ended with the process.

One thread runs an event loop with Playwright's asynchronous interface, and environments call it
from their own threads, so a page that hangs blocks no other. Each Chromium is the child of its own
driver, which ends it when the pipe to this process breaks. So neither of them survives a SIGKILL of
this process.
"""

import asyncio
import atexit
from collections.abc import Coroutine
from contextlib import suppress
from functools import lru_cache
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from producer.agents.miniwob.chromium import Chromium
from producer.environments.environment import EnvironmentFailedError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

PAGES_PER_BROWSER = 16
"""Maximum pages per browser; more pages start another browser."""
EPISODES_PER_BROWSER = 500
"""A browser is replaced after this many episodes, which bounds what Chromium retains of each
page."""
ANSWER_LIMIT_S = 60.0
"""A call that takes longer counts as hung."""
WINDOW_LIMIT_S = 20.0
"""A browser that takes longer to open or close a window is killed."""
T = TypeVar("T")


class Browsers:
    """Browsers of this process. Thread-safe."""

    def __init__(self) -> None:
        self.answer_limit_s = ANSWER_LIMIT_S
        self.window_limit_s = WINDOW_LIMIT_S
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="browsers", daemon=True)
        self._thread.start()
        self._lock = asyncio.Lock()
        self._browsers: list[Chromium] = []
        self._home: dict[BrowserContext, Chromium] = {}
        atexit.register(self.stop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine and return its result.

        Raises EnvironmentFailedError if it fails or takes too long.
        """
        from playwright.async_api import Error

        async def limited() -> T:
            async with asyncio.timeout(self.answer_limit_s):
                return await work

        try:
            return asyncio.run_coroutine_threadsafe(limited(), self._loop).result()
        except TimeoutError as error:
            message = f"the browser did not answer within {self.answer_limit_s:g} s"
            raise EnvironmentFailedError(message) from error
        except (Error, OSError) as error:
            message = f"the browser failed: {str(error).splitlines()[0]}"
            raise EnvironmentFailedError(message) from error

    @property
    def pids(self) -> list[int]:
        """Process ids of the running browsers."""
        return [one.pid for one in self._browsers if one.is_running]

    @property
    def num_open(self) -> int:
        """Number of open windows."""
        return len(self._home)

    async def new_context(self) -> "BrowserContext":
        """Open a window with a fresh profile. `close_context` gives it back."""
        from playwright.async_api import Error

        while True:
            home = await self._reserve()
            try:
                async with asyncio.timeout(self.window_limit_s):
                    context = await home.new_context()
            except BaseException as error:
                home.num_open -= 1
                if isinstance(error, TimeoutError):
                    home.kill()
                if isinstance(error, Error) and home.num_opened > 1:
                    # The browser had ended, and its connection had not noticed yet.
                    home.is_lost = True
                    continue
                raise
            self._home[context] = home
            return context

    async def close_context(self, context: "BrowserContext") -> None:
        """Close the window's pages. Idempotent. A browser that does not answer is killed."""
        from playwright.async_api import Error

        home = self._home.pop(context, None)
        if home is None:
            return
        home.num_open -= 1
        try:
            async with asyncio.timeout(self.window_limit_s):
                await context.close()
        except TimeoutError:
            home.kill()
        except Error:  # the browser has ended, and its pages with it
            pass
        await self._drop_spent()

    async def _reserve(self) -> Chromium:
        """The browser for one more window, which is already counted as open."""
        async with self._lock:
            await self._drop_spent()
            home = min(
                (one for one in self._browsers if _has_room(one)),
                key=lambda one: one.num_open,
                default=None,
            )
            if home is None:
                home = await Chromium.launch()
                self._browsers.append(home)
            home.num_open += 1
            home.num_opened += 1
            return home

    async def _drop_spent(self) -> None:
        """End browsers that have no windows and will get no more, including dead ones."""
        spent = [one for one in self._browsers if not one.num_open and _is_used_up(one)]
        self._browsers = [one for one in self._browsers if one not in spent]
        for one in spent:
            await one.end(self.window_limit_s)

    def stop(self) -> None:
        """End every browser and the thread. Idempotent."""
        atexit.unregister(self.stop)
        if self._loop.is_closed():
            return
        with suppress(EnvironmentFailedError):
            self.call(self._end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self.window_limit_s)
        if not self._thread.is_alive():
            self._loop.close()

    async def _end_all(self) -> None:
        browsers, self._browsers = self._browsers, []
        await asyncio.gather(*(one.end(self.window_limit_s) for one in browsers))


def _is_used_up(browser: Chromium) -> bool:
    return not browser.is_running or browser.is_lost or browser.num_opened >= EPISODES_PER_BROWSER


def _has_room(browser: Chromium) -> bool:
    return not _is_used_up(browser) and browser.num_open < PAGES_PER_BROWSER


@lru_cache(maxsize=1)
def shared_browsers() -> Browsers:
    """The browsers that this process shares."""
    return Browsers()
