"""What a screen is made of: looks (how a part is drawn, cached by value), widgets (where it stands, what touching it does), scenes."""

from dataclasses import dataclass

from producer.environments.android_sim.state.apps import Color
from producer.environments.android_sim.state.effects import Effect

WIDTH_PX = 360
HEIGHT_PX = 640
STATUS_PX = 24
NAV_PX = 44
NAV_TOP_PX = HEIGHT_PX - NAV_PX
SLIDER_LEFT, SLIDER_RIGHT = 92, 328
"""Ends of a slider's track, px from the left of the screen."""
WHITE: Color = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that decides the pixels of one part."""

    kind: str
    """Which painter draws it: `row`, `switch`, `app_icon` ..."""
    width: int
    height: int
    label: str = ""
    sub: str = ""
    """Second line."""
    glyph: str = ""
    color: Color = WHITE
    state: str = ""
    """`on`, `off`, a slider's per cent, a field's focus."""
    dark: bool = False


@dataclass(frozen=True, slots=True)
class Widget:
    """A part at its place."""

    look: Look
    x: int
    y: int
    name: str = ""
    """`wifi_switch`; empty: it cannot be touched."""
    effect: Effect | None = None
    held: Effect | None = None
    """What holding it does."""
    resource_id: str = ""
    """As `uiautomator dump` names it, where a validator looks for it."""

    def contains(self, x: int, y: int) -> bool:
        """Whether a finger at this pixel is on it."""
        return self.x <= x < self.x + self.look.width and self.y <= y < self.y + self.look.height


@dataclass(frozen=True, slots=True)
class Scene:
    """One screen, back to front."""

    backdrop: str | Color
    """Name of a wallpaper, or a flat colour."""
    widgets: tuple[Widget, ...]
    max_scroll_px: int = 0
    """How far its list can be scrolled."""
    description: str = ""
    """What a screen reader says of it: `Home screen 1 of 2`."""

    def at(self, x: int, y: int) -> Widget | None:
        """The topmost widget under a finger."""
        return next((widget for widget in reversed(self.widgets) if widget.contains(x, y)), None)


@dataclass(frozen=True, slots=True)
class Element:
    """Ground truth about one thing that is drawn and can be touched."""

    name: str
    """Stable across seeds: `wifi_switch`, `chrome_icon`."""
    label: str
    """The text that is drawn on it."""
    box: tuple[int, int, int, int]
    """x0, y0, x1, y1 in pixels, the visible part; x1 and y1 lie outside."""
    state: str | None
    """`on`, `off`, `selected`, a slider's per cent; None: it has none."""
