"""Output of `dumpsys` and `uiautomator dump`, in the format of a real device."""

import re
from xml.sax.saxutils import quoteattr

from producer.agents.android.sim.screens import scene
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.agents.android.sim.state.apps import (
    BY_PACKAGE,
    CONTACTS,
    GALLERY,
    LAUNCHER,
    MESSAGES,
    SETTINGS,
)
from producer.agents.android.sim.state.phone import VOLUME_STEPS, Phone
from producer.agents.android.sim.state.settings_tree import PAGES

SYSTEM_UI = "com.android.systemui"
RECENTS_ACTIVITY = f"{LAUNCHER}/com.android.quickstep.RecentsActivity"
HOME_ACTIVITY = f"{LAUNCHER}/.uioverrides.QuickstepLauncher"
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
STREAMS = {"music": "STREAM_MUSIC", "ring": "STREAM_RING", "alarm": "STREAM_ALARM"}
PAGE_ACTIVITIES: dict[tuple[str, str], str] = {
    (MESSAGES, "compose"): ".ui.conversation.LaunchConversationActivity",
    (MESSAGES, "chat"): ".ui.conversation.ConversationActivity",
    (CONTACTS, "create"): ".activities.ContactEditorActivity",
    (CONTACTS, "contact"): ".quickcontact.QuickContactActivity",
    (GALLERY, "photo"): ".PhotoActivity",
}
"""Maps (package, kind of page) to an activity, for pages that are not part of the main activity."""


def component(phone: Phone) -> str:
    """The resumed activity, as `package/class`."""
    if phone.overlay == "recents":
        return RECENTS_ACTIVITY
    if phone.foreground == LAUNCHER:
        return HOME_ACTIVITY
    kind = phone.page.partition(":")[0]
    if phone.foreground == SETTINGS:
        return f"{SETTINGS}/{PAGES[kind].activity}"
    activity = PAGE_ACTIVITIES.get((phone.foreground, kind), BY_PACKAGE[phone.foreground].activity)
    return f"{phone.foreground}/{activity}"


def window(phone: Phone) -> str:
    """`dumpsys window`."""
    focus = component(phone)
    package, _, name = focus.partition("/")
    shown = f"{package}/{package}{name}" if name.startswith(".") else focus
    window_name = (
        "NotificationShade"
        if phone.overlay in {"notifications", "quick_settings"} or phone.is_asleep
        else shown
    )
    awake, state = ("OFF", "SLEEP") if phone.is_asleep else ("ON", "AWAKE")
    return (
        "WINDOW MANAGER POLICY STATE (dumpsys window policy)\n   "
        f" mScreenOnEarly={str(not phone.is_asleep).lower()}"
        f" interactiveState=INTERACTIVE_STATE_{state}\nWINDOW MANAGER DISPLAY CONTENTS (dumpsys"
        f" window displays)\n  Display: mDisplayId=0 init={WIDTH_PX}x{HEIGHT_PX} 160dpi"
        f" state={awake}\n  mCurrentFocus=Window{{{_handle(window_name)} u0 {window_name}}}\n "
        f" mFocusedApp=ActivityRecord{{{_handle(focus)} u0 {focus} t{_task(package)}}}\n"
    )


def activities(phone: Phone) -> str:
    """`dumpsys activity activities`."""
    focus = component(phone)
    package = focus.partition("/")[0]
    kind, _, argument = phone.page.partition(":")
    data = ""
    if phone.overlay != "recents" and kind == "app_info":
        data = f" act=android.settings.APPLICATION_DETAILS_SETTINGS dat=package:{argument}"
    elif phone.overlay != "recents" and kind == "photo":
        data = f" act=android.intent.action.VIEW dat=file://{argument} typ=image/*"
    record = f"ActivityRecord{{{_handle(focus)} u0 {focus} t{_task(package)}}}"
    return (
        "ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\n"
        "Display #0 (activities from top to bottom):\n"
        f"  * Task{{{_handle(package)} #{_task(package)} type=standard A=10086:{package}}}\n"
        f"    * Hist  #0: {record}\n"
        f"        Intent {{{data} flg=0x10000000 cmp={focus} }}\n"
        f"  mResumedActivity: {record}\n"
        f"  topResumedActivity={record}\n"
    )


