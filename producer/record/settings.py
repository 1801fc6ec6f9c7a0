"""The settings of a recorded training, as stored in its first event, without secrets."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import JsonValue

from producer.errors import UsageError
from producer.record.values import json_fields
from schemas.installation import without_secrets
from schemas.training import RECORDED_BY, Recipe

VERSION = "1.0"
"""Version of this API (semantic versioning); recorded with every training."""
ALWAYS_SECRET = re.compile(
    r"(?:passwords?|passwd|passphrase|secrets?|credentials?|authorization)$", re.IGNORECASE
)
SECRET_TEXT = re.compile(r"(?:keys?|tokens?|cookie|dsn)$", re.IGNORECASE)
"""Names whose text values are secret; numeric values count tokens or heads."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
REDACTED = "***"


@dataclass(frozen=True, slots=True)
class RecordedSettings:
    """Settings of a training that another trainer runs. A `TrainingConfig`."""

    policy: str
    num_steps: int
    config: dict[str, JsonValue]
    """The loop's own settings, redacted."""
    learning_rate: float = 0.0
    group_size: int = 1
    groups_per_step: int = 1
    max_turns: int = 1
    max_tokens: int = 0
    temperature: float = 1.0
    kl_coef: float = 0.0
    updates_per_step: int = 1
    seed: int = 0
    environment: str = "recorded"
    """What the agent works with, as shown in the monitor."""

    kind: ClassVar[Literal["rl", "sft"]] = "rl"
    baseline_only: ClassVar[bool] = False
    num_baselines: ClassVar[int] = 0
    """The loop decides when to evaluate."""
    wandb_project: ClassVar[str | None] = None
    """The loop has its own tracker, or uses `cua-project track`."""
    wandb_name: ClassVar[str | None] = None

    def recorded(self) -> dict[str, JsonValue]:
        """The settings as JSON, for the training's first event."""
        return {RECORDED_BY: f"producer.record {VERSION}", **asdict(self)}

    def recipe(self, log_path: Path) -> Recipe:
        """The settings that have their own columns."""
        return Recipe(
            log_path=str(log_path),
            model_name=self.policy,
            learning_rate=self.learning_rate,
            batch_size=self.group_size * self.groups_per_step,
            group_size=self.group_size,
            groups_per_batch=self.groups_per_step,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            kl_penalty_coef=self.kl_coef,
            num_substeps=self.updates_per_step,
            max_turns=self.max_turns,
            seed=self.seed,
            box_type=self.environment,
        )

    def continuing(self, recorded: dict[str, JsonValue], *, overwrite: bool) -> Self:
        """These settings. Raises UsageError if the policy differs from the recorded one."""
        del overwrite
        if recorded.get("policy") != self.policy:
            message = (
                f"the training of this name trains {recorded.get('policy')!r}, not {self.policy!r};"
                " choose another name"
            )
            raise UsageError(message)
        return replace(self)


def redacted(config: Mapping[str, object]) -> dict[str, JsonValue]:
    """The loop's settings as JSON, without values that their names or URLs mark as secret."""
    return {name: _redacted(name, value) for name, value in json_fields(config).items()}


def _redacted(name: str, value: JsonValue, *, is_secret: bool = False) -> JsonValue:
    words = WORD.findall(name)
    last = words[-1] if words else name
    if ALWAYS_SECRET.search(last) and value is not None and not isinstance(value, bool):
        return REDACTED
    is_secret = is_secret or SECRET_TEXT.search(last) is not None
    match value:
        case str():
            return REDACTED if is_secret and value else without_secrets(value)
        case dict():
            return {key: _redacted(key, item, is_secret=is_secret) for key, item in value.items()}
        case list():
            return [_redacted(name, item, is_secret=is_secret) for item in value]
        case _:
            return value
