"""The settings app as data: its pages, their rows, and the stored setting behind each row.

Rows that depend on the device (networks, apps) are added by `screens.settings`.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from producer.agents.android.sim.state.apps import Color

BLUE: Color = (30, 136, 229)
INDIGO: Color = (57, 60, 170)
ORANGE: Color = (245, 124, 0)
AMBER: Color = (249, 178, 18)
RED: Color = (229, 45, 50)
GREEN: Color = (56, 158, 62)
PURPLE: Color = (142, 36, 170)
TEAL: Color = (0, 150, 136)
BROWN: Color = (121, 85, 72)
PINK: Color = (230, 40, 120)
SLATE: Color = (84, 110, 122)
LIME: Color = (160, 175, 20)
BLACK: Color = (40, 42, 48)

RowKind = Literal["link", "switch", "main_switch", "slider", "radio"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a settings page."""

    name: str
    """Prefix of its element's name: `wifi` gives `wifi_row`, `wifi_switch` or `wifi_slider`."""
    label: str
    """The text on the row."""
    glyph: str
    """Pictogram, a key of `painting.glyphs.GLYPHS`."""
    color: Color
    """Background of the pictogram."""
    kind: RowKind = "link"
    """What the row holds: a link to a page or a control."""
    target: str = ""
    """The page that a link opens; empty for controls."""
    namespace: str = ""
    """Namespace of the setting in `settings get NAMESPACE KEY`. `volume` holds audio streams; empty
    for links."""
    key: str = ""
    """Key of the setting; empty for links."""
    on: str = "1"
    """Stored value of a switch that is on, or of the choice that a radio button stands for."""
    off: str = "0"
    """Stored value of a switch that is off."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the settings app."""

    name: str
    """Name as in `Phone.stacks`, without its argument: `wifi`, `app_info`."""
    title: str
    """Title in the app bar."""
    activity: str
    """Class name as dumpsys prints it after `com.android.settings/`."""
    rows: tuple[Row, ...]
    """Rows from top to bottom."""


def _link(target: str, label: str, glyph: str, color: Color) -> Row:
    return Row(target, label, glyph, color, "link", target)


def _control(
    kind: RowKind, name: str, label: str, glyph: str, color: Color, setting: str, *stored: str
) -> Row:
    """A control for the setting NAMESPACE/KEY; `stored` replaces its on and off values, 1 and 0."""
    return Row(name, label, glyph, color, kind, "", *setting.split("/"), *stored)


_switch = partial(_control, "switch")
_main_switch = partial(_control, "main_switch")
_slider = partial(_control, "slider")
_radio = partial(_control, "radio")

FIRST_ROWS: tuple[Row, ...] = (
    _link("wifi", "Wi-Fi", "wifi", BLUE),
    _link("bluetooth", "Bluetooth", "bluetooth", INDIGO),
    _switch("airplane", "Airplane mode", "airplane", ORANGE, "global/airplane_mode_on"),
    _link("display", "Display", "sun", AMBER),
    _link("sound", "Sound", "speaker", RED),
    _link("battery", "Battery", "battery", GREEN),
    _link("location", "Location", "pin", PURPLE),
    _link("apps", "Apps", "grid", TEAL),
)
"""Rows of the root page that are visible without scrolling; their order varies by seed."""

LATER_ROWS: tuple[Row, ...] = (
    _link("storage", "Storage", "disk", BROWN),
    _link("date_time", "Date & time", "clock", PINK),
    _link("language", "Language & input", "globe", SLATE),
    _link("security", "Security", "lock", LIME),
    _link("developer", "Developer options", "braces", BLACK),
)
"""Rows of the root page below the fold; their order varies by seed. Developer options are hidden
until enabled, as on a device."""

