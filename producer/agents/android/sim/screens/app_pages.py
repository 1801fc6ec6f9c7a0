"""The pages of all apps except settings; apps without pages of their own show a plain one."""

from collections.abc import Callable
from urllib.parse import quote_plus

from producer.agents.android.sim.screens.parts import (
    BLACK_TEXT,
    CONTENT_TOP_PX,
    ROW_PX,
    WHITE_TEXT,
    bars,
    is_dark,
    keyboard,
    page_bars,
    scrolled,
    text_field,
)
from producer.agents.android.sim.screens.widget import (
    NAV_TOP_PX,
    WIDTH_PX,
    Look,
    Scene,
    Widget,
)
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
from producer.agents.android.sim.state.effects import OpenPage, PressButton, TypeKey
from producer.agents.android.sim.state.phone import Phone

LIGHT_BACKGROUND: Color = (246, 247, 250)
DARK_BACKGROUND: Color = (16, 17, 21)
SITE_COLORS: tuple[Color, ...] = ((30, 136, 229), (56, 158, 62), (142, 36, 170), (229, 45, 50))
PEOPLE_COLORS: tuple[Color, ...] = (
    (229, 45, 50),
    (30, 136, 229),
    (56, 158, 62),
    (245, 124, 0),
    (142, 36, 170),
    (0, 150, 136),
)
DIAL_KEYS = "123456789*0#"


def page(phone: Phone) -> Scene:
    """The open page of the app in the foreground."""
    return _PAGES.get(phone.foreground, _plain)(phone)


def _background(phone: Phone) -> Color:
    return DARK_BACKGROUND if is_dark(phone) else LIGHT_BACKGROUND


def _text_color(phone: Phone) -> Color:
    return WHITE_TEXT if is_dark(phone) else BLACK_TEXT


def _page(phone: Phone, title: str, widgets: list[Widget], max_scroll: int = 0) -> Scene:
    over = page_bars(phone, title, with_arrow=phone.page != "main")
    return Scene(_background(phone), (*widgets, *over, *keyboard(phone)), max_scroll)


def _chrome(phone: Phone) -> Scene:
    kind, _, argument = phone.page.partition(":")
    box = (10, 34, WIDTH_PX - 20, 50)
    url = (
        ""
        if kind == "main"
        else argument
        if kind == "site"
        else f"google.com/search?q={quote_plus(argument)}"
    )
    bar = text_field(
        phone,
        "url_bar",
        box,
        "Search or type URL",
        glyph="search",
        resource_id="url_bar",
        idle_text=url,
    )
    text_color = _text_color(phone)
    if kind == "main":
        body = [
            Widget(
                Look("large_icon", WIDTH_PX, 130, glyph="chrome", color=(255, 255, 255)), 0, 130
            ),
            Widget(Look("text", WIDTH_PX, 40, "Where to?", color=text_color, state="26"), 0, 280),
        ]
    else:
        color = SITE_COLORS[sum(map(ord, argument)) % len(SITE_COLORS)]
        body = [
            Widget(Look("block", WIDTH_PX, 120, color=color), 0, 96),
            Widget(
                Look(
                    "text",
                    WIDTH_PX,
                    60,
                    argument if kind == "site" else f"Results: {argument}",
                    color=WHITE_TEXT,
                    state="26",
                ),
                0,
                126,
            ),
        ]
        body += [
            Widget(
                Look("block", WIDTH_PX - 40 - 60 * (line % 2), 16, color=(170, 175, 186)),
                20,
                240 + 34 * line,
            )
            for line in range(6)
        ]
    return Scene(
        _background(phone),
        (
            *body,
            bar,
            *keyboard(phone),
            *bars(phone, text_color=text_color, background=_background(phone)),
        ),
    )


def _dialer(phone: Phone) -> Scene:
    number = phone.fields.get("dial_number", "")
    widgets = [
        Widget(Look("text", WIDTH_PX, 60, number, color=_text_color(phone), state="32"), 0, 90)
    ]
    for index, digit in enumerate(DIAL_KEYS):
        row, column = divmod(index, 3)
        look = Look(
            "button",
            96,
            76,
            digit,
            color=(214, 236, 222) if not is_dark(phone) else (44, 70, 56),
            state="30",
        )
        widgets.append(
            Widget(
                look,
                24 + column * 108,
                160 + row * 84,
                f"dial_{digit}",
                TypeKey(digit, "dial_number"),
            )
        )
    widgets.append(Widget(Look("button", 84, 84, glyph="handset", color=(0, 168, 67)), 138, 502))
    widgets.append(
        Widget(
            Look("button", 72, 72, glyph="erase", color=(170, 175, 186)),
            250,
            508,
            "dial_erase",
            TypeKey("backspace", "dial_number"),
        )
    )
    return _page(phone, "Phone", widgets)


