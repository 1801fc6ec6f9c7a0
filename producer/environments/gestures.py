"""Input shared by all devices: points on the screen and names of keys."""

from collections.abc import Sequence
from typing import Final, NoReturn

from producer.environments.environment import ActionRefusedError
from schemas import actions
from schemas.actions import Action

ALIASES: Final = {
    "command": "meta",
    "cmd": "meta",
    "ctrl": "control",
    "del": "delete",
    "esc": "escape",
    "option": "alt",
    "pagedown": "page_down",
    "pageup": "page_up",
    "return": "enter",
    "super": "meta",
    "win": "meta",
    **{f"arrow{way}": way for way in ("down", "left", "right", "up")},
}
"""Maps other key names that policies write to ours."""


def key_name(key: str) -> str:
    """Our name of a key, in lower case. A single character is returned unchanged."""
    if len(key) == 1:
        return key
    name = key.strip().casefold()
    return ALIASES.get(name, name)


def points(action: Action) -> Sequence[tuple[int, int]]:
    """Every point of the screen that the action refers to."""
    match action:
        case actions.Drag():
            return action.path
        case actions.Swipe():
            return ((action.x, action.y), (action.to_x, action.to_y))
        case (
            actions.Click()
            | actions.DoubleClick()
            | actions.LongPress()
            | actions.Scroll()
            | actions.Move()
        ):
            return ((action.x, action.y),)
        case _:
            return ()


def require_on_screen(action: Action, width_px: int, height_px: int) -> None:
    """Raise ActionRefusedError if the action has a point off the screen."""
    for x, y in points(action):
        if x >= width_px or y >= height_px:
            refuse(f"({x}, {y}) is outside the screen of {width_px} x {height_px} px")


def refuse(message: str) -> NoReturn:
    """Raise ActionRefusedError with this message."""
    raise ActionRefusedError(message)