TIMEOUTS: tuple[tuple[str, str, Color], ...] = (
    ("15000", "15 seconds", ORANGE),
    ("30000", "30 seconds", RED),
    ("60000", "1 minute", GREEN),
    ("120000", "2 minutes", BLUE),
    ("300000", "5 minutes", PURPLE),
    ("600000", "10 minutes", TEAL),
    ("1800000", "30 minutes", BROWN),
)
"""(stored value in ms, label, color) tuples."""

LANGUAGES: tuple[tuple[str, str, Color], ...] = (
    ("en-US", "English", BLUE),
    ("es-ES", "Spanish", RED),
    ("de-DE", "German", AMBER),
    ("fr-FR", "French", INDIGO),
)
"""(stored locale, label, color) tuples."""

WALLPAPERS: tuple[tuple[str, str, Color], ...] = (
    ("dawn", "Dawn", (236, 112, 99)),
    ("sea", "Sea", (36, 113, 163)),
    ("forest", "Forest", (30, 132, 73)),
    ("violet", "Violet", (118, 68, 158)),
    ("sand", "Sand", (202, 158, 90)),
)
"""(stored name, label, color at the top) tuples."""

SCREEN_LOCKS: tuple[tuple[str, str], ...] = (
    ("none", "None"),
    ("swipe", "Swipe"),
    ("pattern", "Pattern"),
    ("pin", "PIN"),
    ("password", "Password"),
)
"""(stored kind, label) pairs."""

_WIFI = (_main_switch("wifi", "Use Wi-Fi", "wifi", BLUE, "global/wifi_on"),)

_BLUETOOTH = (
    _main_switch("bluetooth", "Use Bluetooth", "bluetooth", INDIGO, "global/bluetooth_on"),
)

_DISPLAY = (
    _slider("brightness", "Brightness", "sun", AMBER, "system/screen_brightness"),
    _switch("dark_theme", "Dark theme", "moon", INDIGO, "secure/ui_night_mode", "2", "1"),
    _switch("auto_rotate", "Auto-rotate screen", "rotate", GREEN, "system/accelerometer_rotation"),
    _link("screen_timeout", "Screen timeout", "hourglass", ORANGE),
    _link("wallpaper", "Wallpaper", "flower", PINK),
)

_SOUND = (
    _slider("media_volume", "Media volume", "note", RED, "volume/music"),
    _slider("ring_volume", "Ring volume", "bell", BLUE, "volume/ring"),
    _slider("alarm_volume", "Alarm volume", "clock", GREEN, "volume/alarm"),
    _switch("dnd", "Do Not Disturb", "minus", PURPLE, "global/zen_mode"),
    _switch(
        "call_vibration", "Vibrate for calls", "handset", ORANGE, "system/vibrate_when_ringing"
    ),
)

_BATTERY = (_main_switch("battery_saver", "Battery saver", "leaf", GREEN, "global/low_power"),)

_LOCATION = (
    _main_switch("location", "Use location", "pin", PURPLE, "secure/location_mode", "3", "0"),
)

_DATE_TIME = (
    _switch("auto_time", "Set time automatically", "clock", PINK, "global/auto_time"),
    _switch("auto_zone", "Set time zone automatically", "globe", BLUE, "global/auto_time_zone"),
    _switch("time_24", "Use 24-hour format", "clock", SLATE, "system/time_12_24", "24", "12"),
)

_SECURITY = (
    _link("screen_lock", "Screen lock", "lock", LIME),
    _switch(
        "lock_notifications",
        "Lock screen notes",
        "bell",
        BLUE,
        "secure/lock_screen_show_notifications",
    ),
)

_DEVELOPER = (
    _switch("usb_debugging", "USB debugging", "braces", BLACK, "global/adb_enabled"),
    _switch("stay_awake", "Stay awake", "sun", AMBER, "global/stay_on_while_plugged_in", "7"),
    _switch("show_taps", "Show taps", "target", PURPLE, "system/show_touches"),
)

