"""The pages of all apps except settings; apps without pages of their own show a plain one."""

from collections.abc import Callable
from urllib.parse import quote_plus

from producer.agents.android.sim.screens.parts import (
    CONTENT_TOP_PX,
    ROW_PX,
    WHITE_TEXT,
    background_of,
    bars,
    is_dark,
    keyboard,
    page_bars,
    scrolled,
    text,
    text_color_of,
    text_field,
)
from producer.agents.android.sim.screens.widget import NAV_TOP_PX, WIDTH_PX, Look, Scene, Widget, do
from producer.agents.android.sim.state.apps import (
    BY_PACKAGE,
    CAMERA,
    CHROME,
    CONTACTS,
    DIALER,
    GALLERY,
    MESSAGES,
    Color,
)
from producer.agents.android.sim.state.phone import Phone
from producer.agents.android.sim.state.settings_tree import BLUE, GREEN, ORANGE, PURPLE, RED, TEAL

SITE_COLORS: tuple[Color, ...] = (BLUE, GREEN, PURPLE, RED)
PEOPLE_COLORS: tuple[Color, ...] = (RED, BLUE, GREEN, ORANGE, PURPLE, TEAL)
MESSAGE_BLUE: Color = (41, 121, 255)
CONTACTS_TEAL: Color = (0, 172, 193)
GREY: Color = (170, 175, 186)
DIAL_KEYS = "123456789*0#"


def page(phone: Phone) -> Scene:
    """The open page of the app in the foreground."""
    return _PAGES.get(phone.foreground, _plain)(phone)


def _page(phone: Phone, title: str, widgets: list[Widget], max_scroll: int = 0) -> Scene:
    over = page_bars(phone, title, with_arrow=phone.page != "main")
    return Scene(background_of(phone), (*widgets, *over, *keyboard(phone)), max_scroll)


def _chosen(colors: tuple[Color, ...], words: str) -> Color:
    """One of the colors, always the same for the same words."""
    return colors[sum(map(ord, words)) % len(colors)]


def _chrome(phone: Phone) -> Scene:
    kind, _, argument = phone.page.partition(":")
    urls = {"main": "", "site": argument}
    url = urls.get(kind, f"google.com/search?q={quote_plus(argument)}")
    bar = text_field(phone, "url_bar", idle_text=url)
    if kind == "main":
        body = [
            Look("large_icon", WIDTH_PX, 130, glyph="chrome").at(0, 130),
            text("Where to?", text_color_of(phone), 26, y=280, height=40),
        ]
    else:
        title = argument if kind == "site" else f"Results: {argument}"
        body = [
            Look("block", WIDTH_PX, 120, color=_chosen(SITE_COLORS, argument)).at(0, 96),
            text(title, WHITE_TEXT, 26, y=126, height=60),
        ]
        body += [
            Look("block", WIDTH_PX - 40 - 60 * (line % 2), 16, color=GREY).at(20, 240 + 34 * line)
            for line in range(6)
        ]
    over = bars(phone, text_color=text_color_of(phone), background=background_of(phone))
    return Scene(background_of(phone), (*body, bar, *keyboard(phone), *over))


def _dialer(phone: Phone) -> Scene:
    number = phone.fields.get("dial_number", "")
    widgets = [text(number, text_color_of(phone), 32, y=90, height=60)]
    color: Color = (44, 70, 56) if is_dark(phone) else (214, 236, 222)
    for index, digit in enumerate(DIAL_KEYS):
        row, column = divmod(index, 3)
        look = Look("button", 96, 76, digit, color=color, state="30")
        effect = do(Phone.write, "dial_number", digit)
        widgets.append(look.at(24 + column * 108, 160 + row * 84, f"dial_{digit}", effect))
    widgets.append(Look("button", 84, 84, glyph="handset", color=(0, 168, 67)).at(138, 502))
    erase = Look("button", 72, 72, glyph="erase", color=GREY)
    widgets.append(erase.at(250, 508, "dial_erase", do(Phone.erase, "dial_number")))
    return _page(phone, "Phone", widgets)


def _messages(phone: Phone) -> Scene:
    kind, _, argument = phone.page.partition(":")
    if kind == "main":
        widgets = [
            _person(phone, index, name, sub, f"chat:{name}")
            for index, (name, sub) in enumerate(phone.appearance.conversations)
        ]
        new = Look("button", 168, 68, "New chat", glyph="plus", color=MESSAGE_BLUE)
        widgets.append(new.at(176, 512, "new_message", do(Phone.open_page, "compose")))
        return _page(phone, "Messages", widgets)
    compose = text_field(phone, "message_text", y=None if phone.focus is None else 338)
    if kind == "chat":
        last = dict(phone.appearance.conversations).get(argument, "")
        bubble = Look("message_bubble", 230, 52, last, color=MESSAGE_BLUE).at(16, 100)
        return _page(phone, argument, [bubble, compose])
    to = text_field(phone, "message_to")
    return _page(phone, "New message", [to, compose])


