"""Trainings: the rows of their list, and one with everything that its page has."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from pydantic import Field
from sqlalchemy.orm import Session

from consumers.monitor import layout, measured
from consumers.monitor.api.step import StepSummary
from consumers.monitor.api.value import Document, Real, StatusChange, Utc, Value
from consumers.monitor.overview import parked_since
from consumers.monitor.skills import session_counts
from consumers.queries import (
    Gain,
    count_leaked_devices,
    gains_by_temperature,
    get_status_history,
    list_annotations,
    list_baselines_by_training,
    list_evals_by_training,
    list_gains,
    list_scorings_by_training,
    list_steps_by_training,
    list_trainings,
    success_by_skill,
)
from consumers.tables import Annotation, Baseline, Eval, Training


class TrainingSummary(Value):
    """One training of the list."""

    id: UUID
    """Row id, in `/training/ID` and in the events' `trainingid`."""
    run_name: str
    """The command line's --training-name; its answer is at `/api/trainings/NAME`."""
    display_name: str | None
    """What it was renamed to; null: it was not."""
    tags: list[str]
    """Tags that people gave it."""
    kind: str
    """rl, sft."""
    environment: str
    """What its agent works with."""
    model_name: str
    """The base policy: hub id or folder."""
    status: str
    """pending, initializing, running, paused, completed, failed or cancelled."""
    progress_percent: Real
    """0-100."""
    current_step: int
    """Steps finished."""
    total_steps: int
    """Steps requested."""
    success_before: Real | None
    """Success rate (0-1) before the first step; null: not evaluated."""
    success_after: Real | None
    """Success rate (0-1) of the last scheduled evaluation; null: there was none."""
    gain: Real | None
    """success_after - success_before over the tasks of both; null: they cannot be paired."""
    gain_standard_error: Real | None
    """Of gain, paired and clustered by task."""
    eval_temperature: Real | None
    """Of the last evaluation; 0 is greedy."""
    eval_tasks: int | None
    """Distinct tasks of the last evaluation."""
    eval_split: str | None
    """held_out, training_tasks_unseen_seeds, training_tasks or mixed."""
    last_heartbeat: Utc | None
    """Time of its last heartbeat; null before the first."""
    heartbeat_age_s: Real | None
    """Seconds since then."""
    parked_since: Utc | None
    """Since when its stream waits because a record could not be applied; null: it does not."""
    created_at: Utc
    """Time of its first event."""
    start_time: Utc | None
    """When it began."""
    end_time: Utc | None
    """When it ended; null: it has not."""
    updated_at: Utc
    """Time of the last event that changed it."""


class TrainingList(Value):
    """Trainings, the newest first; those that were hidden are omitted."""

    trainings: list[TrainingSummary]


class MeasuredSuccess(Value):
    """What one evaluation measured."""

    rate: Real
    """0-1."""
    temperature: Real | None
    """0 is greedy; null: not recorded."""
    split: str | None
    """As eval_split."""
    num_tasks: int | None
    """Distinct tasks."""


class PairedDifference(Value):
    """Success after minus success before, over the tasks of both."""

    gain: Real
    """Difference of success rates."""
    standard_error: Real
    """Clustered by task."""
    num_tasks: int
    """Tasks of both evaluations."""
    is_significant: bool
    """More than two standard errors, over enough tasks."""


class SuccessGain(Value):
    """Success before and after training, at one temperature."""

    before: MeasuredSuccess | None
    after: MeasuredSuccess | None
    difference: PairedDifference | None
    """null: one of them is missing, or they share no task."""