def audio(phone: Phone) -> str:
    """`dumpsys audio`."""
    lines = ["Stream volumes (device: index)"]
    for stream, name in STREAMS.items():
        index = phone.get("volume", stream)
        muted = str(index == "0").lower()
        lines.append(
            f"- {name}:\n   Muted: {muted}\n   Min: 0\n   Max: {VOLUME_STEPS}\n  "
            f" streamVolume:{index}\n   Current: 2 (speaker): {index}"
        )
    return "\n".join(lines) + "\n"


def notification(phone: Phone) -> str:
    """`dumpsys notification`."""
    lines = ["Current Notification Manager state:", "  Notification List:"]
    for number, note in enumerate(phone.notifications):
        lines.append(
            f"    NotificationRecord(0x{_handle(note.title)}: pkg={note.package}"
            f" user=UserHandle{{0}} id={number} tag=null importance=3)"
        )
        lines.append(f"      android.title=String ({note.title})")
    return "\n".join(lines) + "\n"


def wallpaper(phone: Phone) -> str:
    """`dumpsys wallpaper`; prints the wallpaper's name where a device prints the image file."""
    return (
        "System wallpaper state:\n User 0: id=2\n Display state:\n "
        f" mName={phone.get('wallpaper', 'name')}\n  mAllowBackup=true\n"
    )


def view_tree(phone: Phone) -> str:
    """`uiautomator dump /dev/tty`: the view tree as XML, then the line that a device appends."""
    shown = scene(phone)
    package = component(phone).partition("/")[0]
    if phone.overlay in {"notifications", "quick_settings"}:
        package = SYSTEM_UI
    bounds = f"[0,0][{WIDTH_PX},{HEIGHT_PX}]"
    is_named = shown.description and " " not in shown.description
    container = f"{package}:id/{shown.description}" if is_named else f"{package}:id/content"
    words = "" if is_named else shown.description
    nodes = [_node("", container, package, words, bounds, "")]
    for index, widget in enumerate(shown.widgets):
        look = widget.look
        if look.kind == "block" or not (look.label or widget.name):
            continue
        identifier = (
            f"{package}:id/{widget.resource_id or widget.name}"
            if widget.resource_id or widget.name
            else ""
        )
        box = f"[{widget.x},{widget.y}][{widget.x + look.width},{widget.y + look.height}]"
        checked = str(look.state in {"on", "selected"}).lower()
        extra = (
            f' index="{index}" checked="{checked}" focused="{str(look.state == "focused").lower()}"'
        )
        nodes.append(_node(look.label, identifier, package, "", box, extra))
    body = "".join(nodes)
    dump = (
        "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy"
        f' rotation="0">{body}</hierarchy>'
    )
    return dump + "UI hierchary dumped to: /dev/tty\n"


def _node(
    text: str, identifier: str, package: str, description: str, bounds: str, extra: str
) -> str:
    return (
        f"<node text={quoteattr(NOT_IN_XML.sub('.', text))} resource-id={quoteattr(identifier)}"
        f" package={quoteattr(package)}"
        f' content-desc={quoteattr(description)} bounds="{bounds}"{extra} />'
    )


def _handle(text: str) -> str:
    """A deterministic substitute for the object hash that a device prints."""
    return (
        f"{sum(index * ord(character) for index, character in enumerate(text, 17)) % 0xFFFFFFF:07x}"
    )


def _task(package: str) -> int:
    return 2 if package in {LAUNCHER, SYSTEM_UI} else 10 + sum(map(ord, package)) % 80
