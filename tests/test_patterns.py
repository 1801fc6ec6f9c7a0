"""Patterns match alike on every Python that is supported.

`re` of Python 3.11.0 to 3.11.4 (Debian 12 has 3.11.2) matches a possessive group of alternatives
wrongly (https://github.com/python/cpython/issues/106052). `regex` does not.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.paths import ROOT

POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[0-9,]*\})\+")
MODULES = [
    path
    for side in ("schemas", "producer", "consumers")
    for path in sorted((ROOT / side).rglob("*.py"))
]


def possessive_groups(source: str) -> Iterator[str]:
    """Texts of a module that uses `re`, if they have such a group."""
    tree = ast.parse(source)
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    if "re" not in names:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (found[0] for found in POSSESSIVE_GROUP.finditer(node.value))


def test_no_pattern_of_re_has_a_possessive_group() -> None:
    found = {
        str(path.relative_to(ROOT)): groups
        for path in MODULES
        if (groups := list(possessive_groups(path.read_text(encoding="utf-8"))))
    }
    assert found == {}, "import regex as re"


@pytest.mark.parametrize(
    ("source", "num_found"),
    [
        ("import re\nre.compile(r'(?:a|b)*+')", 1),
        ("import re\nre.compile(rf'(?:a|{x})++ and (b)?+')", 2),
        ("import re\nre.compile(r'(?:a|b){2,}+')", 1),
        ("import re\nre.compile(r'[^a]*+(b)+')", 0),
        ("import regex as re\nre.compile(r'(?:a|b)*+')", 0),
    ],
)
def test_a_possessive_group_is_found(source: str, num_found: int) -> None:
    assert len(list(possessive_groups(source))) == num_found
