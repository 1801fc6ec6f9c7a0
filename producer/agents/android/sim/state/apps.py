"""The apps that can be installed: package, label, icon, main activity."""

from dataclasses import dataclass

Color = tuple[int, int, int]
"""RGB, 0-255 each."""

LAUNCHER = "com.android.launcher3"
SETTINGS = "com.android.settings"
CHROME = "com.android.chrome"
DIALER = "com.android.dialer"
MESSAGES = "com.android.messaging"
CAMERA = "com.android.camera"
GALLERY = "com.android.gallery"
CONTACTS = "com.android.contacts"
TEST_APP = "com.example.testapp"


@dataclass(frozen=True, slots=True)
class App:
    """One installable app."""

    package: str
    """Android package name: `com.android.chrome`."""
    key: str
    """Prefix of its elements' names: `chrome` gives `chrome_icon`."""
    label: str
    """Name under the icon."""
    glyph: str
    """Pictogram on the icon, a key of `painting.glyphs.GLYPHS`."""
    color: Color
    """Background of the icon."""
    activity: str
    """Main activity, as dumpsys prints it after `package/`."""


APPS: tuple[App, ...] = (
    App(SETTINGS, "settings", "Settings", "gear", (96, 108, 122), ".Settings"),
    App(
        CHROME, "chrome", "Chrome", "chrome", (255, 255, 255), "com.google.android.apps.chrome.Main"
    ),
    App(DIALER, "dialer", "Phone", "handset", (0, 168, 67), ".main.impl.MainActivity"),
    App(
        MESSAGES,
        "messages",
        "Messages",
        "bubble",
        (41, 121, 255),
        ".ui.conversationlist.ConversationListActivity",
    ),
    App(CAMERA, "camera", "Camera", "camera", (38, 50, 56), ".CameraActivity"),
    App(GALLERY, "gallery", "Gallery", "flower", (255, 179, 0), ".GalleryActivity"),
    App(CONTACTS, "contacts", "Contacts", "person", (0, 172, 193), ".activities.PeopleActivity"),
    App("com.android.deskclock", "clock", "Clock", "clock", (63, 60, 187), ".DeskClock"),
    App(
        "com.android.calculator2",
        "calculator",
        "Calculator",
        "plusminus",
        (244, 104, 11),
        ".Calculator",
    ),
    App(
        "com.android.calendar",
        "calendar",
        "Calendar",
        "calendar",
        (229, 57, 53),
        ".AllInOneActivity",
    ),
    App(
        "com.android.documentsui",
        "files",
        "Files",
        "folder",
        (141, 110, 99),
        ".files.FilesActivity",
    ),
    App("com.android.music", "music", "Music", "note", (213, 0, 190), ".MusicBrowserActivity"),
    App("com.android.maps", "maps", "Maps", "pin", (124, 179, 66), ".MapsActivity"),
    App("com.android.email", "email", "Email", "envelope", (183, 28, 28), ".activity.Welcome"),
    App("com.android.notes", "notes", "Notes", "lines", (255, 214, 10), ".NotesActivity"),
    App(TEST_APP, "test_app", "Test app", "flask", (136, 14, 79), ".MainActivity"),
)

BY_PACKAGE: dict[str, App] = {app.package: app for app in APPS}

CORE: tuple[str, ...] = (SETTINGS, CHROME, DIALER, MESSAGES, CAMERA, GALLERY, CONTACTS)
"""Always on the first home page or in the dock, as on a new phone."""
