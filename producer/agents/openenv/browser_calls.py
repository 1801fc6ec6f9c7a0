"""Writes actions as BrowserGym calls with coordinates: `mouse_click(10, 20, button='left')`."""

from typing import Final

from producer.environments.environment import ActionRefusedError
from schemas.actions import (
    Action,
    Answer,
    Click,
    DoubleClick,
    Drag,
    KeyPress,
    Move,
    Screenshot,
    Scroll,
    Swipe,
    Type,
    Wait,
)

BUTTONS: Final = {"left": "left", "right": "right", "wheel": "middle"}
KEYS: Final = {
    "enter": "Enter",
    "return": "Enter",
    "tab": "Tab",
    "esc": "Escape",
    "escape": "Escape",
    "backspace": "Backspace",
    "delete": "Delete",
    "space": "Space",
    "ctrl": "Control",
    "control": "Control",
    "alt": "Alt",
    "shift": "Shift",
    "cmd": "Meta",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "home": "Home",
    "end": "End",
    "pageup": "PageUp",
    "pagedown": "PageDown",
}
"""Maps our key names, in lower case, to Playwright's."""


def browser_call(action: Action) -> str:
    """Write the call. Raises ActionRefusedError for actions that BrowserGym lacks."""
    call = _pointer_call(action) or _other_call(action)
    if call is None:
        message = f"a web page does not support {action.type}"
        raise ActionRefusedError(message)
    return call


def _pointer_call(action: Action) -> str | None:
    call = None
    match action:
        case Click(x=x, y=y, button=button) if button in BUTTONS:
            call = f"mouse_click({x}, {y}, button={BUTTONS[button]!r})"
        case DoubleClick(x=x, y=y):
            call = f"mouse_dblclick({x}, {y})"
        case Move(x=x, y=y):
            call = f"mouse_move({x}, {y})"
        case Swipe(x=x, y=y, to_x=to_x, to_y=to_y):
            call = f"mouse_drag_and_drop({x}, {y}, {to_x}, {to_y})"
        case Drag(path=((x, y), (to_x, to_y))):
            call = f"mouse_drag_and_drop({x}, {y}, {to_x}, {to_y})"
        case Scroll(scroll_x=scroll_x, scroll_y=scroll_y):
            call = f"scroll({scroll_x}, {scroll_y})"
        case _:
            pass
    return call


def _other_call(action: Action) -> str | None:
    call = None
    match action:
        case KeyPress(keys=keys):
            combination = "+".join(KEYS.get(key.lower(), key) for key in keys)
            call = f"keyboard_press({combination!r})"
        case Type(text=text):
            call = f"keyboard_type({text!r})"
        case Answer(text=text):
            call = f"send_msg_to_user({text!r})"
        case Wait(duration_s=duration_s):
            call = f"noop({round(1000 * duration_s)})"
        case Screenshot():
            call = "noop(0)"
        case _:
            pass
    return call
