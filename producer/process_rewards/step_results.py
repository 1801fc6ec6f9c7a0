"""A completion's steps with what each returns when it is executed: input of a reward model.

RewardSQL's `enable_EXreward`: the reward model reads the results with the steps. There a service
writes them; ours are a comment below the step.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from producer.bounded_text import cut
from producer.process_rewards.cocte import NotCocteError, join_steps, read_cocte
from producer.process_rewards.row_sets import limits_of
from producer.sql_execution import Database, SqlRefusedError, open_read_only

MAX_ROWS: Final = 5
"""Of a result that are shown."""
MAX_CHARS: Final = 500
_REST: Final = "cua_rest AS (SELECT 1)"
"""Follows the comma of a CTE that is not the last."""


def with_results(database: Path, steps: Sequence[str]) -> list[str]:
    """The steps, each with its result; of another form than CoCTE the last alone has one.

    A CTE's result is its rows, the last step's those of the whole query. Executed read-only, within
    limits. DatabaseFailedError or OSError, which are not the agent's fault.
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
    """What is executed for each step; None: nothing."""
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
    """On one line, because it is a comment."""
    try:
        found = database.execute(query)
    except SqlRefusedError as error:
        return f"Error: {cut(' '.join(str(error).split()), MAX_CHARS)}"
    shown = ", ".join(map(repr, found.rows[:MAX_ROWS]))
    more = "" if len(found.rows) <= MAX_ROWS else f", ... ({len(found.rows)} rows)"
    return f"Result: {cut(shown, MAX_CHARS)}{more}" if found.rows else "Result: no rows"
