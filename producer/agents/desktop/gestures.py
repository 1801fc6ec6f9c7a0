"""Actions as input to a desktop. Refuses what mouse and keyboard cannot do."""

from time import sleep
from typing import Final

from producer.agents.desktop.screen import LINES, NAMES, Screen
from producer.environments.gestures import key_name, refuse, require_on_screen
from schemas import actions
from schemas.actions import Action

BUTTONS: Final = {"left": 1, "wheel": 2, "right": 3, "back": 8, "forward": 9}
UP, DOWN, LEFT, RIGHT = 4, 5, 6, 7
"""X's button numbers for one notch of the wheel."""
PX_PER_NOTCH: Final = 40
MAX_NOTCHES: Final = 50


def perform(screen: Screen, action: Action, width_px: int, height_px: int) -> None:
    """Perform the action. Raises ActionRefusedError, EnvironmentFailedError."""
    require_on_screen(action, width_px, height_px)
    match action:
        case actions.KeyPress():
            screen.press(_names(action.keys))
        case actions.Type():
            _require_typeable(action.text)
            screen.type(action.text)
        case actions.Wait():
            sleep(action.duration_s)
        case actions.Screenshot() | actions.Answer() | actions.Terminate():
            pass
        case actions.SystemButton() | actions.OpenApp() | actions.ExecuteSql():
            refuse(f"a desktop does not support {action.type}")
        case _:
            _point(screen, action)


def _point(
    screen: Screen,
    action: (
        actions.Click
        | actions.DoubleClick
        | actions.LongPress
        | actions.Drag
        | actions.Swipe
        | actions.Move
        | actions.Scroll
    ),
) -> None:
    match action:
        case actions.Click():
            screen.click(action.x, action.y, BUTTONS[action.button])
        case actions.DoubleClick():
            screen.click(action.x, action.y, BUTTONS["left"], times=2)
        case actions.LongPress():
            screen.drag(((action.x, action.y),), held_s=action.duration_s)
        case actions.Drag():
            screen.drag(action.path)
        case actions.Swipe():
            screen.drag(((action.x, action.y), (action.to_x, action.to_y)))
        case actions.Move():
            screen.move(action.x, action.y)
        case actions.Scroll():
            _scroll(screen, action)


def _scroll(screen: Screen, action: actions.Scroll) -> None:
    """Turn the wheel by as many notches as the pixels need."""
    for wheel, pixels in (
        (DOWN if action.scroll_y > 0 else UP, action.scroll_y),
        (RIGHT if action.scroll_x > 0 else LEFT, action.scroll_x),
    ):
        if notches := min(MAX_NOTCHES, -(-abs(pixels) // PX_PER_NOTCH)):
            screen.click(action.x, action.y, wheel, times=notches)


def _names(keys: tuple[str, ...]) -> list[str]:
    # Some policies write `ctrl+a` as one key.
    parts = [part for key in keys for part in (key.split("+") if key.strip("+") else [key])]
    names = [key_name(part) for part in parts]
    unknown = [name for name in names if name not in NAMES and not _is_typeable(name)]
    if unknown:
        refuse(f"a desktop has no key {unknown[0]!r}; use {', '.join(NAMES)} or a single character")
    return names


def _is_typeable(name: str) -> bool:
    return len(name) == 1 and name.isprintable()


def _require_typeable(text: str) -> None:
    for character in text:
        if character not in LINES and not character.isprintable():
            refuse(f"{character!r} cannot be typed")