class Evaluation(Value):
    """A baseline or an evaluation."""

    id: UUID
    """Row id; its page is `/baseline/ID` or `/eval/ID`."""
    kind: str
    """baseline, scheduled (by its training) or manual (by `cua-train evaluate`)."""
    step: int | None
    """Steps that the policy was trained for."""
    status: str
    """Its state."""
    progress_percent: Real
    """0-100."""
    success_rate: Real | None
    """0-1, of the judged episodes; null: it has not finished."""
    standard_error: Real | None
    """Of success_rate, clustered by task; null: not recorded."""
    temperature: Real | None
    """Of sampling; 0 is greedy; null: not recorded."""
    split: str | None
    """As eval_split of the training."""
    num_tasks: int | None
    """Distinct tasks; null: not recorded."""
    task_source: str | None
    """Short name of the tasks."""
    avg_reward: Real | None
    """Mean over the judged episodes."""
    avg_turns: Real | None
    """Mean over the judged episodes."""
    completed_episodes: int = Field(validation_alias="completed_tasks")
    """Episodes that have ended."""
    total_episodes: int = Field(validation_alias="total_tasks")
    """Episodes to run."""
    eval_time_s: Real | None = Field(validation_alias="eval_time")
    """Its duration in seconds."""
    model_path: str | None
    """Name of the policy."""
    created_at: Utc
    """Time of its first event."""


class SkillSuccess(Value):
    """Success on the entries of one skill, after an evaluation."""

    evaluation_id: UUID
    """Row id of the evaluation."""
    step: int
    """Steps that the policy was trained for."""
    stage: int | None
    """Skills trained so far; null: they are not trained in turn."""
    trained_skill: str | None
    """The skill that the stage trained."""
    skill: str
    """The skill; `all`: every entry once."""
    num_sessions: int
    """Sessions that need it."""
    num_correct: int
    """Those that were right."""
    success_rate: Real
    """0-1."""


class SessionCount(Value):
    """How many sessions with a database ended in one way."""

    session_status: str
    """How they ended."""
    outcome: str
    """What they came to."""
    num_sessions: int
    """Sessions."""


class Scoring(Value):
    """One time that its rollouts were scored again."""

    id: UUID
    """Row id."""
    reward_name: str
    """The reward: a name, or package.module:function."""
    judge: str | None
    """Who judged again; null: the recorded verdicts were used."""
    reward_mean: Real | None
    """Of the new rewards."""
    success_rate: Real | None
    """0-1, of the rollouts with a verdict."""
    scored_rollouts: int | None
    """Rollouts that got a reward; null until the end."""
    failed_rollouts: int | None
    """Rollouts that could not be scored; null until the end."""
    created_at: Utc
    """Time of its first event."""


class TrainingFacts(TrainingSummary):
    """A training with its settings, evaluations, steps and status history."""

    note: str | None
    """What people noted."""
    current_phase: str | None
    """What it is doing; null once it has ended."""
    estimated_remaining_s: Real | None
    """Seconds, as of its last event; null once it has ended."""
    status_message: str | None
    """Details of the status."""
    error_message: str | None
    """Why it failed; null: it did not."""
    generation: int
    """Incremented when a resumed training repeats steps."""
    learning_rate: Real
    """Of the optimizer."""
    groups_per_batch: int
    """Groups per step."""
    group_size: int
    """Rollouts per group."""
    lora_rank: int | None
    """null: no LoRA."""
    max_turns: int
    """Limit of one rollout, turns."""
    max_tokens: int
    """Limit of one completion, tokens."""
    temperature: Real
    """Of sampling in training."""
    seed: int
    """Of all randomness."""
    log_path: str | None
    """Folder of resume states and checkpoints, on the trainer's host."""
    checkpoint_path: str | None
    """The last checkpoint saved."""
    num_leaked_devices: int
    """Devices that were not released and may still run."""
    config: Document = Field(validation_alias="config_json")
    """The whole configuration of the last start; secrets are redacted."""
    gains: list[SuccessGain]
    """By temperature, rising."""
    evaluations: list[Evaluation]
    """Baselines, then evaluations by step."""
    skills: list[SkillSuccess]
    """By evaluation and skill; empty where none were measured."""
    sessions: list[SessionCount]
    """Of agents that work with a database."""
    scorings: list[Scoring]
    """Oldest first."""
    steps: list[StepSummary]
    """By number, without those that a newer generation repeats."""
    status_history: list[StatusChange]
    """Newest first."""


