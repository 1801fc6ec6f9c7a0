"""What a scene is made of.

A `Look` decides the pixels of a widget and is the cache key for drawing it. A `Widget` is a look at
a position with the effects of touching it. A `Scene` is one screen of widgets.
"""

from dataclasses import dataclass

from producer.agents.android.sim.state.apps import Color
from producer.agents.android.sim.state.effects import Effect

WIDTH_PX = 360
HEIGHT_PX = 640
STATUS_PX = 24
NAV_PX = 44
NAV_TOP_PX = HEIGHT_PX - NAV_PX
SLIDER_LEFT, SLIDER_RIGHT = 92, 328
"""Ends of a slider's track, px from the left edge of the screen."""
WHITE: Color = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that decides the pixels of one widget."""

    kind: str
    """A key of `painting.render.WIDGET_RENDERERS`: `row`, `switch`, `app_icon` ..."""
    width: int
    """Pixels."""
    height: int
    """Pixels."""
    label: str = ""
    """First line of text."""
    sub: str = ""
    """Second line of text, or the hint of an empty text field."""
    glyph: str = ""
    """Pictogram, a key of `painting.glyphs.GLYPHS`; empty: none."""
    color: Color = WHITE
    """Of the background or the text, depending on the kind."""
    state: str = ""
    """Depends on the kind: `on`, `off`, `selected`, `focused`, a slider's percent, a text size."""
    dark: bool = False
    """Whether the dark theme applies."""


@dataclass(frozen=True, slots=True)
class Widget:
    """A look at a position, with the effects of touching it."""

    look: Look
    """How it is drawn."""
    x: int
    """Left edge, px."""
    y: int
    """Top edge, px."""
    name: str = ""
    """Stable across seeds: `wifi_switch`; empty: not an element."""
    effect: Effect | None = None
    """Of a tap; None: nothing happens."""
    long_press_effect: Effect | None = None
    """Of a long press; None: nothing happens."""
    resource_id: str = ""
    """Id in `uiautomator dump` if it differs from `name`."""

    def contains(self, x: int, y: int) -> bool:
        """Whether the pixel is inside."""
        return self.x <= x < self.x + self.look.width and self.y <= y < self.y + self.look.height


@dataclass(frozen=True, slots=True)
class Scene:
    """One screen."""

    backdrop: str | Color
    """Name of a wallpaper, or a color."""
    widgets: tuple[Widget, ...]
    """Back to front."""
    max_scroll_px: int = 0
    """How far its list can be scrolled."""
    description: str = ""
    """Content description of the root view (`Home screen 1 of 2`), or its resource id."""

    def at(self, x: int, y: int) -> Widget | None:
        """The topmost widget at a pixel; None: only the backdrop."""
        return next((widget for widget in reversed(self.widgets) if widget.contains(x, y)), None)


@dataclass(frozen=True, slots=True)
class Element:
    """Ground truth argument one widget that is visible and can be touched."""

    name: str
    """Stable across seeds: `wifi_switch`, `chrome_icon`."""
    label: str
    """The text on it."""
    box: tuple[int, int, int, int]
    """x0, y0, x1, y1 of the visible part, pixels; x1 and y1 are exclusive."""
    state: str | None
    """`on`, `off`, `selected`, a slider's percent; None: it has no state."""
