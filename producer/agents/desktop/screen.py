"""A display's screen, mouse and keyboard, through the X protocol and its XTEST extension."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from time import sleep
from typing import Final

from PIL import Image
from Xlib import XK, X
from Xlib.display import Display
from Xlib.error import ConnectionClosedError, DisplayError, XError
from Xlib.ext import xtest

from producer.agents.desktop.session import Session
from producer.environments.environment import EnvironmentFailedError, Screenshot

PAUSE_S: Final = 0.06
"""Pause between moving, pressing and releasing, during which a window manager grabs the mouse."""
LINE_S: Final = 0.3
"""Pause before a line break: a field that completes the typed text would keep the key for
itself."""
SPARE_S: Final = 0.1
"""Time for applications to notice a key's new meaning."""
PX_PER_MOVE: Final = 25
UNICODE: Final = 0x01000000
"""Added to a code point, it gives the keysym of a character outside Latin-1."""
LATIN_1: Final = 0x100
NAMES: Final = {
    "alt": "Alt_L",
    "backspace": "BackSpace",
    "caps_lock": "Caps_Lock",
    "control": "Control_L",
    "delete": "Delete",
    "down": "Down",
    "end": "End",
    "enter": "Return",
    "escape": "Escape",
    "home": "Home",
    "insert": "Insert",
    "left": "Left",
    "menu": "Menu",
    "meta": "Super_L",
    "page_down": "Next",
    "page_up": "Prior",
    "print_screen": "Print",
    "right": "Right",
    "shift": "Shift_L",
    "space": "space",
    "tab": "Tab",
    "up": "Up",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}
"""Maps our key names to X's."""
LINES: Final = {"\n": "Return", "\t": "Tab"}
"""Characters that are typed with a dedicated key."""


class Screen:
    """The screen of one session. Used by one thread. Every method raises EnvironmentFailedError."""

    def __init__(self, session: Session, size_px: tuple[int, int]) -> None:
        """Connect to the session's display."""
        self._session = session
        self._width_px, self._height_px = size_px
        with self._failing():
            self._display = Display(session.display)
        self._root = self._display.screen().root
        self._spare: dict[str, int] = {}
        """Maps a character to the spare key assigned to it."""

    def picture(self) -> bytes:
        """Every pixel, in the display's format."""
        with self._failing():
            shown = self._root.get_image(
                0, 0, self._width_px, self._height_px, X.ZPixmap, 0xFFFFFFFF
            )
            return bytes(shown.data)

    def as_screenshot(self, picture: bytes) -> Screenshot:
        """Convert the picture to a screenshot with a PNG file."""
        size = (self._width_px, self._height_px)
        image = Image.frombuffer("RGB", size, picture, "raw", "BGRX", 0, 1)
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        return Screenshot(buffer.getvalue(), *size)

    def title(self) -> str:
        """Title of the active window; empty if there is none."""
        with self._failing():
            active = self._property(self._root, "_NET_ACTIVE_WINDOW")
            if not isinstance(active, Sequence) or not active or not active[0]:
                return ""
            window = self._display.create_resource_object("window", active[0])
            try:
                name = self._property(window, "_NET_WM_NAME")
            except XError:  # the window was closed in the meantime
                return ""
            return name.decode(errors="replace") if isinstance(name, bytes) else ""

    def move(self, x: int, y: int) -> None:
        """Move the pointer."""
        with self._failing():
            xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
            self._display.sync()

    def click(self, x: int, y: int, button: int, times: int = 1) -> None:
        """Click at a point with the X button of this number."""
        self.move(x, y)
        for _ in range(times):
            sleep(PAUSE_S)
            self._button(X.ButtonPress, button)
            sleep(PAUSE_S)
            self._button(X.ButtonRelease, button)

    def drag(self, path: Sequence[tuple[int, int]], held_s: float = 0.0) -> None:
        """Drag with the left button along the path, holding it at the first point for `held_s`."""
        self.move(*path[0])
        sleep(PAUSE_S)
        self._button(X.ButtonPress, 1)
        sleep(max(PAUSE_S, held_s))
        for (x, y), (to_x, to_y) in pairwise(path):
            steps = max(1, max(abs(to_x - x), abs(to_y - y)) // PX_PER_MOVE)
            for step in range(1, steps + 1):
                self.move(x + (to_x - x) * step // steps, y + (to_y - y) * step // steps)
                sleep(PAUSE_S / 6)
        sleep(PAUSE_S)
        self._button(X.ButtonRelease, 1)

    def press(self, keys: Sequence[str]) -> None:
        """Press keys together. Keys are our names, or single characters."""
        with self._failing():
            codes = [
                self._display.keysym_to_keycode(XK.string_to_keysym(NAMES[key]))
                if key in NAMES
                else self._key_of(key)[0]
                for key in keys
            ]
            for code in codes:
                self._key(X.KeyPress, code)
            sleep(PAUSE_S)
            for code in reversed(codes):
                self._key(X.KeyRelease, code)

    def type(self, text: str) -> None:
        """Type the text, character by character."""
        for character in text:
            if character in LINES:
                sleep(LINE_S)
                with self._failing():
                    self._stroke(self._code(LINES[character]), is_shifted=False)
            else:
                with self._failing():
                    code, is_shifted = self._key_of(character)
                    self._stroke(code, is_shifted=is_shifted)

    def close(self) -> None:
        """Close the connection. Idempotent; raises nothing."""
        with suppress(DisplayError, ConnectionClosedError, OSError):
            self._display.close()

    def _property(self, window: object, name: str) -> object:
        found = window.get_full_property(self._display.intern_atom(name), X.AnyPropertyType)  # type: ignore[attr-defined]  # ships no types
        return None if found is None else found.value

    def _button(self, kind: int, button: int) -> None:
        with self._failing():
            xtest.fake_input(self._display, kind, button)
            self._display.sync()

    def _key(self, kind: int, code: int) -> None:
        xtest.fake_input(self._display, kind, code)
        self._display.sync()

    def _stroke(self, code: int, *, is_shifted: bool) -> None:
        shift = self._code("Shift_L")
        if is_shifted:
            self._key(X.KeyPress, shift)
        self._key(X.KeyPress, code)
        self._key(X.KeyRelease, code)
        if is_shifted:
            self._key(X.KeyRelease, shift)

    def _code(self, name: str) -> int:
        return int(self._display.keysym_to_keycode(XK.string_to_keysym(name)))

    def _key_of(self, character: str) -> tuple[int, bool]:
        """The character's key code, and whether Shift is needed.

        A character that is on no key gets a spare key.
        """
        point = ord(character)
        keysym = point if point < LATIN_1 else UNICODE + point
        for code, level in sorted(self._display.keysym_to_keycodes(keysym), key=lambda key: key[1]):
            if level in {0, 1}:
                return code, level == 1
        if character not in self._spare:
            low, high = (
                self._display.display.info.min_keycode,
                self._display.display.info.max_keycode,
            )
            mapping = self._display.get_keyboard_mapping(low, high - low + 1)
            free = [low + place for place, symbols in enumerate(mapping) if not any(symbols)]
            # Once all spare keys are in use, the oldest assignment is replaced.
            code = free[-1] if free else self._spare.pop(next(iter(self._spare)))
            self._display.change_keyboard_mapping(code, [[keysym, keysym]])
            self._display.sync()
            self._spare[character] = code
            sleep(SPARE_S)
        return self._spare[character], False

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            with self._session.limited("the display"):
                yield
        except (DisplayError, ConnectionClosedError, XError, OSError) as error:
            message = f"the display failed: {error}"
            raise EnvironmentFailedError(message) from error
