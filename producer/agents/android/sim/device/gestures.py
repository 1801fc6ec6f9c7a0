"""Applies an action to the phone.

Raises ActionRefusedError for actions that a phone cannot perform and leaves the phone unchanged.
"""

from collections.abc import Callable

from producer.agents.android.sim.screens import scene
from producer.agents.android.sim.screens.widget import (
    HEIGHT_PX,
    WIDTH_PX,
    Command,
    MoveSlider,
    Widget,
)
from producer.agents.android.sim.state.phone import VOLUME_STEPS, Phone
from producer.environments.environment import ActionRefusedError
from schemas import actions
from schemas.actions import Action

EDGE_PX = 40
"""A swipe that starts within this distance of the top edge opens the shade."""
TOUCH_SLOP_PX = 24
"""Drags and swipes shorter than this are taps."""
WAKE_BUTTONS = {"power", "home"}


def perform(phone: Phone, action: Action) -> None:
    """Apply the action. Raises ActionRefusedError."""
    if phone.is_asleep and not isinstance(action, actions.SystemButton):
        return
    match action:
        case actions.KeyPress():
            _press_keys(phone, action.keys)
        case actions.Type():
            _type(phone, action.text)
        case actions.SystemButton():
            _button(phone, action.button)
        case actions.OpenApp():
            if action.package not in phone.installed:
                _refuse(f"{action.package} is not installed; `pm list packages` lists what is")
            phone.launch(action.package)
        case actions.ExecuteSql():
            _refuse("a phone executes no SQL")
        case actions.Move():
            _refuse("a phone has no pointer; click instead")
        case actions.Wait() | actions.Screenshot() | actions.Answer() | actions.Terminate():
            pass
        case _:
            _touch(phone, action)


def _touch(
    phone: Phone,
    action: actions.Click
    | actions.DoubleClick
    | actions.LongPress
    | actions.Drag
    | actions.Swipe
    | actions.Scroll,
) -> None:
    match action:
        case actions.Click(x=x, y=y):
            if action.button != "left":
                _refuse(f"a touch screen has no {action.button} button; use the left one")
            _tap(phone, x, y)
        case actions.DoubleClick(x=x, y=y):
            _tap(phone, x, y)
            _tap(phone, x, y)
        case actions.LongPress(x=x, y=y):
            if (widget := _touched(phone, x, y)) is not None and widget.long_press is not None:
                widget.long_press.apply(phone, x)
        case actions.Drag(path=path):
            _move(phone, path[0], path[-1])
        case actions.Swipe(x=x, y=y):
            _move(phone, (x, y), (action.to_x, action.to_y))
        case actions.Scroll(x=x, y=y):
            _require_on_screen(x, y)
            _pan(phone, x, y, -action.scroll_x, -action.scroll_y)


def _refuse(message: str) -> None:
    raise ActionRefusedError(message)


def _require_on_screen(x: int, y: int) -> None:
    if not (0 <= x < WIDTH_PX and 0 <= y < HEIGHT_PX):
        _refuse(f"({x}, {y}) is outside the screen of {WIDTH_PX} x {HEIGHT_PX} px")


def _touched(phone: Phone, x: int, y: int) -> Widget | None:
    """The topmost widget at this pixel."""
    _require_on_screen(x, y)
    return scene(phone).at(x, y)


def _tap(phone: Phone, x: int, y: int) -> None:
    if (widget := _touched(phone, x, y)) is not None and widget.effect is not None:
        widget.effect.apply(phone, x)


def _move(phone: Phone, start: tuple[int, int], end: tuple[int, int]) -> None:
    widget = _touched(phone, *start)
    _require_on_screen(*end)
    dx, dy = end[0] - start[0], end[1] - start[1]
    if widget is not None and isinstance(widget.effect, MoveSlider):
        widget.effect.apply(phone, end[0])
    elif max(abs(dx), abs(dy)) < TOUCH_SLOP_PX:
        _tap(phone, *start)
    else:
        _pan(phone, *start, dx, dy)


