"""HTML that is safe by construction: every string is escaped; only `tag` makes markup."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

VOID = frozenset({"br", "img", "link", "meta"})


@dataclass(frozen=True, slots=True)
class Html:
    """Markup that `tag` built."""

    markup: str


Node = Html | str | int | None | Iterable["Node"]
"""An element's content: markup, text (escaped), nothing, or several of these. `layout` writes
floats."""


def render(node: Node) -> str:
    """Markup of a node."""
    if node is None:
        return ""
    if isinstance(node, Html):
        return node.markup
    if isinstance(node, str | int):
        return escape(str(node), quote=True)
    return "".join(render(child) for child in node)


def tag(name: str, /, *children: Node, **attributes: str | float | None) -> Html:
    """An element.

    An attribute of None is omitted, a trailing underscore is dropped (`class_`), and other
    underscores become hyphens. `name` and the attributes' names must be literals; children and
    values are escaped. A URL in an attribute must come from `layout`, which quotes its parts.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{render(children)}</{name}>")
