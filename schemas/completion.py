"""Events of a text-to-SQL completion; stream of its rollout."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from schemas.base import Count, Id, Items, KeyText, Payload, Seconds, UtcTime, Value


class CompletionExecuted(Payload):
    """The completion's SQL and the gold were executed."""

    TYPE: ClassVar[str] = "cua.completion.executed"

    entry_id: Id
    """Row id of the entry."""
    sql: str | None
    """Found in the completion; None: none."""
    num_steps: Count
    """CTEs and the final query of a completion in CoCTE form; 0: it is in another form."""
    outcome: Literal["correct", "incorrect", "error", "no_sql", "unknown"]
    """`correct`: rows as the gold's; `incorrect`: other rows; `error`: refused by the database or
    its limits; `no_sql`: nothing to execute; `unknown`: the gold itself cannot be executed."""
    outcome_reward: float
    """What the outcome is worth."""
    process_reward: float | None = None
    """Mean of its steps' scores; None: no model scored them."""
    num_rows: Count | None = None
    """Of the result; None: there was none."""
    execution_time_s: Seconds | None = None
    """Of the completion's SQL; None: it was not executed."""
    error_message: str | None = None
    """What the database said; None: nothing."""
    executed_at: UtcTime
    """When it had been compared."""


class StepScore(Value):
    """A step of a completion and what a scorer makes of it."""

    index: Count
    """From 0."""
    text: str
    """As written."""
    first_token: Count
    """Index of its first token in the completion."""
    last_token: Count
    """Index after its last."""
    score: Annotated[float, Field(ge=0, le=1)]
    """Probability that the completion is right so far."""
    label: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of right completions of the prefix; None: not sampled."""


class CompletionStepsScored(Payload):
    """A scorer judged every step of a completion."""

    TYPE: ClassVar[str] = "cua.completion.steps_scored"

    scorer: KeyText
    """The process reward model's name, or `monte_carlo`."""
    steps: Items[StepScore]
    """In order; at least one."""
    product: float
    """Product of the scores."""
    minimum: float
    """Lowest score."""
    last: float
    """Score of the last step."""
    average: float
    """Mean of the scores."""
    scored_at: UtcTime
    """When it was scored."""
