"""Names of keys: converts those that policies write to Playwright's."""

NAMES = {
    "alt": "Alt",
    "backspace": "Backspace",
    "caps_lock": "CapsLock",
    "cmd": "Meta",
    "command": "Meta",
    "control": "Control",
    "ctrl": "Control",
    "del": "Delete",
    "delete": "Delete",
    "down": "ArrowDown",
    "end": "End",
    "enter": "Enter",
    "esc": "Escape",
    "escape": "Escape",
    "home": "Home",
    "insert": "Insert",
    "left": "ArrowLeft",
    "meta": "Meta",
    "option": "Alt",
    "page_down": "PageDown",
    "page_up": "PageUp",
    "pagedown": "PageDown",
    "pageup": "PageUp",
    "return": "Enter",
    "right": "ArrowRight",
    "shift": "Shift",
    "space": " ",
    "super": "Meta",
    "tab": "Tab",
    "up": "ArrowUp",
    "win": "Meta",
}
NAMES |= {name.casefold(): name for name in [*NAMES.values(), *(f"F{n}" for n in range(1, 13))]}


def combination(keys: tuple[str, ...]) -> str:
    """The keys pressed together, such as `Control+a`. Raises ValueError for an unknown key."""
    return "+".join(_key(part) for key in keys for part in _parts(key))


def _parts(key: str) -> list[str]:
    """Split one key into parts, because some policies write `ctrl+a` as one key."""
    return key.split("+") if len(key) > 1 and "+" in key.strip("+") else [key]


def _key(key: str) -> str:
    if len(key) == 1:
        return key
    known = NAMES.get(key.strip().casefold())
    if known is None:
        message = f"no key is called {key!r}"
        raise ValueError(message)
    return known
