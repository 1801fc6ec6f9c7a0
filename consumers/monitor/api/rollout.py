"""One rollout, turn by turn, what it came to, and the verdicts on it."""

from uuid import UUID

from pydantic import Field
from sqlalchemy.orm import Session

from consumers.monitor.api.step import RolloutSummary
from consumers.monitor.api.value import Document, Real, StatusChange, Utc, Value
from consumers.monitor.rollout import entry_of, turns_of
from consumers.queries import (
    entry_content,
    get_completion_by_rollout,
    get_environment_by_rollout,
    get_session_by_rollout,
    get_status_history,
    get_task,
    get_training,
    list_scores_by_completion,
    list_scores_by_rollout,
)
from consumers.tables import Rollout


class TaskFacts(Value):
    """The task of a rollout."""

    task_id: str
    """The text id."""
    name: str
    """Short."""
    description: str
    """The instruction."""


class ActionFacts(Value):
    """One action of a turn."""

    action_type: str | None
    """click, type, execute_sql ...; null: the call could not be parsed."""
    action: Document = Field(validation_alias="action_json")
    """As the environment executed it: places in pixels, SQL as `sql`."""
    tool_name: str
    """As the policy wrote it."""
    tool_args: Document
    """As the policy wrote them."""
    error_type: str | None
    """parse, tool_name, tool_arg, runtime; null: none."""
    error_message: str | None
    """null: no error."""


class ObservationFacts(Value):
    """One observation of a turn."""

    obs_type: str
    """screenshot_before, screenshot_after, text, model_response."""
    screenshot_uri: str | None
    """`blob:sha256:HEX`; the monitor serves the picture at `/blob/HEX`."""
    text_content: str | None
    """null: it is a screenshot."""


class TurnFacts(Value):
    """One turn of the agent."""

    turn: int
    """From 1."""
    start_time: Utc
    """When its completion was asked for."""
    end_time: Utc
    """When its actions had been executed."""
    turn_time_s: Real = Field(validation_alias="turn_time")
    """Its duration in seconds."""
    policy_version: int
    """The version that sampled it."""
    model_response: str
    """The completion as text, as the policy wrote it."""
    stop_reason: str | None
    """stop, length; null for a scripted policy."""
    num_tokens: int | None
    """Completion tokens."""
    metrics: Document = Field(validation_alias="metrics_json")
    """Timings in seconds: `sample_s`, `environment_s`."""
    actions: list[ActionFacts]
    """In order."""
    observations: list[ObservationFacts]
    """By type."""


class ValidationFacts(Value):
    """One verdict."""

    success: bool
    """The task was solved."""
    validation_query: str
    """What was asked of the device."""
    expected_result: str | None
    """null: none was stated."""
    actual_result: str | None
    """null: there was none."""
    error_message: str | None
    """null: no error."""
    rank: int
    """The verdict of the highest rank counts."""
    validation_time: Utc
    """When it was given."""


class ScoreFacts(Value):
    """What a later scoring gave it."""

    scoring_id: UUID
    """Row id of the scoring."""
    reward_name: str
    """The reward."""
    judge: str | None
    """Who judged again; null: the recorded verdict was used."""
    reward: Real | None
    """null: it could not be scored."""
    success: bool | None
    """The verdict that the reward is of."""
    error_message: str | None
    """Why it could not be scored."""


class SessionFacts(Value):
    """How a session with a database ended."""

    session_status: str
    """How it ended."""
    outcome: str
    """What it came to: a table can be right although the agent never answered."""
    answer: str | None
    """The agent's answer."""
    table_hash: str | None
    """Of the table at the end."""
    num_rounds: int
    """Rounds of the agent."""
    num_operations: int
    """Statements executed."""
    num_sql_errors: int
    """Statements that the database refused."""
    num_replayed: int
    """Sessions that were replayed."""
    error_message: str | None
    """null: no error."""


class StepScoreFacts(Value):
    """The score of one step of a completion."""

    step_index: int
    """From 0."""
    text: str
    """The SQL of the step."""
    score: Real
    """0-1."""


class ScorerFacts(Value):
    """What one scorer makes of a completion."""

    scorer: str
    """Its name."""
    product: Real
    """Of the steps' scores."""
    minimum: Real
    """Of the steps' scores."""
    last: Real
    """Score of the last step."""
    average: Real
    """Of the steps' scores."""
    steps: list[StepScoreFacts]
    """By index."""


class CompletionFacts(Value):
    """What the executed SQL of a text-to-SQL completion came to."""

    sql: str | None
    """The SQL that was executed; null: none was found."""
    outcome: str
    """correct, incorrect, error, no_sql, unknown."""
    outcome_reward: Real
    """For the outcome."""
    process_reward: Real | None
    """For the steps; null: nobody scored them."""
    num_steps: int
    """Steps of the completion."""
    num_rows: int | None
    """Rows of the result."""
    execution_time_s: Real | None = Field(validation_alias="execution_time")
    """Duration of the execution in seconds."""
    error_message: str | None
    """null: no error."""
    scorers: list[ScorerFacts]
    """By name."""