def _person(
    phone: Phone, index: int, name: str, sub: str, target: str, top_px: int = CONTENT_TOP_PX
) -> Widget:
    color = _chosen(PEOPLE_COLORS, name)
    look = Look("row", WIDTH_PX, ROW_PX, name, sub, "person", color, dark=is_dark(phone))
    return look.at(0, top_px + index * ROW_PX, f"person_{index}", do(Phone.open_page, target))


def _camera(phone: Phone) -> Scene:
    photos = phone.appearance.photos
    color = photos[phone.num_photos_taken % len(photos)]
    return Scene(
        (12, 14, 18),
        (
            Look("photo", WIDTH_PX, 420, color=color).at(0, 60),
            text(f"{phone.num_photos_taken} taken", WHITE_TEXT, 18, y=22, height=40),
            Look("shutter", 92, 92).at(134, 492, "shutter", do(_take_photo)),
            *bars(phone, text_color=WHITE_TEXT),
        ),
    )


def _take_photo(phone: Phone) -> None:
    phone.num_photos_taken += 1
    phone.files.add(f"/sdcard/DCIM/Camera/IMG_{phone.num_photos_taken:03d}.jpg")


def _gallery(phone: Phone) -> Scene:
    kind, _, argument = phone.page.partition(":")
    photos = phone.appearance.photos
    if kind == "photo":
        photo = Look("photo", WIDTH_PX, 420, color=_chosen(photos, argument)).at(0, 120)
        return _page(phone, argument.rsplit("/", 1)[-1], [photo])
    items = []
    for index, name in enumerate(sorted(phone.files, reverse=True)):
        row, column = divmod(index, 2)
        look = Look("photo", 172, 160, color=_chosen(photos, name))
        slug = "screenshot" if "Screenshots" in name else "photo"
        effect = do(Phone.open_page, f"photo:{name}")
        items.append(look.at(5 + column * 178, 8 + row * 168, f"{slug}_{index}", effect))
    shown, max_scroll = scrolled(phone, items, CONTENT_TOP_PX, NAV_TOP_PX)
    return _page(phone, "Gallery", shown, max_scroll)


def _contacts(phone: Phone) -> Scene:
    kind, _, argument = phone.page.partition(":")
    if kind == "create":
        entry = text_field(phone, "contact_name")
        save = Look("button", 150, 64, "Save", color=CONTACTS_TEAL)
        save_button = save.at(105, 180, "save_contact", do(_save_contact))
        return _page(phone, "New contact", [entry, save_button])
    if kind == "contact":
        hero = Look("large_icon", WIDTH_PX, 130, glyph="person", color=CONTACTS_TEAL).at(0, 110)
        name = text(argument, text_color_of(phone), 28, y=260, height=40)
        return _page(phone, argument, [hero, name])
    search = text_field(phone, "contact_search")
    wanted = phone.fields.get("contact_search", "").lower()
    found = [name for name in sorted(phone.contacts) if wanted in name.lower()][:5]
    people = [
        _person(phone, index, name, "", f"contact:{name}", CONTENT_TOP_PX + 62)
        for index, name in enumerate(found)
    ]
    new = Look("button", 84, 76, glyph="plus", color=CONTACTS_TEAL)
    new_button = new.at(264, 508, "new_contact", do(Phone.open_page, "create"))
    return _page(phone, "Contacts", [*people, search, new_button])


def _save_contact(phone: Phone) -> None:
    phone.contacts.append(phone.fields.pop("contact_name", "").strip() or "(no name)")
    phone.back()
    phone.stacks[phone.foreground][:] = ["main"]


def _plain(phone: Phone) -> Scene:
    app = BY_PACKAGE[phone.foreground]
    hero = Look("large_icon", WIDTH_PX, 180, glyph=app.glyph, color=app.color).at(0, 190)
    return _page(phone, app.label, [hero, text(app.label, text_color_of(phone), 32, 390, 50)])


_PAGES: dict[str, Callable[[Phone], Scene]] = {
    CHROME: _chrome,
    DIALER: _dialer,
    MESSAGES: _messages,
    CAMERA: _camera,
    GALLERY: _gallery,
    CONTACTS: _contacts,
}
