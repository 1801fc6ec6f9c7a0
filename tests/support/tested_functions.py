"""Writes the list of functions that DB Bench's embedded database answers as MySQL does.

python -m tests.support.tested_functions
"""

import re

import sqlglot

from producer.sql_execution.mysql_tested import function_of
from tests.support.paths import ROOT

STATEMENTS = ROOT / "tests/producer/agents/dbbench/statements.sql"
MODULE = ROOT / "producer/sql_execution/mysql_tested.py"
LIST = re.compile(r"TESTED: Final = frozenset\(\n    \{\n(.*?)    \}\n\)", re.DOTALL)


def used_in_statements() -> list[str]:
    """Functions of the statements that both databases execute."""
    found = set()
    for line in STATEMENTS.read_text().splitlines():
        try:
            trees = sqlglot.parse(line, read="mysql")
        except sqlglot.errors.SqlglotError:
            continue  # a statement that both refuse
        for tree in trees:
            found |= {function_of(node) for node in tree.walk()} if tree is not None else set()
    return sorted(name for name in found if name is not None)


def main() -> None:
    """Replace the list in the module."""
    lines = "".join(f'        "{name}",\n' for name in used_in_statements())
    text = MODULE.read_text()
    assert LIST.search(text) is not None
    MODULE.write_text(
        LIST.sub(lambda _: f"TESTED: Final = frozenset(\n    {{\n{lines}    }}\n)", text)
    )


if __name__ == "__main__":
    main()
