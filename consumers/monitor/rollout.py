"""One rollout, turn by turn, what it came to, and the validation."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from consumers.monitor import layout
from consumers.monitor.blobs import Screenshots
from consumers.monitor.completion import completion_section, session_section
from consumers.monitor.entry import entry_section
from consumers.monitor.grid import grid, trail
from consumers.monitor.html import Html, Node, tag
from consumers.monitor.measured import name_of
from consumers.monitor.plain_text import excerpt, name
from consumers.monitor.turn import last_screen, turn_section
from consumers.queries import (
    get_completion_by_rollout,
    get_entry,
    get_environment_by_rollout,
    get_session_by_rollout,
    get_status_history,
    get_task,
    list_entries_by_task,
    list_rollouts_by_group,
    list_scores_by_rollout,
)
from consumers.tables import Baseline, Entry, Eval, Rollout, Step, Turn, Validation


def rollout_page(session: Session, rollout_id: UUID, store: Screenshots) -> layout.Document | None:
    """The page; None if the rollout does not exist."""
    rollout = session.get(Rollout, rollout_id)
    if rollout is None:
        return None
    turns = turns_of(session, rollout.id)
    task = get_task(session, rollout.task_id)
    siblings = list_rollouts_by_group(session, rollout.group_id)
    environment = get_environment_by_rollout(session, rollout.id)
    return layout.page(
        rollout.rollout_id,
        tag(
            "p",
            excerpt(task.description) if task else "The task is not recorded yet.",
            class_="instruction",
        ),
        _facts(rollout, environment.env_type if environment else None),
        tag("p", excerpt(rollout.error_message), class_="warning")
        if rollout.error_message
        else None,
        tag("p", "Rollouts of the same group: ", class_="faint"),
        grid(siblings, siblings),
        *_what_happened(session, rollout, turns, store, has_environment=environment is not None),
        tag("h2", "Validation"),
        _validations(rollout.validations),
        _scores(session, rollout.id),
        tag("h2", "Status history"),
        layout.history(get_status_history(session, "rollout", rollout.id)),
        (
            [
                tag("h2", "Status history of the environment"),
                layout.history(get_status_history(session, "environment", environment.id)),
            ]
            if environment
            else None
        ),
        trail=[*trail(session, rollout.training_id), *_source(session, rollout)],
        live=rollout.status not in {"completed", "failed", "cancelled"},
    )


def _what_happened(
    session: Session,
    rollout: Rollout,
    turns: Sequence[Turn],
    store: Screenshots,
    *,
    has_environment: bool,
) -> list[Node]:
    """The turns; for an SQL agent their result first, and the entry next to them."""
    ended = get_session_by_rollout(session, rollout.id)
    done = get_completion_by_rollout(session, rollout.id)
    entry = entry_of(session, rollout)
    is_sql = not (entry is None and ended is None and done is None)
    # A policy that another trainer records may only answer.
    acts = has_environment or is_sql or any(turn.actions for turn in turns)
    shown: list[Node] = [
        session_section(ended) if ended else None,
        completion_section(session, done) if done else None,
        tag("h2", "Turns"),
        tag(
            "div",
            *(turn_section(turn, store, expects_action=acts) for turn in turns),
            last_screen(turns, store),
            class_="turns",
        ),
        None if turns else tag("p", "No turn yet.", class_="faint"),
    ]
    if not is_sql:
        return shown
    return [tag("div", tag("div", *shown), entry_section(entry), class_="beside")]


def turns_of(session: Session, rollout_id: UUID) -> Sequence[Turn]:
    """Turns in order, with their actions and observations."""
    load = (selectinload(Turn.actions), selectinload(Turn.observations))
    return session.scalars(
        select(Turn).where(Turn.rollout_id == rollout_id).order_by(Turn.turn).options(*load)
    ).all()


def entry_of(session: Session, rollout: Rollout) -> Entry | None:
    """The entry that the rollout recorded; until it has ended, the task's newest."""
    ended = get_session_by_rollout(session, rollout.id)
    done = get_completion_by_rollout(session, rollout.id)
    ran = ended or done
    if ran is not None:
        return get_entry(session, ran.entry_id)
    entries = list_entries_by_task(session, rollout.task_id)
    return entries[-1] if entries else None


def _scores(session: Session, rollout_id: UUID) -> Node:
    """What later scorings gave it; nothing where there were none."""
    rows = [
        (
            layout.moment(scoring.created_at),
            scoring.reward_name,
            scoring.judge or "the recorded verdict",
            layout.number(score.reward),
            {True: "solved", False: "not solved", None: None}[score.success],
            score.error_message,
        )
        for score, scoring in list_scores_by_rollout(session, rollout_id)
    ]
    if not rows:
        return None
    columns = ("when", "reward", "judge", "score", "verdict", "error")
    return [tag("h2", "Scored again"), layout.table(columns, rows, "")]


def _source(session: Session, rollout: Rollout) -> list[tuple[str, str]]:
    if rollout.step_id is not None:
        step = session.get(Step, rollout.step_id)
        return [(f"step {step.step}", layout.path_of("step", step.id))] if step else []
    if rollout.eval_id is not None:
        evaluation = session.get(Eval, rollout.eval_id)
        return [(name_of(evaluation), layout.path_of("eval", evaluation.id))] if evaluation else []
    baseline = session.get(Baseline, rollout.baseline_id)
    return [(name_of(baseline), layout.path_of("baseline", baseline.id))] if baseline else []


def _facts(rollout: Rollout, env_type: str | None) -> Html:
    reported = {True: "success", False: "failure", None: "nothing"}[rollout.agent_reported_success]
    errors = sum(
        filter(
            None,
            (
                rollout.parse_errors,
                rollout.tool_name_errors,
                rollout.tool_arg_errors,
                rollout.runtime_errors,
            ),
        )
    )
    return layout.facts(
        ("status", layout.status(rollout.status)),
        ("reward", tag("strong", layout.number(rollout.reward))),
        ("validated", _passed_or_failed(rollout.validation_passed)),
        ("agent reported", reported),
        ("turns", f"{layout.number(rollout.num_turns)} of at most {rollout.max_turns}"),
        ("out of turns", {True: "yes", False: "no", None: layout.ABSENT}[rollout.ran_out_of_turns]),
        ("action errors", layout.number(errors if rollout.num_total_actions is not None else None)),
        ("time", layout.duration(rollout.rollout_time)),
        ("policy version", str(rollout.policy_version)),
        ("temperature", layout.rounded(rollout.temperature, digits=6)),
        ("seed", str(rollout.seed)),
        ("environment", env_type or layout.ABSENT),
    )


def _passed_or_failed(passed: bool | None) -> Node:  # noqa: FBT001  # a column's value
    if passed is None:
        return layout.ABSENT
    return tag("span", "passed" if passed else "failed", class_="good" if passed else "bad")


def _validations(validations: Sequence[Validation]) -> Html:
    rows = [
        (
            _passed_or_failed(validation.success),
            tag("code", name(validation.validation_query)),
            tag("code", name(validation.expected_result or layout.ABSENT)),
            tag("code", name(validation.actual_result or layout.ABSENT)),
            tag("span", name(validation.error_message or ""), class_="text"),
            str(validation.rank),
            layout.moment(validation.validation_time),
        )
        for validation in validations
    ]
    return layout.table(
        ("result", "query", "expected", "actual", "error", "rank", "time (UTC)"),
        rows,
        "Not validated.",
    )
