"""The interface TrainingConfig: what beginning and continuing a training need of its settings."""

from pathlib import Path
from typing import Literal, Protocol, Self, TypeVar

from pydantic import JsonValue

from schemas.training import Recipe


class TrainingConfig(Protocol):
    """The settings of one training, frozen."""

    @property
    def kind(self) -> Literal["rl", "sft"]:
        """As `TrainingCreated` records it."""

    @property
    def num_steps(self) -> int:
        """Requested steps."""

    @property
    def baseline_only(self) -> bool:
        """Whether only the evaluations before the first step are asked for."""

    @property
    def num_baselines(self) -> int:
        """Evaluations before the first step: one for each temperature."""

    def recorded(self) -> dict[str, JsonValue]:
        """As JSON for the training's first event."""

    def recipe(self, log_path: Path) -> Recipe:
        """The settings that have columns of their own."""

    def continuing(self, recorded: dict[str, JsonValue], *, overwrite: bool) -> Self:
        """The recorded settings with those that were given; `overwrite`: with any of them.

        UsageError for a setting that a training which goes on cannot change.
        """


ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
