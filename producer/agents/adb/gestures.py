"""Actions as shell commands of a phone. Refuses what a phone cannot do."""

import re
import shlex
from collections.abc import Sequence

from producer.environments.gestures import refuse, require_on_screen
from schemas import actions
from schemas.actions import Action

KEYS = {
    "enter": 66,
    "return": 66,
    "back": 4,
    "escape": 111,
    "esc": 111,
    "home": 3,
    "menu": 82,
    "app_switch": 187,
    "backspace": 67,
    "delete": 67,
    "tab": 61,
    "space": 62,
    "up": 19,
    "down": 20,
    "left": 21,
    "right": 22,
    "page_up": 92,
    "page_down": 93,
}
"""Maps key names to Android's key codes."""
SCREENSHOT_KEYS = {"power", "volume_down"}
SCREENSHOT = "input keyevent 120"
BUTTONS = {"home": 3, "back": 4, "recents": 187, "power": 26, "volume_up": 24, "volume_down": 25}
SWIPE_MS, SCROLL_MS, DRAG_MS = 200, 400, 1000
PACKAGE = re.compile(r"[A-Za-z][\w]*(\.[A-Za-z][\w]*)+")
TYPED = re.compile(r"[ -~]*")
"""Matches what `input text` can type: printable ASCII."""


def commands(action: Action, width_px: int, height_px: int) -> Sequence[str]:
    """Shell commands that perform the action, in order. Raises ActionRefusedError."""
    _require_possible(action, width_px, height_px)
    found: Sequence[str] = ()
    match action:
        case actions.KeyPress():
            found = _press(action.keys)
        case actions.Type():
            found = _type(action.text)
        case actions.SystemButton():
            found = (f"input keyevent {BUTTONS[action.button]}",)
        case actions.OpenApp():
            found = _open(action.package)
        case actions.Scroll():
            found = _scroll(action, width_px, height_px)
        case actions.Drag():
            found = _drag(action.path)
        case actions.Click() | actions.DoubleClick() | actions.LongPress() | actions.Swipe():
            found = (_touch(action),)
        case _:
            pass
    return found


def _require_possible(action: Action, width_px: int, height_px: int) -> None:
    if isinstance(action, actions.ExecuteSql):
        refuse("a phone executes no SQL")
    if isinstance(action, actions.Move):
        refuse("a phone has no pointer; click instead")
    if isinstance(action, actions.Click) and action.button != "left":
        refuse(f"a touch screen has no {action.button} button; use the left one")
    require_on_screen(action, width_px, height_px)


def _touch(
    action: actions.Click | actions.DoubleClick | actions.LongPress | actions.Swipe,
) -> str:
    x, y = action.x, action.y
    match action:
        case actions.Click():
            return f"input tap {x} {y}"
        case actions.DoubleClick():
            # Run one after the other, the taps would be further apart than Android's double-tap
            # limit.
            return f"input tap {x} {y} & sleep 0.1; input tap {x} {y}; wait"
        case actions.LongPress():
            return f"input swipe {x} {y} {x} {y} {round(action.duration_s * 1000)}"
        case actions.Swipe():
            return f"input swipe {x} {y} {action.to_x} {action.to_y} {SWIPE_MS}"


def _scroll(action: actions.Scroll, width_px: int, height_px: int) -> Sequence[str]:
    """A swipe in the opposite direction, as far as the screen allows."""
    to_x = min(width_px - 1, max(0, action.x - action.scroll_x))
    to_y = min(height_px - 1, max(0, action.y - action.scroll_y))
    if (to_x, to_y) == (action.x, action.y):
        return ()
    return (f"input swipe {action.x} {action.y} {to_x} {to_y} {SCROLL_MS}",)


def _drag(path: Sequence[tuple[int, int]]) -> Sequence[str]:
    (x, y), (to_x, to_y) = path[0], path[-1]
    if len(path) == 2:  # noqa: PLR2004  # from and to
        return (f"input swipe {x} {y} {to_x} {to_y} {DRAG_MS}",)
    moves = " && ".join(f"input motionevent MOVE {x} {y}" for x, y in path[1:])
    return (f"input motionevent DOWN {x} {y} && {moves} && input motionevent UP {to_x} {to_y}",)


def _press(keys: Sequence[str]) -> Sequence[str]:
    names = [key.lower() for key in keys]
    if {*names} == SCREENSHOT_KEYS:
        return (SCREENSHOT,)
    if len(names) == 1 and names[0] in KEYS:
        return (f"input keyevent {KEYS[names[0]]}",)
    if len(names) == 1 and len(keys[0]) == 1:
        return _type(keys[0])
    refuse(
        f"a phone has no key {'+'.join(keys)}; use {', '.join(KEYS)}, power+volume_down or a"
        " single character"
    )
    return ()


def _type(text: str) -> Sequence[str]:
    """Type up to the first line break, which submits.

    The rest is not typed, as on the simulated phone.
    """
    line, newline, _ = text.partition("\n")
    if not TYPED.fullmatch(line):
        unknown = next(character for character in line if not TYPED.fullmatch(character))
        refuse(f"this phone types printable ASCII characters only, and {unknown!r} is none")
    # `input text` types a blank for %s, so the two characters are sent separately.
    parts = [part for part in re.split(r"(?<=%)(?=s)", line) if part]
    typed = [f"input text {shlex.quote(part.replace(' ', '%s'))}" for part in parts]
    return (*typed, *([f"input keyevent {KEYS['enter']}"] if newline else []))


def _open(package: str) -> Sequence[str]:
    if not PACKAGE.fullmatch(package):
        refuse(f"{package!r} is no package name")
    # `monkey -p`, which also needs no activity name, would turn auto-rotate on.
    return (f"am start {package}",)
