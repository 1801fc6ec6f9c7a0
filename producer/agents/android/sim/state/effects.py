"""Effects: what touching a widget does to the phone.

Frozen dataclasses, so that scenes are values that can be compared and cached. Every effect has
`apply(phone, x)`; only a slider uses x, the pixel column that was touched.
"""

from dataclasses import dataclass

from producer.agents.android.sim.state.phone import (
    MAX_BRIGHTNESS,
    VOLUME_STEPS,
    Overlay,
    Phone,
)
from producer.agents.android.sim.state.settings_tree import Row


@dataclass(frozen=True, slots=True)
class LaunchApp:
    """Start an app, or bring it to the front."""

    package: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002  # one signature
        """Apply to the phone."""
        phone.launch(self.package)


@dataclass(frozen=True, slots=True)
class OpenPage:
    """Open a page of the app in the foreground, or of `package`."""

    page: str
    package: str = ""

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        if self.package:
            phone.launch(self.package, self.page)
        else:
            phone.open_page(self.page)


@dataclass(frozen=True, slots=True)
class ToggleSwitch:
    """Flip the switch of a settings row or quick settings tile."""

    row: Row

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        phone.toggle(self.row)


@dataclass(frozen=True, slots=True)
class PutSetting:
    """Store a setting (a radio button)."""

    namespace: str
    key: str
    value: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        phone.put(self.namespace, self.key, self.value)


@dataclass(frozen=True, slots=True)
class MoveSlider:
    """Set a slider to the position of the finger, clamped to the ends of its track."""

    namespace: str
    key: str
    left_px: int
    right_px: int

    def apply(self, phone: Phone, x: int) -> None:
        """Apply to the phone."""
        share = min(1.0, max(0.0, (x - self.left_px) / (self.right_px - self.left_px)))
        value = (
            round(share * VOLUME_STEPS)
            if self.namespace == "volume"
            else max(1, round(share * MAX_BRIGHTNESS))
        )
        phone.put(self.namespace, self.key, str(value))


@dataclass(frozen=True, slots=True)
class FocusField:
    """Focus a text field."""

    field: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply. The address bar is cleared, because a browser selects all of its text on focus."""
        if self.field == "url_bar" and phone.focus != self.field:
            phone.fields.pop(self.field, None)
        phone.focus = self.field


@dataclass(frozen=True, slots=True)
class TypeKey:
    """A key of the keyboard or keypad: a character, `backspace` or `enter`."""

    key: str
    field: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        text = phone.fields.get(self.field, "")
        if self.key == "enter":
            phone.submit()
        else:
            phone.fields[self.field] = text[:-1] if self.key == "backspace" else text + self.key


@dataclass(frozen=True, slots=True)
class PressButton:
    """A button that runs a command of the phone or of the app in the foreground."""

    command: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        match self.command:
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
                message = f"unknown command: {other}"
                raise AssertionError(message)


@dataclass(frozen=True, slots=True)
class ShowOverlay:
    """Show an overlay; None closes it."""

    overlay: Overlay | None

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        phone.overlay = self.overlay


@dataclass(frozen=True, slots=True)
class OpenIconMenu:
    """Open the menu of an app icon (long press)."""

    package: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        phone.menu = self.package


@dataclass(frozen=True, slots=True)
class AppCommand:
    """A command on one app: stop, clear_cache, uninstall or toggle_notifications."""

    command: str
    package: str

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        phone.menu = None
        match self.command:
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
                message = f"unknown command: {other}"
                raise AssertionError(message)


@dataclass(frozen=True, slots=True)
class JoinNetwork:
    """Connect to a saved Wi-Fi network, or forget it."""

    network: str
    forget: bool = False

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        if self.forget:
            phone.saved_networks.remove(self.network)
            phone.connected = None if phone.connected == self.network else phone.connected
            phone.back()
        else:
            phone.connected = self.network


@dataclass(frozen=True, slots=True)
class OpenNotification:
    """Open a notification: launches its app and removes it from the shade."""

    index: int

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002
        """Apply to the phone."""
        phone.launch(phone.notifications.pop(self.index).package)


Effect = (
    LaunchApp
    | OpenPage
    | ToggleSwitch
    | PutSetting
    | MoveSlider
    | FocusField
    | TypeKey
    | PressButton
    | ShowOverlay
    | OpenIconMenu
    | AppCommand
    | JoinNetwork
    | OpenNotification
)
