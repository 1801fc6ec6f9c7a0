"""Adds to a completion's steps what each returns when executed, as input of a reward model.

This is RewardSQL's `enable_EXreward`, where the reward model reads results together with steps.
There a service writes them; here they are comments below the steps.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from producer.bounded_text import cut
from producer.process_rewards.cocte import NotCocteError, join_steps, read_cocte
from producer.process_rewards.row_sets import limits_of
from producer.sql_execution import Database, SqlRefusedError, open_read_only

MAX_ROWS: Final = 5
"""Maximum rows of a result that are shown."""
MAX_CHARS: Final = 500
_REST: Final = "cua_rest AS (SELECT 1)"
"""Completes a CTE that ends with a comma because it is not the last one."""


def with_results(database: Path, steps: Sequence[str]) -> list[str]:
    """Append to each step its result, or only to the last one if they are not in CoCTE form.

    A CTE's result is its rows, the last step's result those of the whole query. Executed read-only,
    within limits. Raises DatabaseFailedError or OSError, for which the agent is not to blame.
    """
    queries = _queries(steps)
    opened = open_read_only(database, limits_of(database))
    try:
        return [
            step if query is None else f"{step}\n-- {_result(opened, query)}"
            for step, query in zip(steps, queries, strict=True)
        ]
    finally:
        opened.close()


def _queries(steps: Sequence[str]) -> list[str | None]:
    """The query to execute for each step; None for nothing."""
    whole = join_steps(steps)
    try:
        names = read_cocte(whole).names
    except NotCocteError:
        return [*[None] * (len(steps) - 1), whole]
    queries: list[str | None] = []
    for at, name in enumerate(names):
        heads = [*steps[: at + 1], *([_REST] if at < len(names) - 1 else [])]
        quoted = name.replace('"', '""')
        queries.append(f'{join_steps(heads)}\nSELECT * FROM "{quoted}"')
    return [*queries, whole]


def _result(database: Database, query: str) -> str:
    """The result on one line, because it becomes a comment."""
    try:
        found = database.execute(query)
    except SqlRefusedError as error:
        return f"Error: {cut(' '.join(str(error).split()), MAX_CHARS)}"
    shown = ", ".join(map(repr, found.rows[:MAX_ROWS]))
    more = "" if len(found.rows) <= MAX_ROWS else f", ... ({len(found.rows)} rows)"
    return f"Result: {cut(shown, MAX_CHARS)}{more}" if found.rows else "Result: no rows"
