"""The state of a simulated phone and its transitions.

A page is named `kind` or `kind:argument`: `root`, `wifi`, `app_info:com.android.chrome`. Each
running app has a back stack of pages.
"""

from dataclasses import dataclass, field
from typing import Literal

from producer.agents.android.sim.state.apps import BY_PACKAGE, LAUNCHER, SETTINGS, Color
from producer.agents.android.sim.state.settings_tree import Row

Overlay = Literal["notifications", "quick_settings", "recents"]
VOLUME_STEPS = 20
"""Highest index of every audio stream. 20, so that 50 % is an exact index."""
MAX_BRIGHTNESS = 255
RADIOS = ("wifi_on", "bluetooth_on")


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification in the shade."""

    package: str
    """The app that posted it."""
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Appearance:
    """Properties of this phone's screens that the seed decides and no action changes."""

    clock: str
    """Time in the status bar: `07:42`."""
    date: str
    """Date on the home screen: `Tue, 4 Mar`."""
    battery_percent: int
    root_order: tuple[str, ...]
    """Row names of the settings root, top to bottom."""
    tile_order: tuple[str, ...]
    """Names of the quick settings tiles; the first four are in the half-open shade."""
    networks: tuple[str, ...]
    """Wi-Fi networks in range, in the order of the list."""
    photos: tuple[Color, ...]
    """Sky colors of the photos."""
    conversations: tuple[tuple[str, str], ...]
    """(name, last message) pairs, in the order of the list."""


