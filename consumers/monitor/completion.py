"""What an SQL agent's rollout came to: a session's end, or a completion with its scored steps."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.grid import shade
from consumers.monitor.html import Html, Node, tag
from consumers.monitor.plain_text import excerpt, name
from consumers.monitor.sql_text import sql_block
from consumers.queries import ScoredCompletion, list_scores_by_completion
from consumers.tables import AgentSession, Completion

GOOD, BAD = {"correct"}, {"incorrect", "error", "no_sql"}


def outcome(text: str) -> Html:
    """An outcome as a coloured word."""
    return tag("span", text, class_="good" if text in GOOD else "bad" if text in BAD else "faint")


def session_section(ended: AgentSession) -> Node:
    """How a session ended, and apart from it what it came to."""
    return [
        tag("h2", "Session"),
        layout.facts(
            ("session status", layout.status(ended.session_status)),
            ("outcome", outcome(ended.outcome)),
            ("rounds", layout.number(ended.num_rounds)),
            ("operations", layout.number(ended.num_operations)),
            ("refused SQL", layout.number(ended.num_sql_errors)),
            ("replayed sessions", layout.number(ended.num_replayed)),
            ("answer", layout.ABSENT if ended.answer is None else tag("code", name(ended.answer))),
            ("table hash", layout.ABSENT if ended.table_hash is None else name(ended.table_hash)),
        ),
        tag("p", excerpt(ended.error_message), class_="warning") if ended.error_message else None,
    ]


def completion_section(session: Session, done: Completion) -> Node:
    """What the executed SQL came to, and every scorer's opinion of every step."""
    scores = list_scores_by_completion(session, done.id)
    return [
        tag("h2", "Completion"),
        layout.facts(
            ("outcome", outcome(done.outcome)),
            ("outcome reward", layout.number(done.outcome_reward)),
            ("process reward", layout.number(done.process_reward)),
            ("steps", layout.number(done.num_steps)),
            ("rows", layout.number(done.num_rows)),
            ("execution", layout.duration(done.execution_time)),
        ),
        tag("p", excerpt(done.error_message), class_="warning") if done.error_message else None,
        tag("h4", "executed SQL"),
        sql_block(done.sql) if done.sql is not None else tag("p", "none was found", class_="bad"),
        _steps(scores),
    ]


def _steps(scores: Sequence[ScoredCompletion]) -> Node:
    if not scores:
        return tag("p", "Nobody scored its steps.", class_="faint")
    by_step: dict[int, dict[str, Html]] = {}
    texts: dict[int, str] = {}
    for scored in scores:
        for step in scored.steps:
            texts.setdefault(step.step_index, step.text)
            by_step.setdefault(step.step_index, {})[scored.whole.scorer] = score_cell(step.score)
    names = [scored.whole.scorer for scored in scores]
    rows: list[list[Node]] = [
        [str(index + 1), *(cells.get(name) for name in names), sql_block(texts[index])]
        for index, cells in sorted(by_step.items())
    ]
    sums: list[list[Node]] = [
        [name(score.whole.scorer), *(score_cell(value) for value in _wholes(score))]
        for score in scores
    ]
    return [
        tag("h2", "Steps by score"),
        layout.table(["step", *map(name, names), "SQL"], rows, "No step."),
        tag("h4", "the steps together"),
        layout.table(["scorer", "product", "minimum", "last", "average"], sums, ""),
    ]


def _wholes(completion: ScoredCompletion) -> tuple[float, ...]:
    whole = completion.whole
    return whole.product, whole.minimum, whole.last, whole.average


def score_cell(score: float) -> Html:
    """A score from 0 to 1 on a background of its shade."""
    return tag("span", layout.rounded(score), class_=f"score {shade(score)}")
