"""Parses a column declaration as MySQL does: its type, with synonyms resolved, and its attributes.

Attributes that change no answer here (COMMENT, CHARACTER SET, COLLATE) are parsed and dropped.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, NoReturn

TOKEN: Final = re.compile(
    r"""\s*( [A-Za-z_]\w* | [+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})? """
    r"""| '(?:[^'\\]|''|\\[^0])*' | "(?:[^"\\]|""|\\[^0])*" | [^\s'"] )""",
    re.VERBOSE | re.ASCII,
)
NUMBER: Final = re.compile(r"[+-]?[\d.]+(?:[eE][+-]?\d+)?", re.ASCII)
SIZE: Final = re.compile(r"\d{1,10}", re.ASCII)
ESCAPED: Final = re.compile(r"""\\(.)|''|\"\"""", re.DOTALL)
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}
MAX_WORDS: Final = 3
"""Maximum words in the name of a type or an attribute."""

SYNONYMS: Final = {
    **dict.fromkeys(("BOOL", "BOOLEAN"), "TINYINT(1)"),
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    **dict.fromkeys(("INT3", "MIDDLEINT"), "MEDIUMINT"),
    **dict.fromkeys(("INT4", "INTEGER"), "INT"),
    "INT8": "BIGINT",
    "SERIAL": "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE",
    **dict.fromkeys(("DEC", "FIXED", "NUMERIC"), "DECIMAL"),
    **dict.fromkeys(("DOUBLE PRECISION", "REAL", "FLOAT8"), "DOUBLE"),
    "FLOAT4": "FLOAT",
    **dict.fromkeys(("CHARACTER", "NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER"), "CHAR"),
    **dict.fromkeys(("CHAR VARYING", "CHARACTER VARYING", "VARCHARACTER"), "VARCHAR"),
    **dict.fromkeys(("NVARCHAR", "NCHAR VARCHAR", "NCHAR VARYING"), "VARCHAR"),
    **dict.fromkeys(("NATIONAL VARCHAR", "NATIONAL VARCHARACTER"), "VARCHAR"),
    **dict.fromkeys(("NATIONAL CHAR VARYING", "NATIONAL CHARACTER VARYING"), "VARCHAR"),
    **dict.fromkeys(("LONG", "LONG VARCHAR", "LONG CHAR VARYING"), "MEDIUMTEXT"),
}
"""Maps MySQL's synonyms to the types they mean."""
BYTES: Final = ("TEXT or VARCHAR(50)", "which holds bytes")
REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "ENUM": ("VARCHAR(50)", "whose values are sorted by their places in its list"),
    "SET": ("VARCHAR(50)", "whose values are sorted as numbers"),
    "JSON": ("TEXT", "whose values are compared as documents"),
    "BIT": ("INT UNSIGNED", "which is shown as bytes"),
    **dict.fromkeys(("BINARY", "VARBINARY", "LONG VARBINARY"), BYTES),
    **dict.fromkeys(("BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB"), BYTES),
}
"""Maps an unsupported type to what to write instead, and why."""
RULES: Final[Mapping[str, Mapping[str, bool]]] = {
    "NULL": {},
    "NOT NULL": {"is_nullable": False},
    "AUTO_INCREMENT": {"is_numbered": True, "is_nullable": False},
    "PRIMARY KEY": {"is_primary": True, "is_nullable": False},
    "KEY": {"is_primary": True, "is_nullable": False},
    "UNIQUE": {"is_unique": True},
    "UNIQUE KEY": {"is_unique": True},
}
"""Maps an attribute to the fields of `Rules` that it sets."""
OTHERS: Final = {
    "BINARY": "texts are compared without case and accents",
    "ON UPDATE": "here an UPDATE changes only the columns that it assigns",
    "CHECK": "CHECK conditions are not enforced here",
    "REFERENCES": "there is one table",
}
"""Maps an unsupported attribute to the reason why it is refused."""
WITH_VALUE: Final = ("DEFAULT", "COMMENT", "COLLATE", "CHARACTER SET", "CHARSET")
CHARACTER_SETS: Final = ("utf8", "utf8mb3", "utf8mb4")
COLLATIONS: Final = re.compile(
    r"utf8(mb[34])?_(general|unicode|unicode_520|0900_ai|uca1400_ai)_ci", re.ASCII
)
"""Collations that ignore case and accents; all are treated as utf8mb4_general_ci."""
CONSTANTS: Final = {"TRUE": "1", "FALSE": "0", "NULL": None}


@dataclass(frozen=True, slots=True)
class Rules:
    """Constraints that a column's attributes put on its values."""

    is_nullable: bool = True
    is_numbered: bool = False
    """Whether the column is AUTO_INCREMENT."""
    is_primary: bool = False
    is_unique: bool = False
    default: str | int | float | None = None
    """The default as written or, in a `ColumnType`, as stored. None if there is none or it is
    NULL."""

    @property
    def is_key(self) -> bool:
        """Whether the column's values must be unique."""
        return self.is_primary or self.is_unique


