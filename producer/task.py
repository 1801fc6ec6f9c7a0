"""A task: the instruction an agent gets and how its outcome is judged. Pure data."""

from dataclasses import dataclass, field
from typing import Literal

Split = Literal["train", "eval"]


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Its row id in the log hashes every field, so a changed field is another task."""

    task_id: str
    """`train_02_enable_wifi`."""
    name: str
    description: str
    """The instruction given to the agent."""
    difficulty: Literal["easy", "medium", "hard"] | None
    category: str | None
    """app, settings, navigation, system, input."""
    max_steps: int
    """Maximum number of turns."""
    validation_query: str | None
    """Name of a device query (`wifi_enabled`), see `producer.validators`; None: the task cannot be
    judged."""
    expected_result: str | None
    """The query's answer for success, as text: `True`, `255`, `com.android.settings`."""
    setup: tuple[str, ...] = ()
    """Shell commands that put a fresh device into a state where the task is not solved yet
    (`settings put global wifi_on 0`)."""
    tags: tuple[str, ...] = ()
    app_name: str | None = None
    source_type: str = "custom"
    split: Split = "train"
    validation_config: dict[str, str] = field(default_factory=dict)
    """Additional parameters of the query."""

    @property
    def is_judged(self) -> bool:
        """Whether a validator exists for it."""
        return self.validation_query is not None
