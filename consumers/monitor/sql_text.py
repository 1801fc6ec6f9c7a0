"""SQL as coloured text: every token is a span with a class, its content stays text.

Whoever wrote the SQL may be hostile or confused: any text is tokens, in time linear in its length.
"""

import re

from consumers.monitor.html import Html, Node, tag
from consumers.monitor.plain_text import LONGEST, seen

KEYWORDS = frozenset({
    "ADD", "ALL", "ALTER", "ANALYZE", "AND", "AS", "ASC", "ATTACH", "AUTOINCREMENT", "BEGIN",
    "BETWEEN", "BY", "CASCADE", "CASE", "CAST", "CHECK", "COLLATE", "COLUMN", "COMMIT",
    "CONSTRAINT", "CREATE", "CROSS", "CURRENT", "DATABASE", "DEFAULT", "DELETE", "DESC",
    "DESCRIBE", "DETACH", "DISTINCT", "DROP", "ELSE", "END", "ESCAPE", "EXCEPT", "EXISTS",
    "EXPLAIN", "FALSE", "FETCH", "FILTER", "FIRST", "FOLLOWING", "FOR", "FOREIGN", "FROM",
    "FULL", "GLOB", "GROUP", "HAVING", "IF", "IGNORE", "IN", "INDEX", "INNER", "INSERT",
    "INTERSECT", "INTO", "IS", "JOIN", "KEY", "LAST", "LEFT", "LIKE", "LIMIT", "MATCH",
    "NATURAL", "NOT", "NULL", "NULLS", "OF", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER",
    "PARTITION", "PRAGMA", "PRECEDING", "PRIMARY", "RANGE", "RECURSIVE", "REFERENCES", "REGEXP",
    "REPLACE", "RETURNING", "RIGHT", "ROLLBACK", "ROW", "ROWS", "SELECT", "SET", "SHOW",
    "TABLE", "THEN", "TO", "TRANSACTION", "TRIGGER", "TRUE", "TRUNCATE", "UNBOUNDED", "UNION",
    "UNIQUE", "UPDATE", "USING", "VALUES", "VIEW", "WHEN", "WHERE", "WINDOW", "WITH",
})  # fmt: skip
"""Of SQLite, MySQL and MariaDB, as far as agents write them."""
TOKENS = re.compile(
    r"(?P<comment>--[^\n]*|\#[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)"
    r"|(?P<string>'(?:[^']|'')*'?)"
    r"|(?P<name>`[^`]*`?|\"[^\"]*\"?)"
    r"|(?P<number>(?<![\w.])[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>[^\W\d]\w*)"
)


def sql_block(text: str) -> Html:
    """SQL on lines of its own."""
    return tag("pre", *_spans(text), class_="sql")


def _spans(text: str) -> list[Node]:
    shown, rest = text[:LONGEST], len(text) - LONGEST
    nodes: list[Node] = []
    last = 0
    for match in TOKENS.finditer(shown):
        nodes += seen(shown[last : match.start()])
        last = match.end()
        kind, token = str(match.lastgroup), match[0]
        if kind == "word":
            nodes.append(tag("b", token) if token.upper() in KEYWORDS else token)
        else:
            nodes.append(tag("span", *seen(token), class_=kind))
    nodes += seen(shown[last:])
    if rest > 0:
        nodes.append(tag("span", f"\n… {rest:,} characters more", class_="faint"))
    return nodes
