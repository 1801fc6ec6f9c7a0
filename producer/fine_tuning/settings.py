"""Settings of a supervised training: frozen, validated once, recorded in its first event.

One class for three objectives with different defaults (`DEFAULTS`), as in RewardSQL.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    PrivateAttr,
    model_validator,
)

from producer.algorithms.settings import SettingsGroup
from producer.config.continuing import check_same
from producer.errors import UsageError
from producer.field_errors import invalid, read_as, under_given_names
from producer.numbers import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Seed,
)
from producer.policy.compute_settings import Device
from producer.training_name import check_training_name
from schemas.training import Recipe

Objective = Literal["sft", "process_reward", "pairwise_reward"]
Every = Literal["steps", "epoch", "no"]
Share = Annotated[float, Field(ge=0, lt=1)]

DEFAULTS: Final[dict[Objective, dict[str, Any]]] = {
    "sft": {
        "learning_rate": 1e-4,
        "weight_decay": 0.1,
        "warmup_ratio": 0.05,
        "batch_size": 16,
        "max_length": 2048,
        "held_out_ratio": 0.01,
        "save_strategy": "steps",
        "eval_strategy": "steps",
        "train_type": "lora",
        "adam_beta2": 0.999,
    },
    "process_reward": {},
    "pairwise_reward": {},
}
"""Defaults that differ from the fields' own, which are those of reward models."""

CHANGEABLE: Final = frozenset(
    {
        *("steps_per_epoch", "num_steps", "output_dir", "log_path", "device"),
        *("gradient_checkpointing", "save_strategy", "save_steps", "save_total_limit"),
        *("eval_strategy", "eval_steps"),
        *("logging_steps", "wandb_project", "attention"),
    }
)
"""Fields that may differ when a training continues."""
COMPUTED: Final = frozenset({"data_sha256", "steps_per_epoch"})
ONLY_WITH: Final[dict[str, tuple[Objective, ...]]] = {
    **dict.fromkeys(("group_by_prefix", "skip_invalid"), ("sft",)),
    **dict.fromkeys(("system", "use_chat_template"), ("sft", "pairwise_reward")),
    **dict.fromkeys(
        ("placeholder_token", "reward_tokens", "input_key", "label_key", "labels"),
        ("process_reward",),
    ),
    **dict.fromkeys(("chosen_key", "rejected_key"), ("pairwise_reward",)),
}
"""Fields that have an effect on some objectives alone."""
OF_ONE_PROCESS: Final = frozenset({"log_path"})


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str | Path) else given


def _check_two(tokens: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(tokens)) != 2 or not all(tokens):  # noqa: PLR2004  # good and bad
        message = "must be two different tokens: of a right step, of a wrong one"
        raise ValueError(message)
    return tokens