class RolloutFacts(RolloutSummary):
    """A rollout with its turns and verdicts."""

    training_id: UUID | None
    """Row id of its training; null: an evaluation without one."""
    run_name: str | None
    """Name of its training."""
    source_type: str
    """step, eval or baseline."""
    source_id: UUID
    """Row id of that step, eval or baseline."""
    group_id: UUID
    """Row id of its group."""
    task: TaskFacts | None
    """null: not recorded yet."""
    validation_passed: bool | None
    """null: not judged."""
    agent_reported_success: bool | None
    """The agent's own claim; null: it made none."""
    max_turns: int
    """Turns the agent may take."""
    ran_out_of_turns: bool | None
    """The limit of turns ended it."""
    num_actions: int | None = Field(validation_alias="num_total_actions")
    """Actions of all turns."""
    parse_errors: int | None
    """Completions that could not be parsed."""
    tool_name_errors: int | None
    """Actions whose tool does not exist."""
    tool_arg_errors: int | None
    """Actions whose arguments do not fit their tool."""
    runtime_errors: int | None
    """Actions that the environment refused."""
    rollout_time_s: Real | None = Field(validation_alias="rollout_time")
    """From its creation to its end, seconds."""
    policy_version: int
    """Version of the policy that sampled its first turn."""
    temperature: Real
    """Of sampling."""
    seed: int
    """Of the environment; 64 bits, more than a float holds."""
    environment: str | None
    """Type of the environment it ran in; null before it requested one."""
    error_type: str | None
    """The boundary that a failed attempt crossed."""
    error_message: str | None
    """Why it failed; null: it did not."""
    created_at: Utc
    """Time of its first event."""
    updated_at: Utc
    """Time of the last event that changed it."""
    turns: list[TurnFacts]
    """In order."""
    session: SessionFacts | None
    """Of an agent that works with a database; null: it is none, or has not ended."""
    completion: CompletionFacts | None
    """Of a text-to-SQL agent; null: it is none, or has not ended."""
    entry: Document
    """The entry of the data set that an SQL agent worked on; null: there is none."""
    validations: list[ValidationFacts]
    """The highest rank first."""
    scores: list[ScoreFacts]
    """Of later scorings, oldest first."""
    status_history: list[StatusChange]
    """Newest first."""
    environment_status_history: list[StatusChange]
    """Newest first."""


def rollout_facts(session: Session, rollout: Rollout) -> RolloutFacts:
    """Everything that the page of the rollout has."""
    environment = get_environment_by_rollout(session, rollout.id)
    training = get_training(session, rollout.training_id) if rollout.training_id else None
    entry = entry_of(session, rollout)
    facts: dict[str, object] = {
        "run_name": training.run_name if training else None,
        "source_id": rollout.step_id or rollout.eval_id or rollout.baseline_id,
        "task": get_task(session, rollout.task_id),
        "environment": environment.env_type if environment else None,
        "turns": turns_of(session, rollout.id),
        "session": get_session_by_rollout(session, rollout.id),
        "completion": _completion(session, rollout.id),
        "entry": None if entry is None else entry_content(entry).model_dump(mode="json"),
        "validations": rollout.validations,
        "scores": [
            {
                **{name: getattr(score, name) for name in ("reward", "success", "error_message")},
                "scoring_id": scoring.id,
                "reward_name": scoring.reward_name,
                "judge": scoring.judge,
            }
            for score, scoring in list_scores_by_rollout(session, rollout.id)
        ],
        "status_history": get_status_history(session, "rollout", rollout.id),
        "environment_status_history": (
            get_status_history(session, "environment", environment.id) if environment else []
        ),
    }
    return RolloutFacts.model_validate({name: getattr(rollout, name) for name in _COLUMNS} | facts)


_COLUMNS = (
    *(RolloutFacts.model_fields.keys() & Rollout.__mapper__.columns.keys()),
    *("num_total_actions", "rollout_time"),
)


def _completion(session: Session, rollout_id: UUID) -> dict[str, object] | None:
    done = get_completion_by_rollout(session, rollout_id)
    if done is None:
        return None
    return {
        **{column.key: getattr(done, column.key) for column in done.__mapper__.columns},
        "scorers": [
            {
                **{
                    name: getattr(scored.whole, name)
                    for name in ("scorer", "product", "minimum", "last", "average")
                },
                "steps": scored.steps,
            }
            for scored in list_scores_by_completion(session, rollout_id)
        ],
    }
