"""One page of MiniWoB++ for one episode, in its own browser profile.

The page's clock advances only when actions let it, and its randomness is derived from the seed, so
what it shows is a function of name, seed and actions.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from producer.agents.miniwob.browsers import Browsers
from producer.agents.miniwob.mouse_and_keys import MouseAndKeys
from schemas import actions
from schemas.actions import Action

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

WIDTH_PX, HEIGHT_PX = 160, 210
SETTLE_MS = 500
"""How far an action other than a wait advances the page's clock."""
EPOCH_MS = 1_700_000_000_000
"""The page's time when it is loaded, ms since 1970."""
START_MS = EPOCH_MS + 10_000
EPISODE_MAX_MS = 1_000_000_000
"""So long that the page never ends an episode by time, because speed is not judged."""
SEED_BEFORE_LOAD = "{let s=%d;Math.random=()=>(s=(s*16807)%%2147483647)/2147483647}"
"""Pages also draw random numbers before they are seeded. This is Lehmer's generator."""
START = """([seed, limit]) => {
  if (window.jQuery) jQuery.fx.off = true;
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = limit;
  core.startEpisodeReal();
}"""
STATE = """() => [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON]"""


class PageState(NamedTuple):
    """What the page reports about its episode."""

    is_done: bool
    raw_reward: float
    """The page's reward, -1 to 1, without its decay over time; 0 until the episode is done."""
    reason: str | None
    """Why the page gave this reward, if it says so."""


class EpisodePage:
    """A page with a started episode. Every method runs on the browsers' thread."""

    def __init__(self, browsers: Browsers, context: "BrowserContext", page: "Page") -> None:
        self._browsers = browsers
        self._context = context
        self._page = page
        self._input = MouseAndKeys(page.mouse, page.keyboard, WIDTH_PX, HEIGHT_PX)

    @classmethod
    async def open(cls, browsers: Browsers, url: str, seed: int) -> "EpisodePage":
        """Load the page and start its episode."""
        context = await browsers.new_context()
        try:
            await context.add_init_script(SEED_BEFORE_LOAD % (seed % 2147483646 + 1))
            await context.clock.install(time=EPOCH_MS)
            page = await context.new_page()
            await page.goto(url)
            await context.clock.pause_at(START_MS)
            opened = cls(browsers, context, page)
            await opened.start(seed)
        except BaseException:
            await browsers.close_context(context)
            raise
        return opened

    async def start(self, seed: int) -> None:
        """Start an episode. It replaces the one before."""
        await self.evaluate(START, [str(seed), EPISODE_MAX_MS])
        await self._pass(SETTLE_MS)

    async def close(self) -> None:
        """Close the page and its profile. Idempotent."""
        await self._browsers.close_context(self._context)

    async def utterance(self) -> str:
        """The page's instruction."""
        said = await self.evaluate("() => core.getUtterance()")
        # Some pages also return the fields of their instruction.
        return str(said["utterance"] if isinstance(said, dict) else said)

    async def state(self) -> PageState:
        """What the page reports about its episode."""
        is_done, reward, reason = await self.evaluate(STATE)
        return PageState(bool(is_done), float(reward), None if reason is None else str(reason))

    async def screenshot(self) -> bytes:
        """PNG of the page's 160 x 210 px, RGB, without the caret."""
        return await self._page.screenshot(
            clip={"x": 0, "y": 0, "width": WIDTH_PX, "height": HEIGHT_PX}, animations="disabled"
        )

    async def evaluate(self, script: str, argument: object = None) -> Any:  # noqa: ANN401  # JavaScript's
        """Call a JavaScript function in the page and return its result."""
        return await self._page.evaluate(script, argument)

    async def act(self, action: Action) -> None:
        """Perform the action and let the page's time pass. Raises ActionRefusedError."""
        match action:
            case actions.Wait(duration_s=seconds):
                await self._pass(seconds * 1000)
                return
            case actions.LongPress():
                await self._input.press_mouse(action.x, action.y)
                await self._pass(action.duration_s * 1000)
                await self._input.release_mouse()
            case actions.Screenshot():
                pass
            case _:
                await self._input.perform(action)
        await self._pass(SETTLE_MS)

    async def _pass(self, milliseconds: float) -> None:
        await self._context.clock.run_for(round(milliseconds))