class FineTuningConfig(SettingsGroup):
    """Every setting of `cua-train sql sft` and `cua-train sql reward-model`."""

    objective: Objective
    """What is trained."""
    training_name: Annotated[str, AfterValidator(check_training_name)] | None = None
    """The same name continues the same training."""
    log_path: Path | None = None
    """Folder of resume states and checkpoints."""
    model_name: str
    """Policy to start from."""
    data_path: Annotated[tuple[Path, ...], BeforeValidator(_as_list), Field(min_length=1)]
    """Examples as JSON or JSON lines; sft also takes a data set in BIRD's or Spider's layout."""
    skip_invalid: bool = False
    """Leave out questions without a database or with a gold that fails."""
    data_sha256: str = ""
    """sha256 of the files of examples; computed."""
    output_dir: Path | None = None
    """Folder of the result."""
    epochs: PositiveInt = 1
    """Passes over the examples."""
    steps_per_epoch: NonNegativeInt = 0
    """Optimiser steps per epoch; computed."""
    learning_rate: PositiveFloat = 9e-6
    """Highest learning rate."""
    weight_decay: NonNegativeFloat = 0.0
    """Weight decay of matrices; biases have none."""
    adam_beta2: Share = 0.95
    """AdamW's second beta; its first is 0.9."""
    lr_scheduler: Literal[
        "cosine", "linear", "constant", "constant_with_warmup", "cosine_with_min_lr"
    ] = "cosine"
    """Learning rate after the warm-up."""
    warmup_ratio: Share = 0.03
    """Share of the steps with a rising learning rate."""
    max_gradient_norm: PositiveFloat = 1.0
    """Clip the gradient to this global L2 norm."""
    batch_size: PositiveInt = 256
    """Examples per optimiser step."""
    group_by_prefix: bool = False
    """Keep examples with a common prompt prefix (questions about one database) adjacent in the
    order of an epoch, so that the examples of a batch share its computation. Only with sft."""
    max_length: PositiveInt = 8192
    """Tokens of an example; longer ones are left out and counted."""
    seed: Seed = 42
    """Seed of fresh weights."""
    data_seed: Seed = 42
    """Seed of the examples' order and of the held-out ones."""
    held_out_ratio: Share = 0.1
    """Share of the examples for evaluation."""
    save_strategy: Every = "epoch"
    """When to keep a checkpoint."""
    save_steps: PositiveInt = 50
    """Steps between checkpoints."""
    save_total_limit: PositiveInt | None = None
    """Number of newest checkpoints to keep."""
    eval_strategy: Every = "epoch"
    """When to evaluate the held-out examples."""
    eval_steps: PositiveInt = 50
    """Steps between evaluations."""
    logging_steps: PositiveInt = 1
    """Steps between log lines."""
    train_type: Literal["full", "lora"] = "full"
    """Train all weights, or an adapter."""
    lora_rank: PositiveInt = 8
    """Rank of the adapter."""
    lora_alpha: PositiveFloat = 32.0
    """Scale of the adapter, which is multiplied by lora_alpha / lora_rank."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of matrix products; weights and optimiser are float32."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass to save memory; the same bits."""
    attention: Literal["sdpa", "flash_attention_2"] = "sdpa"
    """Attention implementation."""
    device: Device = "auto"
    """Where to compute."""
    cpu_threads: PositiveInt | None = None
    """On a CPU: threads per operation, for policies of more than 50 M weights. Recorded."""
    wandb_project: str | None = None
    """Mirror the training to this Weights & Biases project."""
    use_chat_template: bool = True
    """Write prompts in the policy's chat template."""
    system: str | None = None
    """System prompt for examples without one."""
    placeholder_token: Annotated[str, Field(min_length=1)] = " и"  # noqa: S105  # no password
    """Marks the end of each step."""
    reward_tokens: Annotated[tuple[str, ...], AfterValidator(_check_two)] = ("+", "-")
    """Tokens of a right and of a wrong step."""
    input_key: str = "input"
    """Field with the text and its step markers."""
    label_key: str = "label"
    """Field with the labels of the steps."""
    labels: Literal["soft", "hard"] = "soft"
    """Numeric labels: used as they are, or counted as right above 0.5."""
    chosen_key: str = "chosen"
    """Field with the better answer."""
    rejected_key: str = "rejected"
    """Field with the worse answer."""

    _explicit: frozenset[str] = PrivateAttr(default=frozenset())

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.objective == "pairwise_reward" and self.train_type == "lora":
            message = "train_type: a pairwise reward model is trained whole; use full"
            raise ValueError(message)
        if self.group_by_prefix and self.attention != "sdpa":
            message = (
                f"group_by_prefix: packed rows need a mask that {self.attention} does not take; use"
                " attention sdpa, or omit it"
            )
            raise ValueError(message)
        return self

    @property
    def kind(self) -> Literal["sft"]:
        """As `TrainingCreated` records it; `objective` is in its config."""
        return "sft"

    @property
    def wandb_name(self) -> None:
        """None: the run there has the training's name."""

    @property
    def baseline_only(self) -> bool:
        """Never: the held-out examples are always evaluated before the first step."""
        return False

    @property
    def num_baselines(self) -> int:
        """One, of the held-out examples."""
        return 1

    @property
    def num_steps(self) -> int:
        """Optimiser steps of all epochs."""
        return self.epochs * self.steps_per_epoch

    def recorded(self) -> dict[str, JsonValue]:
        """As JSON for the training's first event."""
        return {**self.model_dump(mode="json"), "num_steps": self.num_steps}

    def recipe(self, log_path: Path) -> Recipe:
        """The settings that have columns of their own."""
        shared = ("model_name", "learning_rate", "batch_size", "seed", "wandb_project")
        own = {name: getattr(self, name) for name in shared}
        one_turn = {"group_size": 1, "num_substeps": 1, "max_turns": 1, "max_tokens": 0}
        unused = {"temperature": 0.0, "kl_penalty_coef": 0.0, "box_type": "database"}
        other = {
            "log_path": str(log_path),
            "lora_rank": self.lora_rank if self.train_type == "lora" else None,
            "groups_per_batch": self.batch_size,
        }
        return Recipe.model_validate({**own, **one_turn, **unused, **other})

    def continuing(self, recorded: dict[str, JsonValue], *, overwrite: bool) -> Self:
        """As `TrainingConfig.continuing`."""
        own = self.recorded()
        if recorded.get("data_sha256") != self.data_sha256 and not overwrite:
            message = (
                f"data_path: the examples in {', '.join(map(str, self.data_path))} are not those"
                " that the training began with"
            )
            raise UsageError(message, ways=("put them back", "choose another --training-name"))
        given = {name: own[name] for name in self._explicit if name in own}
        if not overwrite:
            check_same(recorded, given, CHANGEABLE)
        kept = {name: value for name, value in recorded.items() if name not in OF_ONE_PROCESS}
        derived = {"data_sha256": self.data_sha256, "steps_per_epoch": self.steps_per_epoch}
        return type(self)._read({**kept, **given, **derived}, self._explicit)

    @classmethod
    def _read(
        cls,
        fields: dict[str, Any],
        explicit: frozenset[str],
        names: Mapping[str, str] | None = None,
    ) -> Self:
        own = {name: value for name, value in fields.items() if name != "num_steps"}
        config = read_as(cls, own, names)
        config._explicit = explicit
        return config


