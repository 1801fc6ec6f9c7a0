"""What `cua-train sql demo` does: sizes and settings of its stages. Imports no torch."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from producer.process_rewards.best_of_n import Strategy
from schemas.ids import content_hash

VERSION: Final = 4
"""Raised when a change of the code makes other figures of the same recipe."""


@dataclass(frozen=True, slots=True)
class SqlDemoRecipe:
    """Everything that determines the figures, beside the seed."""

    templates: tuple[str, ...] = (
        *("filter", "count", "aggregate", "top", "join_filter", "group_count"),
    )
    """Kinds of questions."""
    train_databases: int = 60
    dev_databases: int = 18
    questions_per_template: int = 4
    """Of one database, at most: each split asks the forms that are its own."""
    most_tables: int = 2
    """Of one database; few, so that prompts are short."""
    dim: int = 128
    """Of the network, which has four layers."""
    mistaken_share: float = 0.5
    """Of the imitated answers: without their first step's condition or order.

    Imitation learns form and names, and to forget as often; not to forget is left to rewards."""
    sft_epochs: int = 3
    sft_learning_rate: float = 3e-3
    labelled_questions: int = 480
    completions: int = 4
    """Labelled, of each of these questions."""
    step_completions: int = 2
    """Of each prefix; a label is the share that is right."""
    prm_epochs: int = 6
    prm_learning_rate: float = 2e-3
    """With 5e-4 it learns which questions are hard, and not which of their answers is right."""
    rl_steps: int = 25
    groups_per_batch: int = 16
    group_size: int = 8
    rl_learning_rate: float = 1e-3
    lora_rank: int = 32
    max_tokens: int = 64
    n: int = 8
    """Completions to choose from, at temperature 1."""
    strategy: Strategy = "last"
    """How the scores of a completion's steps become one: the last step's label is the outcome."""
    limit: int | None = None
    """Held-out questions; None: all."""

    @property
    def identity(self) -> str:
        """Tells recipes apart."""
        return content_hash([VERSION, asdict(self)])[:12]

    def rl_fields(self, seed: int) -> dict[str, Any]:
        """Fields of both reinforcement trainings."""
        return {
            "environment": "text_to_sql",
            "max_turns": 1,
            "max_tokens": self.max_tokens,
            "num_steps": self.rl_steps,
            "groups_per_batch": self.groups_per_batch,
            "group_size": self.group_size,
            "learning_rate": self.rl_learning_rate,
            "lora_rank": self.lora_rank,
            "loss_fn": "ppo",
            "loss_aggregation": "token_mean",
            "max_concurrent_rollouts": 64,
            "eval_every": 0,
            "eval_temperature": 0.0,
            "save_every": 0,
            "behavior_if_log_dir_exists": "resume",
            "device": "cpu",
            "seed": seed,
        }
