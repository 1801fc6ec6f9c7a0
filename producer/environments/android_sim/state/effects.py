"""What touching a widget does to the phone.

Small frozen commands, so that scenes are values that can be compared and cached.
"""

from dataclasses import dataclass

from producer.environments.android_sim.state.phone import (
    MAX_BRIGHTNESS,
    VOLUME_STEPS,
    Overlay,
    Phone,
)
from producer.environments.android_sim.state.settings_tree import Row


@dataclass(frozen=True, slots=True)
class Launch:
    """Start an app, or bring it to the front."""

    package: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002  # the same call for every effect
        """Do it."""
        phone.launch(self.package)


@dataclass(frozen=True, slots=True)
class Go:
    """Open a page; of the app in front, or of the one named."""

    page: str
    package: str = ""

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        if self.package:
            phone.launch(self.package, self.page)
        else:
            phone.go(self.page)


@dataclass(frozen=True, slots=True)
class Toggle:
    """Flip the switch of a row or a tile."""

    row: Row

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        phone.toggle(self.row)


@dataclass(frozen=True, slots=True)
class Put:
    """Store a setting (a radio button)."""

    namespace: str
    key: str
    value: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        phone.put(self.namespace, self.key, self.value)


@dataclass(frozen=True, slots=True)
class Slide:
    """Set a slider to where the finger is; both ends reach a little beyond the track."""

    namespace: str
    key: str
    left_px: int
    right_px: int

    def apply(self, phone: Phone, x: int) -> None:
        """Do it."""
        share = min(1.0, max(0.0, (x - self.left_px) / (self.right_px - self.left_px)))
        value = (
            round(share * VOLUME_STEPS)
            if self.namespace == "volume"
            else max(1, round(share * MAX_BRIGHTNESS))
        )
        phone.put(self.namespace, self.key, str(value))


@dataclass(frozen=True, slots=True)
class Focus:
    """Put the focus into a text field."""

    field: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it; an address bar starts anew, as a browser selects all of it."""
        if self.field == "url_bar" and phone.focus != self.field:
            phone.fields.pop(self.field, None)
        phone.focus = self.field


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the keyboard or the keypad: a character, `backspace`, `enter`."""

    key: str
    field: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        text = phone.fields.get(self.field, "")
        if self.key == "enter":
            phone.submit()
        else:
            phone.fields[self.field] = text[:-1] if self.key == "backspace" else text + self.key


@dataclass(frozen=True, slots=True)
class Press:
    """A button that stands for a whole deed of the phone."""

    deed: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        match self.deed:
            case "back":
                phone.back()
            case "home":
                phone.home()
            case "recents":
                phone.show_recents()
            case "submit":
                phone.submit()
            case "clear_notifications":
                phone.notifications.clear()
                phone.overlay = None
            case "clear_recents":
                phone.recents.clear()
                phone.stacks.clear()
                phone.home()
            case "take_screenshot":
                phone.overlay = None
                phone.take_screenshot()
            case "shutter":
                phone.num_photos_taken += 1
                phone.files.add(f"/sdcard/DCIM/Camera/IMG_{phone.num_photos_taken:03d}.jpg")
            case "save_contact":
                phone.contacts.append(phone.fields.pop("contact_name", "").strip() or "(no name)")
                phone.back()
                phone.stacks[phone.foreground][:] = ["main"]
            case other:
                message = f"no such deed: {other}"
                raise AssertionError(message)


@dataclass(frozen=True, slots=True)
class Show:
    """Open the shade, expand it, or close what is open."""

    overlay: Overlay | None

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        phone.overlay = self.overlay


@dataclass(frozen=True, slots=True)
class OpenMenu:
    """Hold an icon."""

    package: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        phone.menu = self.package


@dataclass(frozen=True, slots=True)
class AppDeed:
    """A button of the app info page or of an icon's menu.

    Stop, clear_cache, uninstall, toggle_notifications, pin.
    """

    deed: str
    package: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        phone.menu = None
        match self.deed:
            case "stop":
                phone.stop(self.package)
            case "clear_cache":
                phone.cache_kib[self.package] = 0
            case "uninstall":
                phone.uninstall(self.package)
                if phone.page.startswith("app_info:"):
                    phone.back()
            case "toggle_notifications":
                phone.blocked_notifications ^= {self.package}
            case other:
                message = f"no such deed: {other}"
                raise AssertionError(message)


@dataclass(frozen=True, slots=True)
class Join:
    """Connect to a saved network, or forget one."""

    network: str
    forget: bool = False

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        if self.forget:
            phone.saved_networks.remove(self.network)
            phone.connected = None if phone.connected == self.network else phone.connected
            phone.back()
        else:
            phone.connected = self.network


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Open a notification: its app comes to the front and it is gone."""

    index: int

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Do it."""
        phone.launch(phone.notifications.pop(self.index).package)


Effect = (
    Launch
    | Go
    | Toggle
    | Put
    | Slide
    | Focus
    | Key
    | Press
    | Show
    | OpenMenu
    | AppDeed
    | Join
    | Dismiss
)
