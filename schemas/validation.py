"""The event of a validator's verdict; stream of the rollout (rank 0) or of a scoring."""

from typing import ClassVar

from pydantic import JsonValue

from schemas.base import Id, Payload, Seconds, UtcTime


class ValidationRecorded(Payload):
    """A validator judged a rollout. A validator that cannot query the device fails the rollout."""

    TYPE: ClassVar[str] = "cua.validation.recorded"

    rollout_id: Id
    """The judged rollout."""
    validator_id: Id
    """Row id of the validator."""
    validated_at: UtcTime
    """When it was judged."""
    validation_query: str
    """The device query, or `agent_report`, or `model_judge`; where the environment judges, its own
    word: `dbbench`, `rows`."""
    expected_result: str | None
    """The answer that solves the task; None: the validator compares with no fixed answer."""
    actual_result: str | None
    """The device's answer; of a database the agent's answer, SQL or table hash. None: there was
    none."""
    success: bool
    """Whether the task is solved."""
    execution_time_s: Seconds
    """Duration of the query."""
    error_message: str | None = None
    """What went wrong; None: nothing."""
    rank: int = 0
    """Among several verdicts on a rollout, readers use the one with the highest rank."""
    details: dict[str, JsonValue] = {}
    """Evidence: the commands that were run; of a judge: `judge` (its endpoint), `model`,
    `prompt_sha256` and `reason`; of a database: `outcome`, of a session `session_status` too."""
