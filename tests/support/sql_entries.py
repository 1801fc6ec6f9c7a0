"""Entries of data sets and completions, written by hand, that `sql_runs` makes trainings of."""

from typing import Literal, NamedTuple

from schemas.entry import Column, EntryContent, TableInfo

HOSTILE = "</pre><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
"""What a policy may write; a page shows it as text."""
SKILLS = ("select", "insert", "group_by_single_column")
"""In the order of their training."""
TABLE = TableInfo(
    name="wins",
    columns=(Column(name="who", type="TEXT"), Column(name="year", type="INT")),
    rows=(("Ann", 2001), ("Bo", 1999), ('O\'Hara, "J"', None), (HOSTILE, -7)),
)
DBBENCH = (
    EntryContent(
        kind="dbbench",
        entry_id="select_0001",
        instruction="Who won in 2001? Answer with the name.",
        table_info=TABLE,
        answer_direct=(("Ann",),),
        sql="SELECT `who` FROM wins WHERE year = 2001 -- the gold\n",
        skills=("select", "where_single_condition"),
    ),
    EntryContent(
        kind="dbbench",
        entry_id="insert_0002",
        instruction="Add Cy, who won in 2010.",
        table_info=TABLE,
        answer_md5="9b1d7c0e5f",
        sql="INSERT INTO wins (who, year) VALUES ('Cy', 2010)",
        skills=("insert",),
    ),
    EntryContent(
        kind="dbbench",
        entry_id="group_0003",
        instruction=f"How many wins in each year? {HOSTILE}",
        table_info=TABLE,
        answer_direct=((2001, 1), (1999, 1), (None, 1), (-7, 1)),
        sql="SELECT year, COUNT(*) AS n FROM wins GROUP BY year",
        skills=("column_alias", "group_by_single_column", "select"),
    ),
)
TEXT_TO_SQL = (
    EntryContent(
        kind="text_to_sql",
        entry_id="dev_17",
        instruction="Which schools have more than 500 test takers?",
        database="california_schools",
        database_sha256="c" * 64,
        evidence="test takers: NumTstTakr",
        sql="SELECT sname FROM satscores WHERE NumTstTakr > 500",
        difficulty="simple",
    ),
    EntryContent(
        kind="text_to_sql",
        entry_id="dev_18",
        instruction="List the ten cities with the most schools.",
        database="california_schools",
        database_sha256="c" * 64,
        sql="SELECT City FROM schools GROUP BY City ORDER BY COUNT(*) DESC LIMIT 10",
        difficulty="moderate",
    ),
)


class Completed(NamedTuple):
    """One completion and what came of it."""

    steps: tuple[str, ...]
    scores: tuple[float, ...]
    """Of the steps; empty: nobody scored it."""
    outcome: Literal["correct", "incorrect", "error", "no_sql", "unknown"]
    sql: str | None
    error: str | None = None


def _cocte(*steps: str) -> str:
    return "\n\n".join(steps)


GOOD = (
    "WITH takers AS (\n  SELECT sname, NumTstTakr FROM satscores\n),",
    "many AS (\n  SELECT sname FROM takers WHERE NumTstTakr > 500\n)",
    "SELECT sname FROM many",
)
BAD = (GOOD[0], "many AS (\n  SELECT sname FROM takers WHERE NumTstTakr > 5\n)", GOOD[2])
COMPLETIONS = (
    (
        Completed(GOOD, (0.9375, 0.875, 1.0), "correct", _cocte(*GOOD)),
        Completed(BAD, (0.9375, 0.25, 0.125), "incorrect", _cocte(*BAD)),
    ),
    (
        Completed(
            (f"SELECT '{HOSTILE}' FROM schools",),
            (0.0,),
            "error",
            f"SELECT '{HOSTILE}' FROM schools",
            f'near "{HOSTILE}": syntax error',
        ),
        Completed(("I cannot answer this.",), (), "no_sql", None),
    ),
)
"""For each question of TEXT_TO_SQL."""
