"""Types of MySQL expressions, as far as results depend on them: the scales of DECIMALs."""

from collections.abc import Mapping
from typing import Final

from sqlglot import expressions as exp

Types = Mapping[str, str]
"""Maps a column, in lower case, to INT, DECIMAL(10,2), DOUBLE, FLOAT, DOUBLE(10,2), TEXT, DATE,
DATETIME or TIME."""
DIVISION_DIGITS: Final = 4
"""Digits that MySQL adds to the scale of a DECIMAL dividend (div_precision_increment)."""
WHOLE: Final = (exp.Count, exp.Length, exp.Floor, exp.Ceil, exp.IntDiv, exp.Sign)
PARTS_OF_SAME_SCALE: Final = (exp.Sum, exp.Min, exp.Max, exp.Neg, exp.Paren, exp.Abs, exp.Alias)
COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
TIMES: Final = ("DATE", "DATETIME", "TIME")
"""Column types whose values are texts in a fixed format."""


def is_text_type(name: str | None) -> bool:
    """Whether columns of this type hold texts."""
    return name == "TEXT" or name in TIMES


def scale_of_type(name: str | None) -> int | None:
    """Digits after the point of an INT or DECIMAL(10,2) column; None for other types."""
    if name is not None and name.startswith("DECIMAL"):
        return int(name.rstrip(")").rpartition(",")[2])
    return 0 if name == "INT" else None


def inexact_type(node: exp.Expr, types: Types) -> str | None:
    """FLOAT or DOUBLE if the node is such a column or its minimum or maximum, else None."""
    match node:
        case exp.Column():
            name = types.get(node.name.lower(), "")
            return name if name.startswith(("FLOAT", "DOUBLE")) else None
        case exp.Min() | exp.Max() | exp.Paren():
            return inexact_type(node.this, types)
        case _:
            return None


def shown_digits(name: str) -> int | None:
    """Displayed digits after the point of FLOAT(8,2) or DOUBLE(8,2); None for all."""
    return int(name.rstrip(")").rpartition(",")[2]) if name.endswith(")") else None


def scale_of(node: exp.Expr, types: Types) -> int | None:  # noqa: C901, PLR0911, PLR0912  # one per kind
    """Digits after the point of an exact DECIMAL; None for doubles, texts and unknown types."""
    match node:
        case exp.Column():
            return scale_of_type(types.get(node.name.lower(), ""))
        case exp.Literal():
            if node.is_string or "e" in node.name.lower():
                return None
            return len(node.name.partition(".")[2])
        case exp.Boolean():
            return 0
        case exp.Add() | exp.Sub() | exp.Mod():
            scales = (scale_of(node.left, types), scale_of(node.right, types))
            return None if None in scales else max(scale or 0 for scale in scales)
        case exp.Mul():
            left, right = scale_of(node.left, types), scale_of(node.right, types)
            return None if left is None or right is None else left + right
        case exp.Div():
            left, right = scale_of(node.left, types), scale_of(node.right, types)
            return None if left is None or right is None else left + DIVISION_DIGITS
        case exp.Avg():
            scale = scale_of(node.this, types)
            return None if scale is None else scale + DIVISION_DIGITS
        case exp.Round():
            places = node.args.get("decimals")
            return 0 if places is None else int(places.name) if places.is_int else None
        case exp.Coalesce():
            parts = [scale_of(part, types) for part in (node.this, *node.expressions)]
            return None if None in parts else max(part or 0 for part in parts)
        case exp.Distinct():
            return scale_of(node.expressions[0], types) if len(node.expressions) == 1 else None
        case exp.Subquery():
            select = node.this
            is_one = isinstance(select, exp.Select) and len(select.expressions) == 1
            return scale_of(select.expressions[0], types) if is_one else None
        case _ if isinstance(node, PARTS_OF_SAME_SCALE):
            return scale_of(node.this, types)
        case _ if isinstance(node, WHOLE):
            return 0
        case _:
            return None