def _pan(phone: Phone, x: int, y: int, dx: int, dy: int) -> None:
    """Move the content under the finger by (dx, dy) pixels."""
    if phone.menu is not None or (dx == 0 and dy == 0):
        return
    is_vertical = abs(dy) >= abs(dx)
    if phone.overlay is not None:
        _pan_overlay(phone, x, y, dx if not is_vertical else 0, dy if is_vertical else 0)
    elif is_vertical and dy > 0 and (y < EDGE_PX or phone.screen == "home"):
        phone.overlay = "notifications"
    elif phone.screen == "home":
        if is_vertical:
            phone.is_drawer_open = True
        else:
            phone.home_page = min(
                len(phone.home_cells) - 1, max(0, phone.home_page + (1 if dx < 0 else -1))
            )
    elif is_vertical:
        _scroll(phone, dy)


def _scroll(phone: Phone, dy: int) -> None:
    before, most = phone.scroll_px.get(phone.screen, 0), scene(phone).max_scroll_px
    before = min(before, most)
    if phone.screen == "drawer" and dy > 0 and before == 0:
        phone.close_drawer()
    else:
        phone.scroll_px[phone.screen] = min(most, max(0, before - dy))


def _pan_overlay(phone: Phone, x: int, y: int, dx: int, dy: int) -> None:
    widget = scene(phone).at(x, y)
    effect = widget.effect if widget is not None else None
    touched, arguments = effect if isinstance(effect, Command) else (None, ())
    match phone.overlay:
        case "recents" if dy:
            _scroll(phone, dy)
        case "recents" if dx and touched == Phone.launch:
            (package,) = arguments
            phone.recents.remove(package)
            phone.stop(package)
            phone.overlay = "recents"
        case "notifications" if dx and touched == Phone.open_notification:
            phone.notifications.pop(*arguments)
        case "notifications" if dy:
            phone.overlay = "quick_settings" if dy > 0 else None
        case "quick_settings" if dy < 0:
            phone.overlay = None
        case _:
            pass


def _press_keys(phone: Phone, keys: tuple[str, ...]) -> None:
    names = [key.lower() for key in keys]
    commands: dict[tuple[str, ...], Callable[[], None]] = {
        ("enter",): phone.submit,
        ("return",): phone.submit,
        ("back",): phone.back,
        ("escape",): phone.back,
        ("esc",): phone.back,
        ("home",): phone.home,
        ("app_switch",): phone.show_recents,
        ("power", "volume_down"): phone.take_screenshot,
        ("backspace",): lambda: _erase(phone),
        ("delete",): lambda: _erase(phone),
    }
    command = commands.get(tuple(sorted(names)))
    if command is not None:
        command()
    elif len(names) == 1 and len(names[0]) == 1:
        _type(phone, keys[0])
    else:
        _refuse(
            f"a phone has no key {'+'.join(keys)}; use enter, back, home, app_switch, backspace,"
            " power+volume_down or a single character"
        )


def _erase(phone: Phone) -> None:
    if phone.focus is not None:
        phone.erase(phone.focus)


def _type(phone: Phone, text: str) -> None:
    if phone.focus is None:
        _refuse("no text field has the focus; tap one first")
        return
    line, newline, _ = text.partition("\n")
    phone.write(phone.focus, line)
    if newline:
        phone.submit()


def _button(phone: Phone, button: str) -> None:
    if phone.is_asleep:
        phone.is_asleep = button not in WAKE_BUTTONS
        return
    match button:
        case "home":
            phone.home()
        case "back":
            phone.back()
        case "recents":
            phone.show_recents()
        case "power":
            phone.is_asleep = True
        case "volume_up" | "volume_down":
            index = int(phone.get("volume", "music")) + (1 if button == "volume_up" else -1)
            phone.put("volume", "music", str(min(VOLUME_STEPS, max(0, index))))
        case other:
            _refuse(f"this phone has no button {other}")
