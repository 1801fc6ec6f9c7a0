"""Actions as calls to a box. Refuses what a box of its type cannot do."""

from typing import Any

from producer.agents.gbox.service import Box
from producer.environments.gestures import refuse, require_on_screen
from schemas import actions
from schemas.actions import Action

BUTTONS = {
    "home": "home",
    "back": "back",
    "recents": "appSwitch",
    "power": "power",
    "volume_up": "volumeUp",
    "volume_down": "volumeDown",
}
"""Maps a phone's buttons to GBox's names."""
PHONE_KEYS = {"home": "home", "back": "back", "menu": "menu", "app_switch": "appSwitch"}
"""Maps keys that are buttons of a phone to GBox's names."""
KEYS = {
    "return": "enter",
    "esc": "escape",
    "ctrl": "control",
    "super": "meta",
    "up": "arrowUp",
    "down": "arrowDown",
    "left": "arrowLeft",
    "right": "arrowRight",
    "page_up": "pageUp",
    "page_down": "pageDown",
    "print_screen": "printScreen",
    **{
        name: name
        for name in (
            *("enter", "escape", "control", "meta", "alt", "shift", "space", "tab", "end", "home"),
            *("backspace", "delete", "insert", *(f"f{number}" for number in range(1, 13))),
        )
    },
}
"""Maps our key names to GBox's."""
MOUSE = {"left": "left", "right": "right", "wheel": "middle"}
SWIPE, DRAG_STEP = "200ms", "50ms"
SILENT: Any = {"screenshot": False}
"""Otherwise GBox sends three screenshots with every answer."""


def perform(box: Box, action: Action, width_px: int, height_px: int) -> None:
    """Perform the action. Raises ActionRefusedError and whatever the SDK raises."""
    is_phone = box.data.type == "android"
    require_on_screen(action, width_px, height_px)
    match action:
        case actions.Wait() | actions.Screenshot() | actions.Answer() | actions.Terminate():
            pass
        case actions.KeyPress():
            _press(box, action.keys, is_phone=is_phone)
        case actions.Type():
            _type(box, action.text)
        case actions.SystemButton() if is_phone:
            box.action.press_button(buttons=[BUTTONS[action.button]], options=SILENT)  # type: ignore[list-item]  # its names
        case actions.OpenApp() if is_phone:
            # The SDK's operator for apps would first ask GBox for the app.
            box.client.v1.boxes.android.open(action.package, box_id=box.data.id)
        case actions.Move() if not is_phone:
            box.action.move(x=action.x, y=action.y, options=SILENT)
        case actions.SystemButton() | actions.OpenApp() | actions.Move() | actions.ExecuteSql():
            refuse(f"a box of type {box.data.type} has no {action.type}")
        case _:
            _touch(box, action, is_phone=is_phone)


def _touch(
    box: Box,
    action: (
        actions.Click
        | actions.DoubleClick
        | actions.LongPress
        | actions.Drag
        | actions.Swipe
        | actions.Scroll
    ),
    *,
    is_phone: bool,
) -> None:
    match action:
        case actions.Click():
            _click(box, action, is_phone=is_phone)
        case actions.DoubleClick():
            box.action.click(x=action.x, y=action.y, double=True, options=SILENT)
        case actions.LongPress():
            held = f"{round(action.duration_s * 1000)}ms"
            box.action.long_press(x=action.x, y=action.y, duration=held, options=SILENT)
        case actions.Drag():
            path = [{"x": x, "y": y} for x, y in action.path]
            box.action.drag(path=path, duration=DRAG_STEP, options=SILENT)  # type: ignore[arg-type]  # a TypedDict of two
        case actions.Swipe():
            box.action.swipe(
                start={"x": action.x, "y": action.y},
                end={"x": action.to_x, "y": action.to_y},
                duration=SWIPE,
                options=SILENT,
            )
        case actions.Scroll():
            box.action.scroll(
                x=action.x,
                y=action.y,
                scroll_x=action.scroll_x,
                scroll_y=action.scroll_y,
                options=SILENT,
            )


def _click(box: Box, action: actions.Click, *, is_phone: bool) -> None:
    if is_phone and action.button != "left":
        refuse(f"a touch screen has no {action.button} button; use the left one")
    if action.button not in MOUSE:
        refuse(f"a box has no {action.button} button; use {', '.join(MOUSE)}")
    if is_phone:
        box.action.tap(x=action.x, y=action.y, options=SILENT)
    else:
        button: Any = MOUSE[action.button]
        box.action.click(x=action.x, y=action.y, button=button, options=SILENT)


def _press(box: Box, keys: tuple[str, ...], *, is_phone: bool) -> None:
    names = [key.lower() for key in keys]
    if is_phone and len(names) == 1 and names[0] in PHONE_KEYS:
        box.action.press_button(buttons=[PHONE_KEYS[names[0]]], options=SILENT)  # type: ignore[list-item]  # its names
        return
    if is_phone and {*names} == {"power", "volume_down"}:
        box.action.press_button(buttons=["power", "volumeDown"], options=SILENT)
        return
    if len(names) == 1 and len(keys[0]) == 1:
        box.action.type(text=keys[0], options=SILENT)
        return
    unknown = [name for name in names if name not in KEYS and not _is_plain(name)]
    if unknown:
        refuse(f"a box has no key {unknown[0]}; use {', '.join(KEYS)} or a single character")
    pressed: Any = [KEYS.get(name, name) for name in names]
    box.action.press_key(keys=pressed, combination=len(pressed) > 1, options=SILENT)


def _is_plain(name: str) -> bool:
    return len(name) == 1 and name.isascii() and name.isprintable()


def _type(box: Box, text: str) -> None:
    """Type up to the first line break, which submits.

    The rest is not typed, as on the simulated phone.
    """
    line, newline, _ = text.partition("\n")
    if line:
        box.action.type(text=line, press_enter=bool(newline), options=SILENT)
    elif newline:
        box.action.press_key(keys=["enter"], options=SILENT)
