"""What an agent is asked to do, and how the outcome is judged; pure data."""

from dataclasses import dataclass, field
from typing import Literal

Split = Literal["train", "eval"]


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Content-addressed when stated in the log.

    Any changed field makes another definition.
    """

    task_id: str
    """`train_02_enable_wifi`."""
    name: str
    description: str
    """The instruction that the agent gets."""
    difficulty: Literal["easy", "medium", "hard"] | None
    category: str | None
    """app, settings, navigation, system, input."""
    max_steps: int
    """Turns the agent may take."""
    validation_query: str | None
    """Name of a device query (`wifi_enabled`), see `producer.validators`; None: the task cannot be
    judged."""
    expected_result: str | None
    """What the query must answer, as text: `True`, `255`, `com.android.settings`."""
    setup: tuple[str, ...] = ()
    """Shell commands that bring a fresh device into the state in which the task is not yet solved
    (`settings put global wifi_on 0`)."""
    tags: tuple[str, ...] = ()
    app_name: str | None = None
    source_type: str = "custom"
    split: Split = "train"
    validation_config: dict[str, str] = field(default_factory=dict)
    """Further parameters of the query."""

    @property
    def is_judged(self) -> bool:
        """Whether a validator exists for it."""
        return self.validation_query is not None
