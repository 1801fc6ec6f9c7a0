"""Phone state to scene: what is on the screen and what touching it does. Pure functions."""

from producer.agents.android.sim.screens import app_pages, launcher, overlays, settings
from producer.agents.android.sim.screens.widget import Scene
from producer.agents.android.sim.state.apps import LAUNCHER, SETTINGS
from producer.agents.android.sim.state.phone import Phone


def scene(phone: Phone) -> Scene:
    """The screen the phone shows now."""
    if phone.is_asleep:
        return overlays.asleep()
    match phone.overlay:
        case "notifications":
            return overlays.notifications(phone)
        case "quick_settings":
            return overlays.quick_settings(phone)
        case "recents":
            return overlays.recents(phone)
        case None:
            pass
    if phone.foreground == LAUNCHER:
        return launcher.drawer(phone) if phone.is_drawer_open else launcher.home(phone)
    return settings.page(phone) if phone.foreground == SETTINGS else app_pages.page(phone)
