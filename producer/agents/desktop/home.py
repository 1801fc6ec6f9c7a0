"""The folder of an episode: a home with the applications' settings, and their environment."""

import os
import tempfile
from pathlib import Path
from pwd import getpwnam
from typing import Final

APPLICATIONS: Final = {"Editor": "l3afpad", "Calculator": "galculator", "Files": "pcmanfm"}
"""Maps the task bar's buttons, from the left, to their programs."""
BAR_HEIGHT_PX: Final = 28
DIED: Final = (
    "|| {{ s=$?; [ $s -gt 128 ] &amp;&amp;"
    ' echo {0} ended with signal $((s-128)) >> "$HOME/../ended"; }}'
)
"""Appended to an application's command. A shell's exit status above 128 means a signal."""
FOLDERS: Final = (".config/gtk-3.0", ".config/pcmanfm/default", "Documents", "Pictures")
FILES: Final = {
    ".config/gtk-3.0/settings.ini": """\
[Settings]
gtk-cursor-blink=0
gtk-enable-animations=0
gtk-font-name=DejaVu Sans 10
""",
    ".gtkrc-2.0": 'gtk-cursor-blink=0\ngtk-font-name="DejaVu Sans 10"\n',
    ".config/pcmanfm/default/pcmanfm.conf": "[ui]\nshow_statusbar=0\n",
}
"""Disabled because a blinking caret and the disk's free space would make screens differ."""
WINDOW_MANAGER_FILE: Final = ".jwmrc"
WINDOW_MANAGER: Final = """\
<?xml version="1.0"?>
<JWM>
  <Tray x="0" y="-1" height="{height}" autohide="off">
{buttons}
    <TaskList maxwidth="160"/>
  </Tray>
  <WindowStyle><Font>DejaVu Sans-10</Font></WindowStyle>
  <TrayStyle><Font>DejaVu Sans-10</Font></TrayStyle>
  <MenuStyle><Font>DejaVu Sans-10</Font></MenuStyle>
  <PopupStyle enabled="false"/>
  <Desktops width="1" height="1"><Background type="solid">#3b6ea5</Background></Desktops>
  <FocusModel>click</FocusModel>
  <Key mask="A" key="F4">close</Key>
  <Key mask="A" key="Tab">nextstacked</Key>
</JWM>
"""
BUTTON: Final = (
    '    <TrayButton label="{label}"><Button mask="123">exec:{command}</Button></TrayButton>'
)
UNPRIVILEGED: Final = "nobody"
"""User that the applications run as if we are root, because a policy explores."""


def user() -> int | None:
    """The user and group id of the applications; None for our own."""
    return None if os.geteuid() else getpwnam(UNPRIVILEGED).pw_uid


def make_folder() -> Path:
    """Create a new folder with `home`, `run` and `tmp`. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix="cua-desktop-"))
    home = folder / "home"
    for name in ("run", "tmp", *(f"home/{name}" for name in FOLDERS)):
        (folder / name).mkdir(parents=True, mode=0o700)
    buttons = "\n".join(
        BUTTON.format(label=label, command=f"{program} {DIED.format(program)}")
        for label, program in APPLICATIONS.items()
    )
    bar = WINDOW_MANAGER.format(height=BAR_HEIGHT_PX, buttons=buttons)
    for name, content in {**FILES, WINDOW_MANAGER_FILE: bar}.items():
        (home / name).write_text(content)
    owner = user()
    if owner is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, owner, owner)
    return folder


def environment_of(folder: Path) -> dict[str, str]:
    """Environment variables of the applications. None of ours are passed on, so no keys leak."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "home" / ".config"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        # Applications run without a session bus, accessibility and network file systems.
        "DBUS_SESSION_BUS_ADDRESS": "disabled:",
        "NO_AT_BRIDGE": "1",
        "GSETTINGS_BACKEND": "memory",
        "GIO_USE_VFS": "local",
    }
