"""What a scene is made of.

A `Look` decides the pixels of a widget and is the cache key for drawing it. A `Widget` is a look at
a position with the effects of touching it. A `Scene` is one screen of widgets. All are values, so
that scenes can be compared and cached.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

from producer.agents.android.sim.state.apps import Color
from producer.agents.android.sim.state.phone import MAX_BRIGHTNESS, VOLUME_STEPS, Phone

WIDTH_PX = 360
HEIGHT_PX = 640
STATUS_PX = 24
NAV_PX = 44
NAV_TOP_PX = HEIGHT_PX - NAV_PX
SLIDER_LEFT, SLIDER_RIGHT = 92, 328
"""Ends of a slider's track, px from the left edge of the screen."""
WHITE: Color = (255, 255, 255)


class Command(NamedTuple):
    """A function of the phone, with its further arguments."""

    function: Callable[..., None]
    arguments: tuple[Any, ...]

    def apply(self, phone: Phone, x: int) -> None:  # noqa: ARG002  # only sliders use x
        """Apply to the phone."""
        self.function(phone, *self.arguments)


class MoveSlider(NamedTuple):
    """Set a slider to the position of the finger, clamped to the ends of its track."""

    namespace: str
    key: str

    def apply(self, phone: Phone, x: int) -> None:
        """Apply to the phone; `x` is the pixel column that was touched."""
        share = min(1.0, max(0.0, (x - SLIDER_LEFT) / (SLIDER_RIGHT - SLIDER_LEFT)))
        is_volume = self.namespace == "volume"
        level = round(share * VOLUME_STEPS) if is_volume else max(1, round(share * MAX_BRIGHTNESS))
        phone.put(self.namespace, self.key, str(level))


Effect = Command | MoveSlider


def do(function: Callable[..., None], *arguments: Hashable) -> Command:
    """The effect of calling `function` with the phone and `arguments`."""
    return Command(function, arguments)


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that decides the pixels of one widget."""

    kind: str
    """A key of `painting.widgets.RENDERERS`: `row`, `switch`, `app_icon` ..."""
    width: int
    """Width, px."""
    height: int
    """Height, px."""
    label: str = ""
    """First line of text."""
    sub: str = ""
    """Second line of text, or the hint of an empty text field."""
    glyph: str = ""
    """Pictogram, a key of `painting.glyphs.GLYPHS`; empty for none."""
    color: Color = WHITE
    """Color of the background or of the text, depending on the kind."""
    state: str = ""
    """Depends on the kind: `on`, `off`, `selected`, `focused`, a slider's percent, a text size."""
    dark: bool = False
    """Whether the dark theme applies."""

    def at(
        self,
        x: int,
        y: int,
        name: str = "",
        effect: Effect | None = None,
        *,
        long_press: Effect | None = None,
        resource_id: str = "",
    ) -> "Widget":
        """A widget with this look and its upper left corner at (x, y)."""
        return Widget(self, x, y, name, effect, long_press, resource_id)


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
    """Name that is stable across seeds, such as `wifi_switch`; empty if this is not an element."""
    effect: Effect | None = None
    """Effect of a tap; None if nothing happens."""
    long_press: Effect | None = None
    """Effect of a long press; None if nothing happens."""
    resource_id: str = ""
    """Id in `uiautomator dump`, if it differs from `name`."""

    def contains(self, x: int, y: int) -> bool:
        """Whether the pixel is inside."""
        return self.x <= x < self.x + self.look.width and self.y <= y < self.y + self.look.height


@dataclass(frozen=True, slots=True)
class Scene:
    """One screen of widgets."""

    backdrop: str | Color
    """Name of a wallpaper, or a color."""
    widgets: tuple[Widget, ...]
    """Widgets from back to front."""
    max_scroll_px: int = 0
    """How far the screen's list can be scrolled, px."""
    description: str = ""
    """Content description of the root view (`Home screen 1 of 2`), or its resource id."""

    def at(self, x: int, y: int) -> Widget | None:
        """The topmost widget at a pixel; None if there is only the backdrop."""
        return next((widget for widget in reversed(self.widgets) if widget.contains(x, y)), None)


@dataclass(frozen=True, slots=True)
class Element:
    """Ground truth about one widget that is visible and can be touched."""

    name: str
    """Name that is stable across seeds, such as `wifi_switch` or `chrome_icon`."""
    label: str
    """The text on the widget."""
    box: tuple[int, int, int, int]
    """(x0, y0, x1, y1) of the visible part, px; x1 and y1 are exclusive."""
    state: str | None
    """`on`, `off`, `selected` or a slider's percent; None if the widget has no state."""
