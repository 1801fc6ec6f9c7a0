"""Whether the golds of a data set can be executed here, and mean something."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from producer.agents.text_to_sql.data.question import Question
from producer.process_rewards.cocte import NotCocteError, read_cocte
from producer.process_rewards.row_sets import GoldFailedError, RowSet, gold_rows
from producer.sql_execution import DatabaseFailedError

Problem = Literal["fails", "no_rows", "cocte"]


class Finding(NamedTuple):
    """What is wrong with a question's gold."""

    question: Question
    problem: Problem
    """`fails`: it cannot be executed; `no_rows`: it has none, so that a query that finds nothing is
    right; `cocte`: its gold in CoCTE form is in another form, or has other rows."""
    message: str


def findings(question: Question) -> Iterator[Finding]:
    """What is wrong with a question; nothing of a sound one."""
    try:
        rows = gold_rows(question.database, question.sql)
    except (GoldFailedError, DatabaseFailedError) as error:
        yield Finding(question, "fails", str(error))
        return
    if not rows:
        yield Finding(question, "no_rows", "the gold has no rows")
    if question.cocte is not None and (message := _cocte_problem(question, question.cocte, rows)):
        yield Finding(question, "cocte", message)


def _cocte_problem(question: Question, cocte: str, rows: RowSet) -> str | None:
    try:
        found = gold_rows(question.database, read_cocte(cocte).sql)
    except (NotCocteError, GoldFailedError, DatabaseFailedError) as error:
        return str(error)
    return None if found == rows else "the gold in CoCTE form has other rows than the gold"
