"""The settings app as data: which pages there are, which rows they have, which stored setting a row shows and changes.

Rows that depend on the device (networks, apps) are added where the page is drawn.
"""

from dataclasses import dataclass
from typing import Literal

from producer.environments.android_sim.state.apps import Color

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

RowKind = Literal["link", "switch", "main_switch", "slider", "radio", "info"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a settings page."""

    name: str
    """`wifi` is drawn as the element `wifi_row`, `wifi_switch` or `wifi_slider`, by kind."""
    label: str
    glyph: str
    color: Color
    kind: RowKind = "link"
    target: str = ""
    """Page that a link opens."""
    namespace: str = ""
    key: str = ""
    """Where the setting is stored: `settings get NAMESPACE KEY`; a slider of the namespace `volume`
    is an audio stream."""
    on: str = "1"
    """Stored value of a switch that is on, or of the radio button that this row is."""
    off: str = "0"
    info: str = ""
    """Second line."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the settings app."""

    name: str
    title: str
    activity: str
    """Class as dumpsys prints it after `com.android.settings/`."""
    rows: tuple[Row, ...]


def _link(target: str, label: str, glyph: str, color: Color) -> Row:
    return Row(target, label, glyph, color, "link", target)


FIRST_ROWS: tuple[Row, ...] = (
    _link("wifi", "Wi-Fi", "wifi", BLUE),
    _link("bluetooth", "Bluetooth", "bluetooth", INDIGO),
    Row(
        "airplane", "Airplane mode", "airplane", ORANGE, "switch", "", "global", "airplane_mode_on"
    ),
    _link("display", "Display", "sun", AMBER),
    _link("sound", "Sound", "speaker", RED),
    _link("battery", "Battery", "battery", GREEN),
    _link("location", "Location", "pin", PURPLE),
    _link("apps", "Apps", "grid", TEAL),
)
"""The rows of the root page that fit the screen; their order varies by seed."""

LATER_ROWS: tuple[Row, ...] = (
    _link("storage", "Storage", "disk", BROWN),
    _link("date_time", "Date & time", "clock", PINK),
    _link("language", "Language & input", "globe", SLATE),
    _link("security", "Security", "lock", LIME),
    _link("developer", "Developer options", "braces", BLACK),
)
"""The rows below the fold; their order varies by seed. Developer options appear when they are
enabled, as on a device."""

TIMEOUTS: tuple[tuple[str, str, Color], ...] = (
    ("15000", "15 seconds", ORANGE),
    ("30000", "30 seconds", RED),
    ("60000", "1 minute", GREEN),
    ("120000", "2 minutes", BLUE),
    ("300000", "5 minutes", PURPLE),
    ("600000", "10 minutes", TEAL),
    ("1800000", "30 minutes", BROWN),
)
"""Stored milliseconds, name, colour of the row's sign."""

LANGUAGES: tuple[tuple[str, str, Color], ...] = (
    ("en-US", "English", BLUE),
    ("es-ES", "Spanish", RED),
    ("de-DE", "German", AMBER),
    ("fr-FR", "French", INDIGO),
)

WALLPAPERS: tuple[tuple[str, str, Color], ...] = (
    ("dawn", "Dawn", (236, 112, 99)),
    ("sea", "Sea", (36, 113, 163)),
    ("forest", "Forest", (30, 132, 73)),
    ("violet", "Violet", (118, 68, 158)),
    ("sand", "Sand", (202, 158, 90)),
)

_PAGES: tuple[Page, ...] = (
    Page("root", "Settings", ".Settings", FIRST_ROWS + LATER_ROWS),
    Page(
        "wifi",
        "Wi-Fi",
        ".Settings$WifiSettingsActivity",
        (Row("wifi", "Use Wi-Fi", "wifi", BLUE, "main_switch", "", "global", "wifi_on"),),
    ),
    Page(
        "bluetooth",
        "Bluetooth",
        ".Settings$BluetoothSettingsActivity",
        (
            Row(
                "bluetooth",
                "Use Bluetooth",
                "bluetooth",
                INDIGO,
                "main_switch",
                "",
                "global",
                "bluetooth_on",
            ),
        ),
    ),
    Page(
        "display",
        "Display",
        ".Settings$DisplaySettingsActivity",
        (
            Row(
                "brightness",
                "Brightness",
                "sun",
                AMBER,
                "slider",
                "",
                "system",
                "screen_brightness",
            ),
            Row(
                "dark_theme",
                "Dark theme",
                "moon",
                INDIGO,
                "switch",
                "",
                "secure",
                "ui_night_mode",
                "2",
                "1",
            ),
            Row(
                "auto_rotate",
                "Auto-rotate screen",
                "rotate",
                GREEN,
                "switch",
                "",
                "system",
                "accelerometer_rotation",
            ),
            Row("screen_timeout", "Screen timeout", "hourglass", ORANGE, "link", "screen_timeout"),
            Row("wallpaper", "Wallpaper", "flower", PINK, "link", "wallpaper"),
        ),
    ),
    Page(
        "screen_timeout",
        "Screen timeout",
        ".Settings$ScreenTimeoutActivity",
        tuple(
            Row(
                f"timeout_{value}",
                label,
                "hourglass",
                color,
                "radio",
                "",
                "system",
                "screen_off_timeout",
                value,
            )
            for value, label, color in TIMEOUTS
        ),
    ),
    Page(
        "wallpaper",
        "Wallpaper",
        ".Settings$WallpaperSettingsActivity",
        tuple(
            Row(f"wallpaper_{name}", label, "flower", color, "radio", "", "wallpaper", "name", name)
            for name, label, color in WALLPAPERS
        ),
    ),
    Page(
        "sound",
        "Sound",
        ".Settings$SoundSettingsActivity",
        (
            Row("media_volume", "Media volume", "note", RED, "slider", "", "volume", "music"),
            Row("ring_volume", "Ring volume", "bell", BLUE, "slider", "", "volume", "ring"),
            Row("alarm_volume", "Alarm volume", "clock", GREEN, "slider", "", "volume", "alarm"),
            Row("dnd", "Do Not Disturb", "minus", PURPLE, "switch", "", "global", "zen_mode"),
            Row(
                "call_vibration",
                "Vibrate for calls",
                "handset",
                ORANGE,
                "switch",
                "",
                "system",
                "vibrate_when_ringing",
            ),
        ),
    ),
    Page(
        "battery",
        "Battery",
        ".Settings$PowerUsageSummaryActivity",
        (
            Row(
                "battery_saver",
                "Battery saver",
                "leaf",
                GREEN,
                "main_switch",
                "",
                "global",
                "low_power",
            ),
        ),
    ),
    Page(
        "location",
        "Location",
        ".Settings$LocationSettingsActivity",
        (
            Row(
                "location",
                "Use location",
                "pin",
                PURPLE,
                "main_switch",
                "",
                "secure",
                "location_mode",
                "3",
                "0",
            ),
        ),
    ),
    Page("apps", "Apps", ".Settings$ManageApplicationsActivity", ()),
    Page("app_info", "App info", ".applications.InstalledAppDetails", ()),
    Page("network", "Network details", ".Settings$WifiDetailsSettingsActivity", ()),
    Page("storage", "Storage", ".Settings$StorageDashboardActivity", ()),
    Page(
        "date_time",
        "Date & time",
        ".Settings$DateTimeSettingsActivity",
        (
            Row(
                "auto_time",
                "Set time automatically",
                "clock",
                PINK,
                "switch",
                "",
                "global",
                "auto_time",
            ),
            Row(
                "auto_zone",
                "Set time zone automatically",
                "globe",
                BLUE,
                "switch",
                "",
                "global",
                "auto_time_zone",
            ),
            Row(
                "time_24",
                "Use 24-hour format",
                "clock",
                SLATE,
                "switch",
                "",
                "system",
                "time_12_24",
                "24",
                "12",
            ),
        ),
    ),
    Page(
        "language",
        "Language & input",
        ".Settings$LanguageAndInputSettingsActivity",
        tuple(
            Row(
                f"language_{value[:2]}",
                label,
                "globe",
                color,
                "radio",
                "",
                "system",
                "system_locales",
                value,
            )
            for value, label, color in LANGUAGES
        ),
    ),
    Page(
        "security",
        "Security",
        ".Settings$SecurityDashboardActivity",
        (
            _link("screen_lock", "Screen lock", "lock", LIME),
            Row(
                "lock_notifications",
                "Lock screen notes",
                "bell",
                BLUE,
                "switch",
                "",
                "secure",
                "lock_screen_show_notifications",
            ),
        ),
    ),
    Page(
        "screen_lock",
        "Screen lock",
        ".password.ChooseLockGeneric",
        tuple(
            Row(f"lock_{value}", label, "lock", LIME, "radio", "", "lock", "kind", value)
            for value, label in (
                ("none", "None"),
                ("swipe", "Swipe"),
                ("pattern", "Pattern"),
                ("pin", "PIN"),
                ("password", "Password"),
            )
        ),
    ),
    Page(
        "developer",
        "Developer options",
        ".Settings$DevelopmentSettingsDashboardActivity",
        (
            Row(
                "usb_debugging",
                "USB debugging",
                "braces",
                BLACK,
                "switch",
                "",
                "global",
                "adb_enabled",
            ),
            Row(
                "stay_awake",
                "Stay awake",
                "sun",
                AMBER,
                "switch",
                "",
                "global",
                "stay_on_while_plugged_in",
                "7",
            ),
            Row("show_taps", "Show taps", "target", PURPLE, "switch", "", "system", "show_touches"),
        ),
    ),
)

PAGES: dict[str, Page] = {page.name: page for page in _PAGES}

PARENTS: dict[str, str] = {
    **{row.target: "root" for row in FIRST_ROWS + LATER_ROWS if row.target},
    "screen_timeout": "display",
    "wallpaper": "display",
    "app_info": "apps",
    "network": "wifi",
    "screen_lock": "security",
}
"""Page -> the page that links to it."""

SWITCHES: dict[str, Row] = {
    row.name: row for page in _PAGES for row in page.rows if row.kind in {"switch", "main_switch"}
}
"""Every switch by name; quick settings tiles show and flip the same rows."""

PAGE_OF: dict[str, str] = {
    row.name: page.name for page in _PAGES for row in page.rows if row.kind != "link"
}
"""Control -> the page it stands on."""
