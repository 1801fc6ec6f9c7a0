"""Performs an agent's actions with Playwright's mouse and keyboard."""

from collections.abc import Sequence
from itertools import pairwise
from math import dist
from typing import TYPE_CHECKING, Final, Literal

from producer.agents.miniwob.keys import combination
from producer.environments.environment import ActionRefusedError
from schemas import actions
from schemas.actions import Action

if TYPE_CHECKING:
    from playwright.async_api import Keyboard, Mouse

BUTTONS: Final[dict[str, Literal["left", "middle", "right"]]] = {
    "left": "left",
    "wheel": "middle",
    "right": "right",
}
PX_PER_MOVE = 4
MAX_MOVES = 5
"""A drag to the next point is split into at most `MAX_MOVES` moves of about `PX_PER_MOVE` pixels,
because pages recognize a drag only after several moves."""


class MouseAndKeys:
    """The mouse and keyboard of one page."""

    def __init__(self, mouse: "Mouse", keyboard: "Keyboard", width_px: int, height_px: int) -> None:
        self._mouse = mouse
        self._keyboard = keyboard
        self._size = (width_px, height_px)

    async def perform(self, action: Action) -> None:
        """Perform the action. Raises ActionRefusedError if mouse and keyboard cannot."""
        match action:
            case actions.Click(button="left" | "right" | "wheel" as button):
                await self._mouse.click(
                    *self._on_screen(action.x, action.y), button=BUTTONS[button]
                )
            case actions.DoubleClick():
                await self._mouse.dblclick(*self._on_screen(action.x, action.y))
            case actions.Move():
                await self._mouse.move(*self._on_screen(action.x, action.y))
            case actions.Drag(path=path):
                await self._drag(path)
            case actions.Swipe():
                await self._drag(((action.x, action.y), (action.to_x, action.to_y)))
            case actions.Scroll():
                await self._mouse.move(*self._on_screen(action.x, action.y))
                await self._mouse.wheel(action.scroll_x, action.scroll_y)
            case actions.Type(text=text):
                await self._keyboard.type(text)
            case actions.KeyPress(keys=keys):
                await self._keyboard.press(_pressed(keys))
            case _:
                message = f"a web page does not support {action.type}"
                raise ActionRefusedError(message)

    async def press_mouse(self, x: int, y: int) -> None:
        """Move to the point and hold the left button. Raises ActionRefusedError."""
        await self._mouse.move(*self._on_screen(x, y))
        await self._mouse.down()

    async def release_mouse(self) -> None:
        """Release the left button."""
        await self._mouse.up()

    async def _drag(self, path: Sequence[tuple[int, int]]) -> None:
        points = [self._on_screen(x, y) for x, y in path]
        await self.press_mouse(*points[0])
        for start, end in pairwise(points):
            steps = min(MAX_MOVES, max(1, round(dist(start, end) / PX_PER_MOVE)))
            await self._mouse.move(*end, steps=steps)
        await self.release_mouse()

    def _on_screen(self, x: int, y: int) -> tuple[int, int]:
        """Return the point. Raises ActionRefusedError if it is off the screen."""
        width, height = self._size
        if not (0 <= x < width and 0 <= y < height):
            message = f"({x}, {y}) is off the screen of {width} x {height} px"
            raise ActionRefusedError(message)
        return x, y


def _pressed(keys: tuple[str, ...]) -> str:
    try:
        return combination(keys)
    except ValueError as error:
        raise ActionRefusedError(str(error)) from error