def training_list(session: Session, now: datetime) -> TrainingList:
    """Every training that is not hidden."""
    return TrainingList(
        trainings=[
            TrainingSummary.model_validate(columns)
            for columns in _summaries(session, list_trainings(session), now)
        ]
    )


def training_facts(session: Session, training: Training, now: datetime) -> TrainingFacts:
    """Everything that the page of the training has."""
    (summary,) = _summaries(session, [training], now)
    baselines = list_baselines_by_training(session, training.id)
    evals = list_evals_by_training(session, training.id)
    is_over = training.status not in layout.UNFINISHED
    facts: Mapping[str, object] = {
        **{name: getattr(training, name) for name in _COLUMNS},
        **summary,
        "current_phase": None if is_over else training.current_phase,
        "estimated_remaining_s": None if is_over else training.estimated_remaining_time,
        "num_leaked_devices": count_leaked_devices(session, training.id),
        "gains": gains_by_temperature([*baselines, *evals]),
        "evaluations": [*map(_evaluation, baselines), *map(_evaluation, evals)],
        "skills": success_by_skill(session, training.id),
        "sessions": [
            SessionCount(session_status=status, outcome=outcome, num_sessions=number)
            for (status, outcome), number in session_counts(session, training.id).items()
        ],
        "scorings": list_scorings_by_training(session, training.id),
        "steps": list_steps_by_training(session, training.id),
        "status_history": get_status_history(session, "training", training.id),
    }
    return TrainingFacts.model_validate(facts)


_COLUMNS = (
    *("status_message", "error_message", "generation", "learning_rate", "groups_per_batch"),
    *("group_size", "lora_rank", "max_turns", "max_tokens", "temperature", "seed", "log_path"),
    *("checkpoint_path", "config_json"),
)


def _summaries(
    session: Session, trainings: Sequence[Training], now: datetime
) -> list[dict[str, object]]:
    """The columns of `TrainingSummary`, and `note`, of each."""
    wanted = [training.id for training in trainings]
    gains = list_gains(session, wanted)
    annotations = {item.training_id: item for item in list_annotations(session, wanted)}
    _, parked = parked_since(session, wanted)
    return [
        _summary(
            training,
            now,
            gains.get(training.id, Gain(None, None)),
            annotations.get(training.id),
            parked.get(f"training/{training.id}"),
        )
        for training in trainings
    ]


def _summary(
    training: Training,
    now: datetime,
    gain: Gain,
    annotation: Annotation | None,
    parked: datetime | None,
) -> dict[str, object]:
    last, difference = gain.after or gain.before, gain.difference
    heartbeat = training.last_heartbeat
    own = TrainingSummary.model_fields.keys() & Training.__mapper__.columns.keys()
    return {
        **{name: getattr(training, name) for name in own},
        "display_name": annotation.display_name if annotation else None,
        "tags": annotation.tags if annotation else [],
        "note": annotation.note if annotation else None,
        "environment": layout.environment(training),
        "success_before": gain.before.rate if gain.before else None,
        "success_after": gain.after.rate if gain.after else None,
        "gain": difference.gain if difference else None,
        "gain_standard_error": difference.standard_error if difference else None,
        "eval_temperature": last.temperature if last else None,
        "eval_tasks": last.num_tasks if last else None,
        "eval_split": last.split if last else None,
        "heartbeat_age_s": (
            None if heartbeat is None else max(now - heartbeat, timedelta()).total_seconds()
        ),
        "parked_since": parked,
    }


def _evaluation(evaluation: Baseline | Eval) -> dict[str, object]:
    columns = Evaluation.model_fields.keys() | {"completed_tasks", "total_tasks", "eval_time"}
    return {
        **{name: getattr(evaluation, name) for name in columns if hasattr(evaluation, name)},
        "kind": evaluation.kind if isinstance(evaluation, Eval) else "baseline",
        "standard_error": (
            measured.standard_error(evaluation) or None
            if evaluation.standard_error is None
            else evaluation.standard_error
        ),
    }
