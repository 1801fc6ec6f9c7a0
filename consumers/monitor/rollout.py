"""One rollout, turn by turn: screenshots, model responses, actions, and the validation."""

import json
from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from consumers.monitor import layout
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.grid import grid, trail
from consumers.monitor.html import Html, Node, tag
from consumers.monitor.screen import screen
from consumers.queries import (
    get_environment_by_rollout,
    get_status_history,
    get_task,
    list_rollouts_by_group,
    list_scores_by_rollout,
)
from consumers.tables import Action, Baseline, Eval, Rollout, Step, Turn, Validation

LONGEST_VALUE = 400
"""Longest argument shown, in characters; the log has all of it."""


def rollout_page(session: Session, rollout_id: UUID, store: ScreenshotStore) -> str | None:
    """The page; None if the rollout does not exist."""
    rollout = session.get(Rollout, rollout_id)
    if rollout is None:
        return None
    load = (selectinload(Turn.actions), selectinload(Turn.observations))
    turns = session.scalars(
        select(Turn).where(Turn.rollout_id == rollout.id).order_by(Turn.turn).options(*load)
    ).all()
    task = get_task(session, rollout.task_id)
    siblings = list_rollouts_by_group(session, rollout.group_id)
    environment = get_environment_by_rollout(session, rollout.id)
    return layout.page(
        rollout.rollout_id,
        tag(
            "p", task.description if task else "The task is not recorded yet.", class_="instruction"
        ),
        _facts(rollout, environment.env_type if environment else None),
        tag("p", rollout.error_message, class_="warning") if rollout.error_message else None,
        tag("p", "Rollouts of the same group: ", class_="faint"),
        grid(siblings, siblings),
        tag("h2", "Turns"),
        tag(
            "div",
            *(_turn(turn, store) for turn in turns),
            _last_screen(turns, store),
            class_="turns",
        ),
        None if turns else tag("p", "No turn yet.", class_="faint"),
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
        return (
            [(f"evaluation after step {evaluation.step}", layout.path_of("eval", evaluation.id))]
            if evaluation
            else []
        )
    baseline = session.get(Baseline, rollout.baseline_id)
    return [("baseline", layout.path_of("baseline", baseline.id))] if baseline else []


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
        ("temperature", f"{rollout.temperature:g}"),
        ("seed", str(rollout.seed)),
        ("environment", env_type or layout.ABSENT),
    )


def _passed_or_failed(passed: bool | None) -> Node:  # noqa: FBT001  # a column's value
    if passed is None:
        return layout.ABSENT
    return tag("span", "passed" if passed else "failed", class_="good" if passed else "bad")


def _turn(turn: Turn, store: ScreenshotStore) -> Html:
    by_type = {observation.obs_type: observation for observation in turn.observations}
    before, text = by_type.get("screenshot_before"), by_type.get("text")
    actions = [action.action_json for action in turn.actions]
    return tag(
        "section",
        screen(
            store, before.screenshot_uri if before else None, actions, f"before turn {turn.turn}"
        ),
        tag(
            "div",
            tag(
                "h3",
                f"Turn {turn.turn}",
                tag("span", f" {layout.duration(turn.turn_time)}", class_="faint"),
            ),
            tag("p", text.text_content or "", class_="observed-text") if text else None,
            tag("ol", *(tag("li", _action(action)) for action in turn.actions), class_="actions"),
            tag(
                "details",
                tag("summary", "model response"),
                tag("pre", turn.model_response),
                open="",
            ),
            tag("p", _small_print(turn), class_="faint"),
            class_="turn-text",
        ),
        class_="turn",
        id=f"turn-{turn.turn}",
    )


def _small_print(turn: Turn) -> str:
    parts = [f"policy version {turn.policy_version}"]
    if turn.num_tokens is not None:
        parts.append(f"{turn.num_tokens} tokens")
    if turn.stop_reason is not None:
        parts.append(f"stopped by {turn.stop_reason}")
    if isinstance(turn.metrics_json, Mapping):
        parts += [
            f"{name} {value:.3g}"
            for name, value in turn.metrics_json.items()
            if isinstance(value, int | float)
        ]
    return " · ".join(parts)


def _action(action: Action) -> Node:
    shown = action.action_json if isinstance(action.action_json, Mapping) else action.tool_args
    arguments = shown.items() if isinstance(shown, Mapping) else ()
    written = ", ".join(f"{name}={_short(value)}" for name, value in arguments if name != "type")
    trouble = (
        f" {action.error_type} error: {action.error_message or ''}" if action.error_type else None
    )
    return [
        tag("code", f"{action.action_type or action.tool_name}({written})"),
        tag("span", trouble, class_="bad") if trouble else None,
    ]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + " …"


def _last_screen(turns: Sequence[Turn], store: ScreenshotStore) -> Node:
    if not turns:
        return None
    after = next(
        (one for one in turns[-1].observations if one.obs_type == "screenshot_after"), None
    )
    if after is None or after.screenshot_uri is None:
        return None
    return tag(
        "section",
        screen(store, after.screenshot_uri, caption="after the last turn"),
        tag("div", tag("h3", "Final screen"), class_="turn-text"),
        class_="turn",
    )


def _validations(validations: Sequence[Validation]) -> Html:
    rows = [
        (
            _passed_or_failed(validation.success),
            tag("code", validation.validation_query),
            tag("code", validation.expected_result or layout.ABSENT),
            tag("code", validation.actual_result or layout.ABSENT),
            tag("span", validation.error_message or "", class_="text"),
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
