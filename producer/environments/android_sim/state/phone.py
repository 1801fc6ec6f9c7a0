"""The state of a simulated phone and the moves between its states.

Knows nothing of pixels, actions or shells.

Pages are text: `root`, `wifi`, `app_info:com.android.chrome` (kind, then what it is about). Each
running app has a stack of them.
"""

from dataclasses import dataclass, field
from typing import Literal

from producer.environments.android_sim.state.apps import BY_PACKAGE, LAUNCHER, SETTINGS, Color
from producer.environments.android_sim.state.settings_tree import Row

Overlay = Literal["notifications", "quick_settings", "recents"]
VOLUME_STEPS = 20
"""Highest index of every audio stream; 20 makes 50 % a step."""
MAX_BRIGHTNESS = 255
RADIOS = ("wifi_on", "bluetooth_on")


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification in the shade."""

    package: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Appearance:
    """What a seed decides about how this phone looks, and no action changes."""

    clock: str
    date: str
    battery_percent: int
    root_order: tuple[str, ...]
    """Row names of the settings root, first to last."""
    tile_order: tuple[str, ...]
    networks: tuple[str, ...]
    photos: tuple[Color, ...]
    conversations: tuple[tuple[str, str], ...]
    """(name, last message)"""


@dataclass(slots=True)
class Phone:
    """Everything about the phone that can change."""

    look: Appearance
    settings: dict[str, dict[str, str]]
    """namespace -> key -> value, all text, as `settings` keeps them."""
    home_cells: list[dict[int, str]]
    """Per home page: cell (row-major, 4 columns) -> package."""
    dock: tuple[str, ...]
    installed: set[str]
    notifications: list[Notification]
    saved_networks: list[str]
    connected: str | None
    contacts: list[str]
    files: set[str]
    cache_kib: dict[str, int]
    blocked_notifications: set[str] = field(default_factory=set)
    stacks: dict[str, list[str]] = field(default_factory=dict)
    """Running apps: package -> pages, the visible one last."""
    recents: list[str] = field(default_factory=list)
    """Newest first."""
    foreground: str = LAUNCHER
    home_page: int = 0
    is_drawer_open: bool = False
    overlay: Overlay | None = None
    menu: str | None = None
    """Package whose icon was held: its menu is open."""
    is_asleep: bool = False
    focus: str | None = None
    """Name of the text field that has the focus; the keyboard shows."""
    fields: dict[str, str] = field(default_factory=dict)
    scroll_px: dict[str, int] = field(default_factory=dict)
    """Screen -> how far its list is scrolled."""
    radios_before_flight: dict[str, str] = field(default_factory=dict)
    num_photos_taken: int = 0

    @property
    def page(self) -> str:
        """The visible page of the app in front; `` for the launcher."""
        stack = self.stacks.get(self.foreground)
        return stack[-1] if stack else ""

    @property
    def screen(self) -> str:
        """Names what is visible, for scroll positions."""
        if self.overlay == "recents":
            return self.overlay
        if self.foreground == LAUNCHER:
            return "drawer" if self.is_drawer_open else "home"
        return f"{self.foreground}/{self.page}"

    def get(self, namespace: str, key: str) -> str:
        """A stored setting; `null` when there is none, as a device says."""
        return self.settings.get(namespace, {}).get(key, "null")

    def put(self, namespace: str, key: str, value: str) -> None:
        """Store a setting."""
        self.settings.setdefault(namespace, {})[key] = value
        if (namespace, key) == ("global", "wifi_on"):
            self.connected = (
                self.saved_networks[0] if value != "0" and self.saved_networks else None
            )

    def toggle(self, row: Row) -> None:
        """What the finger on a switch does.

        Airplane mode takes the radios along and gives them back.
        """
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
        """Bring an app to the front, at `page` when one is named, where it was left otherwise."""
        self._clear_front()
        self.foreground = package
        first = "root" if package == SETTINGS else "main"
        stack = self.stacks.setdefault(package, [first])
        if page is not None:
            stack[:] = [first] if page == first else [first, page]
        self.recents = [package, *(other for other in self.recents if other != package)]

    def go(self, page: str) -> None:
        """Open a page of the app in front."""
        self.focus = None
        self.fields.clear()
        self.stacks[self.foreground].append(page)
        self.scroll_px.pop(self.screen, None)

    def home(self) -> None:
        """The home button; pressed at home it leads to the first page."""
        if self.foreground == LAUNCHER and self.overlay is None and not self.is_drawer_open:
            self.home_page = 0
        self._clear_front()
        self.foreground = LAUNCHER

    def back(self) -> None:
        """The back button: closes what lies on top, else the page, else the app."""
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
        """The recents button; pressed in recents it leads back."""
        was_open = self.overlay == "recents"
        self.focus = self.menu = None
        self.scroll_px.pop("recents", None)
        self.overlay = None if was_open else "recents"

    def close_drawer(self) -> None:
        """Leave the app drawer and what was searched in it."""
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
        """Remove an app, its icons and its card."""
        self.stop(package)
        self.installed.discard(package)
        self.recents = [other for other in self.recents if other != package]
        self.notifications = [note for note in self.notifications if note.package != package]
        for cells in self.home_cells:
            for cell in [cell for cell, other in cells.items() if other == package]:
                del cells[cell]

    def take_screenshot(self) -> None:
        """Save a picture of the screen as a file."""
        self.num_photos_taken += 1
        self.files.add(f"/sdcard/Pictures/Screenshots/Screenshot_{self.num_photos_taken:03d}.png")

    def submit(self) -> None:
        """Enter in the focused text field."""
        field_name, text = self.focus, self.fields.get(self.focus or "", "").strip()
        self.focus = None
        if field_name == "url_bar" and text:
            kind = "site" if "." in text and " " not in text else "search"
            self.go(f"{kind}:{text}")
        elif field_name == "drawer_search" and text:
            matches = self.drawer_matches()
            if matches:
                self.launch(matches[0])

    def drawer_matches(self) -> list[str]:
        """Packages the drawer shows, by label, filtered by what is searched."""
        wanted = self.fields.get("drawer_search", "").strip().lower()
        found = [
            package for package in self.installed if wanted in BY_PACKAGE[package].label.lower()
        ]
        return sorted(found, key=lambda package: BY_PACKAGE[package].label)

    def _clear_front(self) -> None:
        self.overlay = self.menu = self.focus = None
        self.close_drawer()