_SCREEN_TIMEOUT = tuple(
    _radio(f"timeout_{value}", label, "hourglass", color, "system/screen_off_timeout", value)
    for value, label, color in TIMEOUTS
)

_WALLPAPER = tuple(
    _radio(f"wallpaper_{name}", label, "flower", color, "wallpaper/name", name)
    for name, label, color in WALLPAPERS
)

_LANGUAGE = tuple(
    _radio(f"language_{locale[:2]}", label, "globe", color, "system/system_locales", locale)
    for locale, label, color in LANGUAGES
)

_SCREEN_LOCK = tuple(
    _radio(f"lock_{kind}", label, "lock", LIME, "lock/kind", kind) for kind, label in SCREEN_LOCKS
)

_PAGES: tuple[Page, ...] = (
    Page("root", "Settings", ".Settings", FIRST_ROWS + LATER_ROWS),
    Page("wifi", "Wi-Fi", ".Settings$WifiSettingsActivity", _WIFI),
    Page("bluetooth", "Bluetooth", ".Settings$BluetoothSettingsActivity", _BLUETOOTH),
    Page("display", "Display", ".Settings$DisplaySettingsActivity", _DISPLAY),
    Page("screen_timeout", "Screen timeout", ".Settings$ScreenTimeoutActivity", _SCREEN_TIMEOUT),
    Page("wallpaper", "Wallpaper", ".Settings$WallpaperSettingsActivity", _WALLPAPER),
    Page("sound", "Sound", ".Settings$SoundSettingsActivity", _SOUND),
    Page("battery", "Battery", ".Settings$PowerUsageSummaryActivity", _BATTERY),
    Page("location", "Location", ".Settings$LocationSettingsActivity", _LOCATION),
    Page("apps", "Apps", ".Settings$ManageApplicationsActivity", ()),
    Page("app_info", "App info", ".applications.InstalledAppDetails", ()),
    Page("network", "Network details", ".Settings$WifiDetailsSettingsActivity", ()),
    Page("storage", "Storage", ".Settings$StorageDashboardActivity", ()),
    Page("date_time", "Date & time", ".Settings$DateTimeSettingsActivity", _DATE_TIME),
    Page("language", "Language & input", ".Settings$LanguageAndInputSettingsActivity", _LANGUAGE),
    Page("security", "Security", ".Settings$SecurityDashboardActivity", _SECURITY),
    Page("screen_lock", "Screen lock", ".password.ChooseLockGeneric", _SCREEN_LOCK),
    Page(
        "developer",
        "Developer options",
        ".Settings$DevelopmentSettingsDashboardActivity",
        _DEVELOPER,
    ),
)

PAGES: dict[str, Page] = {page.name: page for page in _PAGES}
"""Every page, by name."""

PARENTS: dict[str, str] = {
    **{row.target: "root" for row in FIRST_ROWS + LATER_ROWS if row.target},
    "screen_timeout": "display",
    "wallpaper": "display",
    "app_info": "apps",
    "network": "wifi",
    "screen_lock": "security",
}
"""Maps a page to the page that links to it."""

SWITCHES: dict[str, Row] = {
    row.name: row for page in _PAGES for row in page.rows if row.kind in {"switch", "main_switch"}
}
"""Every switch, by name; the quick settings tiles share these rows."""

PAGE_OF: dict[str, str] = {
    row.name: page.name for page in _PAGES for row in page.rows if row.kind != "link"
}
"""Maps a control to its page."""

ACTIVITY_PAGES: dict[str, str] = {
    "battery": "battery",
    "wifi_settings": "wifi",
    "bluetooth_settings": "bluetooth",
    "display_settings": "display",
    "sound_settings": "sound",
    "language_input_settings": "language",
    "date_time_settings": "date_time",
    "storage_settings": "storage",
    "screen_lock_settings": "screen_lock",
    "developer_options_settings": "developer",
    "location_settings": "location",
}
"""Maps an answer of the device query `current_activity` to the page that it means."""
