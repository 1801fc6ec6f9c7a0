"""Creates a phone from a seed: icon positions, list orders, settings, notifications, contents."""

from random import Random

from producer.agents.android.sim.state.apps import (
    APPS,
    CAMERA,
    CHROME,
    CORE,
    GALLERY,
    MESSAGES,
    TEST_APP,
)
from producer.agents.android.sim.state.phone import (
    MAX_BRIGHTNESS,
    VOLUME_STEPS,
    Appearance,
    Notification,
    Phone,
)
from producer.agents.android.sim.state.settings_tree import (
    FIRST_ROWS,
    LANGUAGES,
    LATER_ROWS,
    TIMEOUTS,
    WALLPAPERS,
)

NUM_CELLS = 16
"""Cells of a home page: 4 x 4."""
NUM_DOCK = 4
QUICK_TILES = ("wifi", "bluetooth", "dnd", "airplane")
"""Tiles in the half-open shade."""
OTHER_TILES = ("auto_rotate", "battery_saver", "dark_theme", "location")
"""Tiles that only the fully open shade shows."""

_NETWORKS = ("HomeNet", "Cafe Blue", "Office-5G", "Linden 12", "Guest", "Harbour")
_PEOPLE = ("Ada", "Bruno", "Chen", "Dara", "Emil", "Farah", "Goran", "Hana", "Ines", "Jonas")
_MESSAGES = (
    "See you at six",
    "Thanks a lot!",
    "Where are you?",
    "Photos are great",
    "Call me later",
    "On my way",
)
_NOTES = (
    (MESSAGES, "New message", "Dinner at eight?"),
    (CHROME, "Download complete", "map.pdf"),
    (GALLERY, "New memory", "A year ago today"),
    ("com.android.calendar", "Meeting at 15:00", "Room 4"),
    ("com.android.email", "3 new mails", "Invoice, Newsletter"),
    ("com.android.deskclock", "Alarm at 07:00", "Weekdays"),
    (CAMERA, "Storage almost full", "Free up space"),
)
_PHOTO_COLORS = (
    (38, 166, 154),
    (66, 165, 245),
    (171, 71, 188),
    (239, 83, 80),
    (255, 167, 38),
    (156, 204, 101),
    (120, 144, 156),
    (236, 64, 122),
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def fresh_phone(seed: int) -> Phone:
    """The phone for this seed, on its home screen. Deterministic."""
    random = Random(f"phone/{seed}")  # noqa: S311  # not for secrets
    networks = tuple(random.sample(_NETWORKS, 4))
    installed = {app.package for app in APPS}
    home_cells, dock = _place_icons(random)
    phone = Phone(
        appearance=_appearance(random, networks),
        settings=_settings(random),
        home_cells=home_cells,
        dock=dock,
        installed=installed,
        notifications=[Notification(*note) for note in random.sample(_NOTES, random.randint(1, 4))],
        saved_networks=[networks[0]],
        connected=None,
        contacts=sorted(random.sample(_PEOPLE, random.randint(4, 6))),
        files={
            f"/sdcard/DCIM/Camera/IMG_{number:03d}.jpg" for number in range(random.randint(1, 3))
        },
        cache_kib={package: random.randint(2000, 90000) for package in sorted(installed)},
        home_page=(1 if random.random() < 0.1 else 0),  # noqa: PLR2004  # some were left on the second page
        blocked_notifications={TEST_APP} if random.random() < 0.5 else set(),  # noqa: PLR2004
    )
    phone.put("global", "wifi_on", phone.get("global", "wifi_on"))
    if random.random() < 0.15:  # noqa: PLR2004  # some lists were left scrolled
        phone.scroll_px["com.android.settings/root"] = random.choice((64, 128, 192, 256))
    _leave_apps_in_recents(phone, random)
    return phone


def _place_icons(random: Random) -> tuple[list[dict[int, str]], tuple[str, ...]]:
    core = list(CORE)
    random.shuffle(core)
    others = [app.package for app in APPS if app.package not in CORE]
    random.shuffle(others)
    first = core[NUM_DOCK:] + others[:5]
    pages = [
        dict(zip(random.sample(range(NUM_CELLS), len(packages)), packages, strict=True))
        for packages in (first, others[5:])
    ]
    if random.random() < 0.5:  # noqa: PLR2004  # half have a third page
        pages.append({random.randrange(NUM_CELLS): random.choice(others)})
    return pages, tuple(core[:NUM_DOCK])


def _appearance(random: Random, networks: tuple[str, ...]) -> Appearance:
    first, later = [[row.name for row in rows] for rows in (FIRST_ROWS, LATER_ROWS)]
    quick, other = list(QUICK_TILES), list(OTHER_TILES)
    for order in (first, later, quick, other):
        random.shuffle(order)
    people = random.sample(_PEOPLE, 4)
    return Appearance(
        clock=f"{random.randrange(24):02d}:{random.randrange(60):02d}",
        date=f"{random.choice(_DAYS)}, {random.randint(1, 28)} {random.choice(_MONTHS)}",
        battery_percent=random.randint(12, 98),
        root_order=(*first, *later),
        tile_order=(*quick, *other),
        networks=networks,
        photos=tuple(random.sample(_PHOTO_COLORS, len(_PHOTO_COLORS))),
        conversations=tuple((name, random.choice(_MESSAGES)) for name in people),
    )


def _settings(random: Random) -> dict[str, dict[str, str]]:
    def flag(share_on: float = 0.5, on: str = "1", off: str = "0") -> str:
        return on if random.random() < share_on else off

    return {
        "global": {
            "wifi_on": flag(),
            "bluetooth_on": flag(),
            "airplane_mode_on": flag(0.2),
            "zen_mode": flag(0.3),
            "auto_time": flag(),
            "auto_time_zone": flag(),
            "low_power": flag(0.3),
            "adb_enabled": flag(0.3),
            "development_settings_enabled": "0",
            "stay_on_while_plugged_in": "0",
        },
        "system": {
            "screen_brightness": str(random.randint(40, MAX_BRIGHTNESS - 40)),
            "screen_off_timeout": random.choice([value for value, _, _ in TIMEOUTS]),
            "accelerometer_rotation": flag(),
            "vibrate_when_ringing": flag(),
            "system_locales": random.choice([value for value, _, _ in LANGUAGES]),
            "time_12_24": flag(0.5, "24", "12"),
            "show_touches": "0",
        },
        "secure": {
            "ui_night_mode": flag(0.25, "2", "1"),
            "location_mode": flag(0.5, "3", "0"),
            "lock_screen_show_notifications": flag(),
        },
        "volume": {
            stream: str(random.randint(3, VOLUME_STEPS - 3))
            for stream in ("music", "ring", "alarm")
        },
        "wallpaper": {"name": random.choice([name for name, _, _ in WALLPAPERS])},
        "lock": {"kind": random.choice(("none", "swipe", "pin"))},
    }


def _leave_apps_in_recents(phone: Phone, random: Random) -> None:
    for package in random.sample(
        [CAMERA, GALLERY, MESSAGES, "com.android.maps", "com.android.music"], random.randint(1, 2)
    ):
        phone.stacks[package] = ["main"]
        phone.recents.append(package)