def _messages(phone: Phone) -> Scene:
    kind, _, argument = phone.page.partition(":")
    if kind == "main":
        widgets = [
            _person(phone, index, name, sub, f"chat:{name}")
            for index, (name, sub) in enumerate(phone.appearance.conversations)
        ]
        fab = Look("button", 168, 68, "New chat", glyph="plus", color=(41, 121, 255))
        return _page(
            phone, "Messages", [*widgets, Widget(fab, 176, 512, "new_message", OpenPage("compose"))]
        )
    top = NAV_TOP_PX - 60 if phone.focus is None else 338
    compose = text_field(
        phone,
        "message_text",
        (10, top, WIDTH_PX - 20, 52),
        "Text message",
        resource_id="compose_message_text",
    )
    if kind == "chat":
        last = dict(phone.appearance.conversations).get(argument, "")
        bubble = Widget(Look("message_bubble", 230, 52, last, color=(41, 121, 255)), 16, 100)
        return _page(phone, argument, [bubble, compose])
    to = text_field(
        phone,
        "message_to",
        (10, 96, WIDTH_PX - 20, 52),
        "To: name or number",
        resource_id="recipient_text_view",
    )
    return _page(phone, "New message", [to, compose])


def _person(phone: Phone, index: int, name: str, sub: str, target: str) -> Widget:
    color = PEOPLE_COLORS[sum(map(ord, name)) % len(PEOPLE_COLORS)]
    look = Look("row", WIDTH_PX, ROW_PX, name, sub, "person", color, dark=is_dark(phone))
    return Widget(look, 0, CONTENT_TOP_PX + index * ROW_PX, f"person_{index}", OpenPage(target))


def _camera(phone: Phone) -> Scene:
    color = phone.appearance.photos[phone.num_photos_taken % len(phone.appearance.photos)]
    widgets = [
        Widget(Look("photo", WIDTH_PX, 420, color=color), 0, 60),
        Widget(
            Look(
                "text",
                WIDTH_PX,
                40,
                f"{phone.num_photos_taken} taken",
                color=WHITE_TEXT,
                state="18",
            ),
            0,
            22,
        ),
        Widget(Look("shutter", 92, 92), 134, 492, "shutter", PressButton("shutter")),
    ]
    return Scene((12, 14, 18), (*widgets, *bars(phone, text_color=WHITE_TEXT)))


def _gallery(phone: Phone) -> Scene:
    kind, _, argument = phone.page.partition(":")
    names = sorted(phone.files, reverse=True)
    if kind == "photo":
        color = _photo_color(phone, argument)
        return _page(
            phone,
            argument.rsplit("/", 1)[-1],
            [Widget(Look("photo", WIDTH_PX, 420, color=color), 0, 120)],
        )
    items = []
    for index, name in enumerate(names):
        row, column = divmod(index, 2)
        look = Look("photo", 172, 160, color=_photo_color(phone, name))
        slug = "screenshot" if "Screenshots" in name else "photo"
        items.append(
            Widget(
                look, 5 + column * 178, 8 + row * 168, f"{slug}_{index}", OpenPage(f"photo:{name}")
            )
        )
    shown, max_scroll = scrolled(phone, items, CONTENT_TOP_PX, NAV_TOP_PX)
    return _page(phone, "Gallery", shown, max_scroll)


def _photo_color(phone: Phone, name: str) -> Color:
    return phone.appearance.photos[sum(map(ord, name)) % len(phone.appearance.photos)]


def _contacts(phone: Phone) -> Scene:
    if phone.page == "create":
        entry = text_field(
            phone,
            "contact_name",
            (10, 100, WIDTH_PX - 20, 56),
            "Name",
            glyph="person",
            resource_id="contact_name",
        )
        save = Widget(
            Look("button", 150, 64, "Save", color=(0, 172, 193)),
            105,
            180,
            "save_contact",
            PressButton("save_contact"),
        )
        return _page(phone, "New contact", [entry, save])
    if phone.page.startswith("contact:"):
        argument = phone.page.partition(":")[2]
        hero = Widget(
            Look("large_icon", WIDTH_PX, 130, glyph="person", color=(0, 172, 193)), 0, 110
        )
        return _page(
            phone,
            argument,
            [
                hero,
                Widget(
                    Look("text", WIDTH_PX, 40, argument, color=_text_color(phone), state="28"),
                    0,
                    260,
                ),
            ],
        )
    search = text_field(
        phone,
        "contact_search",
        (10, 86, WIDTH_PX - 20, 50),
        "Search contacts",
        glyph="search",
        resource_id="search_view",
    )
    wanted = phone.fields.get("contact_search", "").lower()
    found = [name for name in sorted(phone.contacts) if wanted in name.lower()][:5]
    people = []
    for index, name in enumerate(found):
        person = _person(phone, index, name, "", f"contact:{name}")
        people.append(Widget(person.look, 0, person.y + 62, person.name, person.effect))
    fab = Widget(
        Look("button", 84, 76, glyph="plus", color=(0, 172, 193)),
        264,
        508,
        "new_contact",
        OpenPage("create"),
    )
    return _page(phone, "Contacts", [*people, search, fab])


def _plain(phone: Phone) -> Scene:
    app = BY_PACKAGE[phone.foreground]
    hero = Widget(Look("large_icon", WIDTH_PX, 180, glyph=app.glyph, color=app.color), 0, 190)
    return _page(
        phone,
        app.label,
        [
            hero,
            Widget(
                Look("text", WIDTH_PX, 50, app.label, color=_text_color(phone), state="32"), 0, 390
            ),
        ],
    )


_PAGES: dict[str, Callable[[Phone], Scene]] = {
    CHROME: _chrome,
    DIALER: _dialer,
    MESSAGES: _messages,
    CAMERA: _camera,
    GALLERY: _gallery,
    CONTACTS: _contacts,
}
