"""Success by skill: as a table and curves by step, and as a heat map of skills trained in turn."""

from collections.abc import Sequence
from math import sqrt
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.chart import Series, chart
from consumers.monitor.completion import outcome
from consumers.monitor.grid import shade
from consumers.monitor.html import Html, Node, tag
from consumers.monitor.plain_text import name
from consumers.queries import SkillMatrix, skill_matrix, success_by_skill
from consumers.tables import AgentSession, Rollout, SkillSuccess

ALL = "all"
LONGEST_LINE = 40
"""Characters of a skill that stay on one line."""
OPEN_CHARTS = 6
"""Skills whose curves are shown at once; of more, when asked for."""


def skills_section(session: Session, training_id: UUID) -> Node:
    """The skills part of a training's page; nothing where none were measured."""
    rows = success_by_skill(session, training_id)
    if not rows:
        return None
    matrix = skill_matrix(rows)
    return [
        tag("h2", "Success by skill"),
        _curves(_charts(rows)),
        _by_step(rows),
        None if matrix is None or len(matrix.stages) < 2 else _heat_map(matrix),  # noqa: PLR2004  # one stage is no sequence
    ]


def evaluation_skills(session: Session, evaluation_id: UUID) -> Node:
    """Success by skill in one evaluation; nothing where none was measured."""
    rows = session.scalars(
        select(SkillSuccess)
        .where(SkillSuccess.evaluation_id == evaluation_id)
        .order_by(SkillSuccess.skill, SkillSuccess.id)
    ).all()
    if not rows:
        return None
    cells = [
        (_skill(row.skill), f"{row.num_correct} / {row.num_sessions}", cell(row.success_rate))
        for row in rows
    ]
    table = layout.table(("skill", "correct", "success"), cells, "")
    return [tag("h2", "Success by skill"), table]


def session_counts(session: Session, training_id: UUID) -> dict[tuple[str, str], int]:
    """(how sessions ended, what they came to) -> sessions of the training."""
    query = (
        select(AgentSession.session_status, AgentSession.outcome, func.count())
        .join(Rollout, Rollout.id == AgentSession.id)
        .where(Rollout.training_id == training_id)
        .group_by(AgentSession.session_status, AgentSession.outcome)
    )
    return {(status, came_to): number for status, came_to, number in session.execute(query)}


def sessions_section(session: Session, training_id: UUID) -> Node:
    """How sessions ended, against what they came to; nothing where there are none."""
    counts = session_counts(session, training_id)
    if not counts:
        return None
    outcomes = sorted({came_to for _, came_to in counts})
    rows: list[list[Node]] = [
        [
            layout.status(status),
            *(layout.number(counts.get((status, item), 0)) for item in outcomes),
        ]
        for status in sorted({status for status, _ in counts})
    ]
    head = [tag("th", "session status"), *(tag("th", outcome(item)) for item in outcomes)]
    body = [tag("tr", *(tag("td", item) for item in row)) for row in rows]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
    return [tag("h2", "Sessions"), tag("div", table, class_="scroll")]


def cell(rate: float | None) -> Node:
    """A success rate on a background of its shade."""
    if rate is None:
        return layout.ABSENT
    return tag("span", layout.share(rate), class_=f"score {shade(rate)}")


def _charts(rows: Sequence[SkillSuccess]) -> list[Node]:
    by_skill: dict[str, list[SkillSuccess]] = {}
    for row in sorted(rows, key=lambda row: row.skill != ALL):
        by_skill.setdefault(row.skill, []).append(row)
    return [_chart(skill, measured) for skill, measured in by_skill.items()]


def _curves(charts: Sequence[Node]) -> Node:
    """That of all entries, and the skills' below it."""
    skills = charts[1:]
    if len(charts) <= OPEN_CHARTS:
        return tag("div", *charts, class_="charts")
    return [
        tag("div", charts[0], class_="charts"),
        tag(
            "details",
            tag("summary", f"curves of {len(skills)} skills"),
            tag("div", *skills, class_="charts"),
        ),
    ]


def _chart(skill: str, rows: Sequence[SkillSuccess]) -> Html | None:
    """The band is a standard error of the share, which is 0 where all or none are right."""
    series = Series(
        "success",
        [(float(row.step), row.success_rate) for row in rows],
        [
            sqrt(row.success_rate * (1 - row.success_rate) / max(row.num_sessions, 1))
            for row in rows
        ],
    )
    title = "All entries" if skill == ALL else skill
    return chart(f"{title}: success by step", series, low=0, high=1)


def _by_step(rows: Sequence[SkillSuccess]) -> Node:
    measured = list(dict.fromkeys((row.step, row.evaluation_id) for row in rows))
    rates = {(row.skill, row.evaluation_id): row for row in rows}
    skills = sorted({row.skill for row in rows}, key=lambda skill: (skill != ALL, skill))

    def share(skill: str, evaluation: UUID) -> Node:
        row = rates.get((skill, evaluation))
        if row is None:
            return layout.ABSENT
        return [cell(row.success_rate), tag("span", f" of {row.num_sessions}", class_="faint")]

    return layout.table(
        ["skill", *(f"step {step}" for step, _ in measured)],
        [[_skill(skill), *(share(skill, one) for _, one in measured)] for skill in skills],
        "",
    )


def _heat_map(matrix: SkillMatrix) -> Node:
    """A row per stage, a column per skill; the last rows are how each skill ended."""
    rows: list[list[Node]] = [
        [
            f"{stage}",
            _skill(matrix.trained.get(stage, layout.ABSENT)),
            *(_heat(matrix, stage, skill) for skill in matrix.skills),
        ]
        for stage in matrix.stages
    ]
    rows.append(["", "forgetting", *(_signed(matrix.forgetting(skill)) for skill in matrix.skills)])
    rows.append(
        [
            "",
            "backward transfer",
            *(_signed(matrix.backward_transfer(skill)) for skill in matrix.skills),
        ]
    )
    return [
        tag("h2", "Skills trained in turn"),
        layout.facts(
            ("average forgetting", _signed(matrix.average_forgetting)),
            ("average backward transfer", _signed(matrix.average_backward_transfer)),
        ),
        layout.table(["stage", "trained", *map(_skill, matrix.skills)], rows, ""),
        tag(
            "p",
            "Forgetting: a skill's best success before the last stage, minus its success after it."
            " Backward transfer: its success after the last stage, minus that after the stage that"
            " trained it. Averages are over the skills that were trained before the last stage.",
            class_="faint",
        ),
    ]


def _heat(matrix: SkillMatrix, stage: int, skill: str) -> Node:
    shown = cell(matrix.rates.get((stage, skill)))
    return tag("strong", shown) if matrix.trained.get(stage) == skill else shown


def _skill(skill: str) -> Node:
    """A skill's name, wrapped where it is a long one."""
    return name(skill) if len(skill) <= LONGEST_LINE else tag("span", name(skill), class_="text")


def _signed(value: float | None) -> str:
    return layout.ABSENT if value is None else f"{value * 100:+.1f} %"