NO_RULES: Final = Rules()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A parsed column declaration."""

    name: str
    """Name of the type in upper case, with synonyms resolved."""
    sizes: tuple[int, ...]
    """The numbers in brackets, at most two."""
    is_unsigned: bool | None
    """None if the declaration does not say."""
    rules: Rules

    @property
    def type(self) -> str:
        """The type without its attributes: DECIMAL(10,2) UNSIGNED."""
        sizes = f"({','.join(map(str, self.sizes))})" if self.sizes else ""
        return f"{self.name}{sizes}{' UNSIGNED' if self.is_unsigned else ''}"


def read_declaration(declared: str) -> Declaration | None:
    """Parse a declaration. Returns None if it begins with no type or cannot be parsed.

    Raises ValueError, which says what to write instead, for an unsupported type or attribute.
    """
    tokens = _tokens(declared)
    if tokens is None:
        return None
    reader = _Reader(tokens)
    synonym = reader.name_in(SYNONYMS.keys() | REFUSED.keys())
    if synonym is not None and synonym in REFUSED:
        instead, why = REFUSED[synonym]
        refuse_type(instead, synonym, why)
    if synonym is not None:
        reader.tokens = [*(_tokens(SYNONYMS[synonym]) or ()), *reader.tokens]
    name = reader.next().upper()
    sizes = reader.sizes()
    if not name.isidentifier() or sizes is None:
        return None
    is_unsigned = None
    while (sign := reader.name_in(("SIGNED", "UNSIGNED", "ZEROFILL"))) is not None:
        if sign == "ZEROFILL":
            refuse_type("UNSIGNED", "ZEROFILL", "which writes zeros before numbers")
        is_unsigned = sign == "UNSIGNED"
    return Declaration(name, sizes, is_unsigned, _rules(reader))


def refuse_type(instead: str, name: str, why: str) -> NoReturn:
    """Raise ValueError for a type, saying what to write instead."""
    message = f"write {instead} instead of {name}, {why}"
    raise ValueError(message)


def refuse_attribute(attribute: str, why: str) -> NoReturn:
    """Raise ValueError for an attribute, saying why it is not supported."""
    message = f"leave out {attribute}: {why}"
    raise ValueError(message)


def _tokens(declared: str) -> list[str] | None:
    """Split into words, numbers, quoted strings and other characters; None for an open string."""
    tokens, at = [], 0
    text = declared.strip()
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            return None
        tokens.append(found[1])
        at = found.end()
    return tokens


class _Reader:
    """The rest of a declaration that is being parsed."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def next(self) -> str:
        """Take the next token; empty at the end."""
        return self.tokens.pop(0) if self.tokens else ""

    def name_in(self, names: Collection[str]) -> str | None:
        """Take the longest of the names that comes next; None if none of them does."""
        for count in range(min(MAX_WORDS, len(self.tokens)), 0, -1):
            name = " ".join(self.tokens[:count]).upper()
            if name in names:
                del self.tokens[:count]
                return name
        return None

    def sizes(self) -> tuple[int, ...] | None:
        """Take the numbers in brackets that come next; None if the brackets hold anything else."""
        if self.tokens[:1] != ["("]:
            return ()
        at = self.tokens.index(")") if ")" in self.tokens else 0
        inner, self.tokens = self.tokens[1:at], self.tokens[at + 1 :]
        sizes = tuple(int(size) for size in inner[::2] if SIZE.fullmatch(size))
        is_list = inner[1::2] == [","] * (len(sizes) - 1) and len(inner) == 2 * len(sizes) - 1
        return sizes if is_list and len(sizes) in {1, 2} else None


def _rules(reader: _Reader) -> Rules:
    rules = NO_RULES
    is_null_default = False
    while reader.tokens:
        name = reader.name_in((*RULES, *WITH_VALUE, *OTHERS))
        if name is None:
            known = ", ".join((*RULES, *WITH_VALUE))
            refuse_attribute(reader.next(), f"the attributes are {known}")
        if name in OTHERS:
            refuse_attribute(name, OTHERS[name])
        if name in RULES:
            rules = replace(rules, **RULES[name])
            continue
        value = reader.next()
        _check_value(name, value)
        if name == "DEFAULT":
            default = _default(value)
            is_null_default = default is None
            rules = replace(rules, default=default)
    if not rules.is_nullable and is_null_default:
        refuse_attribute("DEFAULT NULL", "the column is NOT NULL")
    return rules


def _check_value(name: str, value: str) -> None:
    """Raise ValueError for a value that would change an answer, or is invalid."""
    text = _unquoted(value)
    attribute = f"{name} {value}".rstrip()
    match name:
        case "DEFAULT":
            is_constant = _is_quoted(value) or NUMBER.fullmatch(value) or value.upper() in CONSTANTS
            if not is_constant:
                refuse_attribute(attribute, "a default is a number, a text, TRUE, FALSE or NULL")
        case "COMMENT":
            if not _is_quoted(value):
                refuse_attribute(attribute, "a comment is a text in quotes")
        case "COLLATE":
            if not COLLATIONS.fullmatch(text.lower()):
                refuse_attribute(attribute, "texts are compared without case and accents")
        case _:
            if text.lower() not in CHARACTER_SETS:
                refuse_attribute(attribute, "texts are of utf8mb4")


def _default(value: str) -> str | None:
    return _unquoted(value) if _is_quoted(value) else CONSTANTS.get(value.upper(), value)


def _is_quoted(value: str) -> bool:
    return value[:1] in {"'", '"'}


def _unquoted(value: str) -> str:
    if not _is_quoted(value):
        return value
    quote = value[0]

    def plain(found: re.Match[str]) -> str:
        if found[1] is None:  # a doubled quote of the string's own kind stands for one quote
            return quote if found[0][0] == quote else found[0]
        return ESCAPES.get(found[1], found[1])

    return ESCAPED.sub(plain, value[1:-1])
