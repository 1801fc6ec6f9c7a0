"""HTML that is safe by construction.

Every string is escaped, and only what `tag` built goes through as markup.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

VOID = frozenset({"br", "img", "link", "meta"})


@dataclass(frozen=True, slots=True)
class Html:
    """Markup that `tag` built."""

    markup: str


Node = Html | str | int | float | None | Iterable["Node"]
"""What an element may hold: markup, text (escaped), nothing, or many of these."""


def render(node: Node) -> str:
    """Markup of a node."""
    if node is None:
        return ""
    if isinstance(node, Html):
        return node.markup
    if isinstance(node, str | int | float):
        return escape(str(node), quote=True)
    return "".join(render(child) for child in node)


def tag(name: str, /, *children: Node, **attributes: str | float | None) -> Html:
    """An element. Attributes: None is left out, a trailing underscore is dropped (`class_`), other underscores become hyphens.

    `name` and the attributes' names are the code's own; everything else may come from anyone. A URL in an attribute must be one of
    `layout`'s, whose parts are quoted.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{render(children)}</{name}>")