def read_fine_tuning(
    objective: Objective,
    given: dict[str, Any],
    recorded: dict[str, JsonValue] | None = None,
    names: Mapping[str, str] | None = None,
) -> FineTuningConfig:
    """`given` over the `recorded` settings of an earlier process, or over the defaults.

    UsageError lists every problem under the name that the user gave: `names`, by field; also for
    fields that would have no effect on a training that begins.
    """
    base = {
        name: value
        for name, value in (recorded or DEFAULTS[objective]).items()
        if name not in OF_ONE_PROCESS
    }
    whole = {**base, **given, "objective": objective}
    config = FineTuningConfig._read(whole, frozenset(given), names)
    if recorded is None and (problems := [*_without_effect(config, given)]):
        raise invalid(under_given_names(problems, names or {}))
    return config


def _without_effect(config: FineTuningConfig, given: Mapping[str, Any]) -> Iterator[str]:
    """Problems of given fields; those with their default are none."""
    asked = given.get("objective", config.objective)
    if asked != config.objective:
        yield f"objective: this command trains {config.objective}, not {asked}; omit it"
    for name in given:
        if getattr(config, name) == FineTuningConfig.model_fields[name].default:
            continue
        if name in COMPUTED:
            yield f"{name}: is computed; omit it"
        objectives = ONLY_WITH.get(name, (config.objective,))
        if config.objective not in objectives:
            yield f"{name}: only with {' and '.join(objectives)}; omit it"