@dataclass(slots=True)
class Phone:
    """The complete mutable state of a phone."""

    appearance: Appearance
    settings: dict[str, dict[str, str]]
    """namespace -> key -> value, all text, as Android's settings provider stores them."""
    home_cells: list[dict[int, str]]
    """For each home page, maps a cell (row-major, 4 columns) to a package."""
    dock: tuple[str, ...]
    """Packages in the dock, left to right."""
    installed: set[str]
    """Installed packages."""
    notifications: list[Notification]
    """Notifications, newest first."""
    saved_networks: list[str]
    """Wi-Fi networks the phone has a password for."""
    connected: str | None
    """The Wi-Fi network in use; None if not connected."""
    contacts: list[str]
    """Names of contacts, in order of creation."""
    files: set[str]
    """Absolute paths of photos and screenshots."""
    cache_kib: dict[str, int]
    """Maps a package to the size of its cache, KiB."""
    blocked_notifications: set[str] = field(default_factory=set)
    """Packages that may not post notifications."""
    stacks: dict[str, list[str]] = field(default_factory=dict)
    """Maps each running app's package to its back stack of pages, the visible one last."""
    recents: list[str] = field(default_factory=list)
    """Packages in the recents screen, newest first."""
    foreground: str = LAUNCHER
    """Package of the app on screen, below any overlay."""
    home_page: int = 0
    """Index of the visible home page, from 0."""
    is_drawer_open: bool = False
    """Whether the launcher shows the app drawer."""
    overlay: Overlay | None = None
    """What covers the app; None if nothing does."""
    menu: str | None = None
    """Package whose icon menu is open; None if there is no menu."""
    is_asleep: bool = False
    """Whether the screen is off."""
    focus: str | None = None
    """Name of the focused text field, which shows the keyboard; None if no field has the focus."""
    fields: dict[str, str] = field(default_factory=dict)
    """Maps a text field to its text."""
    scroll_px: dict[str, int] = field(default_factory=dict)
    """Maps a screen to how far its list is scrolled, px."""
    radios_before_flight: dict[str, str] = field(default_factory=dict)
    """Radio settings to restore when airplane mode ends."""
    num_photos_taken: int = 0
    """Number of photos and screenshots taken; numbers their files."""

    @property
    def page(self) -> str:
        """The visible page of the app in the foreground; empty for the launcher."""
        stack = self.stacks.get(self.foreground)
        return stack[-1] if stack else ""

    @property
    def screen(self) -> str:
        """The key of the visible screen in `scroll_px`."""
        if self.overlay == "recents":
            return self.overlay
        if self.foreground == LAUNCHER:
            return "drawer" if self.is_drawer_open else "home"
        return f"{self.foreground}/{self.page}"

    def get(self, namespace: str, key: str) -> str:
        """A stored setting; `null` if unset, as `settings get` prints it."""
        return self.settings.get(namespace, {}).get(key, "null")

    def put(self, namespace: str, key: str, value: str) -> None:
        """Store a setting. Turning Wi-Fi on connects to the first saved network."""
        self.settings.setdefault(namespace, {})[key] = value
        if (namespace, key) == ("global", "wifi_on"):
            self.connected = (
                self.saved_networks[0] if value != "0" and self.saved_networks else None
            )

    def toggle(self, row: Row) -> None:
        """Flip a switch. Airplane mode turns the radios off and later restores them."""
        value = row.off if self.get(row.namespace, row.key) == row.on else row.on
        self.put(row.namespace, row.key, value)
        if row.key != "airplane_mode_on":
            return
        if value == row.on:
            self.radios_before_flight = {radio: self.get("global", radio) for radio in RADIOS}
            for radio in RADIOS:
                self.put("global", radio, "0")
        else:
            for radio, before in self.radios_before_flight.items():
                self.put("global", radio, before)
            self.radios_before_flight = {}

    def launch(self, package: str, page: str | None = None) -> None:
        """Bring an app to the foreground at `page`, or where it was left if `page` is None."""
        self._close_everything_on_top()
        self.foreground = package
        first = "root" if package == SETTINGS else "main"
        stack = self.stacks.setdefault(package, [first])
        if page is not None:
            stack[:] = [first] if page == first else [first, page]
        self.recents = [package, *(other for other in self.recents if other != package)]

    def open_page(self, page: str) -> None:
        """Open a page of the app in the foreground."""
        self.focus = None
        self.fields.clear()
        self.stacks[self.foreground].append(page)
        self.scroll_px.pop(self.screen, None)

    def home(self) -> None:
        """The home button. On the home screen it returns to the first page."""
        if self.foreground == LAUNCHER and self.overlay is None and not self.is_drawer_open:
            self.home_page = 0
        self._close_everything_on_top()
        self.foreground = LAUNCHER

    def back(self) -> None:
        """The back button: closes the topmost of menu, overlay, keyboard, page and app."""
        if self.menu is not None:
            self.menu = None
        elif self.overlay is not None:
            self.overlay = None
        elif self.focus is not None:
            self.focus = None
        elif self.foreground == LAUNCHER:
            self.close_drawer()
        elif len(self.stacks[self.foreground]) > 1:
            self.stacks[self.foreground].pop()
            self.fields.clear()
        else:
            self.home()

    def show_recents(self) -> None:
        """The recents button; a second press closes recents."""
        was_open = self.overlay == "recents"
        self.focus = self.menu = None
        self.scroll_px.pop("recents", None)
        self.overlay = None if was_open else "recents"

    def close_drawer(self) -> None:
        """Close the app drawer and clear its search."""
        self.is_drawer_open = False
        self.focus = None
        self.fields.pop("drawer_search", None)
        self.scroll_px.pop("drawer", None)

    def stop(self, package: str) -> None:
        """Force-stop an app."""
        self.stacks.pop(package, None)
        if self.foreground == package:
            self.home()

    def uninstall(self, package: str) -> None:
        """Remove an app with its icons, notifications and recents card."""
        self.stop(package)
        self.installed.discard(package)
        self.recents = [other for other in self.recents if other != package]
        self.notifications = [note for note in self.notifications if note.package != package]
        for cells in self.home_cells:
            for cell in [cell for cell, other in cells.items() if other == package]:
                del cells[cell]

    def take_screenshot(self) -> None:
        """Add a screenshot to the files."""
        self.num_photos_taken += 1
        self.files.add(f"/sdcard/Pictures/Screenshots/Screenshot_{self.num_photos_taken:03d}.png")

    def open_menu(self, package: str) -> None:
        """Open the menu of an app icon (long press)."""
        self.menu = package

    def open_notification(self, index: int) -> None:
        """Launch the notification's app and remove the notification from the shade."""
        self.launch(self.notifications.pop(index).package)

    def clear_notifications(self) -> None:
        """Empty the shade and close it."""
        self.notifications.clear()
        self.overlay = None

    def clear_recents(self) -> None:
        """Stop every app."""
        self.recents.clear()
        self.stacks.clear()
        self.home()

    def focus_field(self, name: str) -> None:
        """Focus a text field. The browser's address is selected as a whole, so it is cleared."""
        if name == "url_bar" and self.focus != name:
            self.fields.pop(name, None)
        self.focus = name

    def write(self, name: str, text: str) -> None:
        """Append to the text in a field."""
        self.fields[name] = self.fields.get(name, "") + text

    def erase(self, name: str) -> None:
        """Remove the last character of a field."""
        self.fields[name] = self.fields.get(name, "")[:-1]

    def submit(self) -> None:
        """Press enter in the focused text field."""
        field_name, text = self.focus, self.fields.get(self.focus or "", "").strip()
        self.focus = None
        if field_name == "url_bar" and text:
            kind = "site" if "." in text and " " not in text else "search"
            self.open_page(f"{kind}:{text}")
        elif field_name == "drawer_search" and text and (matches := self.drawer_matches()):
            self.launch(matches[0])

    def drawer_matches(self) -> list[str]:
        """Packages whose label contains the search text, sorted by label."""
        wanted = self.fields.get("drawer_search", "").strip().lower()
        found = [
            package for package in self.installed if wanted in BY_PACKAGE[package].label.lower()
        ]
        return sorted(found, key=lambda package: BY_PACKAGE[package].label)

    def _close_everything_on_top(self) -> None:
        self.overlay = self.menu = self.focus = None
        self.close_drawer()
