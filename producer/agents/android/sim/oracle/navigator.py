"""Navigation: the next action towards a screen or an element, chosen from the true state.

Methods return None if the phone is already there. They do not change the phone and know no tasks.
"""

from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.screens import scene
from producer.agents.android.sim.screens.widget import (
    HEIGHT_PX,
    SLIDER_LEFT,
    SLIDER_RIGHT,
    WIDTH_PX,
    Element,
)
from producer.agents.android.sim.state.apps import BY_PACKAGE, LAUNCHER, SETTINGS
from producer.agents.android.sim.state.settings_tree import PARENTS
from schemas.actions import Action, Click, Swipe, SystemButton

HOME = SystemButton(button="home")
BACK = SystemButton(button="back")
RECENTS = SystemButton(button="recents")
SWIPES: dict[str, Swipe] = {
    "up": Swipe(
        x=WIDTH_PX // 2, y=HEIGHT_PX * 7 // 10, to_x=WIDTH_PX // 2, to_y=HEIGHT_PX * 3 // 10
    ),
    "down": Swipe(
        x=WIDTH_PX // 2, y=HEIGHT_PX * 3 // 10, to_x=WIDTH_PX // 2, to_y=HEIGHT_PX * 7 // 10
    ),
    "left": Swipe(
        x=WIDTH_PX * 8 // 10, y=HEIGHT_PX // 2, to_x=WIDTH_PX * 2 // 10, to_y=HEIGHT_PX // 2
    ),
    "right": Swipe(
        x=WIDTH_PX * 2 // 10, y=HEIGHT_PX // 2, to_x=WIDTH_PX * 8 // 10, to_y=HEIGHT_PX // 2
    ),
}
"""Maps the direction of the finger to a swipe through the middle of the screen."""


class Navigator:
    """Finds the way to screens and elements on one phone, from its current state."""

    def __init__(self, sim: AndroidSim) -> None:
        self.sim = sim
        self.phone = sim.phone
        self.elements: dict[str, Element] = {
            element.name: element for element in sim.visible_elements()
        }

    def tap(self, name: str) -> Action | None:
        """Tap an element; None if it is not visible."""
        element = self.elements.get(name)
        return None if element is None else tap_at(element)

    def tap_or_scroll(self, name: str) -> Action:
        """Tap an element, or scroll its list towards it."""
        return self.tap(name) or self.scroll_to(name)

    def scroll_to(self, name: str) -> Action:
        """Scroll the list on screen towards an element that is not visible."""
        phone, screen = self.phone, self.phone.screen
        if not phone.scroll_px.get(screen):
            return SWIPES["up"]
        before = phone.scroll_px[screen]
        phone.scroll_px[screen] = 0
        is_above = any(widget.name == name for widget in scene(phone).widgets)
        phone.scroll_px[screen] = before
        return SWIPES["down" if is_above else "up"]

    def slide(self, name: str, share: float) -> Action:
        """Tap a slider at this share (0 to 1) of its track; for 0 and 1, tap past its ends."""
        widget = next(widget for widget in scene(self.phone).widgets if widget.name == name)
        x = SLIDER_LEFT + round(share * (SLIDER_RIGHT - SLIDER_LEFT))
        if share in {0, 1}:
            x += 8 if share else -8
        return Click(x=x, y=widget.y + 46)

    def dismiss_overlays(self) -> Action | None:
        """Wake the phone; close overlays and menus."""
        phone = self.phone
        return (
            HOME if phone.is_asleep or phone.overlay is not None or phone.menu is not None else None
        )

    def to_home(self) -> Action | None:
        """Go to the first home page."""
        phone = self.phone
        is_there = (
            phone.foreground == LAUNCHER and not phone.is_drawer_open and phone.home_page == 0
        )
        return self.dismiss_overlays() or (None if is_there else HOME)

    def to_app(self, package: str) -> Action | None:
        """Open an app from the home screen, the drawer, or its card in recents."""
        phone, key = self.phone, BY_PACKAGE[package].key
        if phone.overlay == "recents" and f"{key}_card" in self.elements:
            return self.tap(f"{key}_card")
        if (action := self.dismiss_overlays()) is not None:
            return action
        if phone.foreground == package:
            return None
        if phone.foreground != LAUNCHER:
            return HOME
        icon = self.tap(f"{key}_icon")
        if icon is not None or phone.is_drawer_open:
            is_searching = bool(phone.fields.get("drawer_search") or phone.focus)
            return icon or (HOME if is_searching else self.scroll_to(f"{key}_icon"))
        return HOME if phone.home_page else SWIPES["up"]

    def to_settings(self, page: str) -> Action | None:
        """Open a page of the settings app: `wifi`, `app_info:com.android.chrome`."""
        if (action := self.to_app(SETTINGS)) is not None:
            return action
        if self.phone.page == page:
            return None
        path = [page]
        while path[0] != "root":
            path.insert(0, PARENTS[path[0].partition(":")[0]])
        if self.phone.page not in path:
            return BACK
        return self.tap_or_scroll(row_name(path[path.index(self.phone.page) + 1]))

    def to_shade(self, *, expanded: bool) -> Action | None:
        """Open the notification shade, or if `expanded` the full quick settings."""
        overlay = self.phone.overlay
        if overlay == "quick_settings":
            return None if expanded else BACK
        if overlay == "notifications":
            return SWIPES["down"] if expanded else None
        return self.to_home() or SWIPES["down"]


def row_name(page: str) -> str:
    """The name of the row that links to a settings page."""
    kind, _, argument = page.partition(":")
    if kind == "app_info":
        return f"{BY_PACKAGE[argument].key}_app_row"
    return "saved_network_row" if kind == "network" else f"{kind}_row"


def tap_at(element: Element) -> Click:
    """Tap the center of an element."""
    x0, y0, x1, y1 = element.box
    return Click(x=(x0 + x1) // 2, y=(y0 + y1) // 2)
