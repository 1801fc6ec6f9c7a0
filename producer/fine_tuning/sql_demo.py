"""The text-to-SQL pipeline with small policies, from data to best-of-N.

Its stages are imitation, labelled steps, a process reward model, and reinforcement learning from
outcomes and from steps. Each stage is a separate training in the log; running the same command
again continues with the next one.
"""

import json
import shutil
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.agents.text_to_sql.data.layouts import read_questions
from producer.agents.text_to_sql.data.tasks import database_statements
from producer.config import read_config
from producer.durable import write_durably
from producer.fine_tuning.executed_accuracy import chosen_accuracy
from producer.fine_tuning.greedy_gain import measured, measured_beside
from producer.fine_tuning.named_policy import num_questions, policy_fields, questions_of
from producer.fine_tuning.output import write_adapter
from producer.fine_tuning.questions import read_answered, with_mistakes
from producer.fine_tuning.run import FineTuningSummary, fine_tune
from producer.fine_tuning.settings import Objective
from producer.fine_tuning.stages import Figures, Stages
from producer.fine_tuning.step_labels import label_steps
from producer.process_rewards.best_of_n import Strategy
from producer.seeds import derived_seed
from producer.training.run import run
from schemas.ids import content_hash
from schemas.installation import Installation

BEST: Final = "best of n,"
"""Prefix of the stages that choose among completions."""
IMITATED: Final = "imitated.json"
"""File with the answers that are imitated, some of them mistaken."""
LABELLED: Final = "steps.json"
PROCESS, OUTCOME = "compute_grpo_process_advantage_avg_unique", "compute_grpo_outcome_advantage"
LABEL_TOKENS = ("+", "-")
"""Label tokens of the process reward model that is made from the network."""
VERSION: Final = 6
"""Increment when a change of the code changes the figures of a recipe."""


@dataclass(frozen=True, slots=True)
class SqlDemoRecipe:
    """Everything that determines the figures, except the seed."""

    templates: tuple[str, ...] = (
        *("filter", "count", "aggregate", "top", "join_filter", "group_count"),
    )
    """Names of the question templates."""
    train_databases: int = 60
    dev_databases: int = 18
    questions_per_template: int = 4
    """Maximum questions per database for each template; each split uses only its own gold forms."""
    most_tables: int = 2
    """Maximum tables per database; few, so that prompts are short."""
    dim: int = 128
    """Width of the network, which has four layers."""
    mistaken_share: float = 0.5
    """Share of the imitated answers that lack their first step's condition or order.

    Imitation learns form and names, and to forget as often; rewards must teach it not to forget.
    """
    sft_epochs: int = 3
    sft_learning_rate: float = 3e-3
    labelled_questions: int = 480
    completions: int = 4
    """Labelled completions per question."""
    step_completions: int = 2
    """Completions per prefix. A label is the share of them that are right."""
    prm_epochs: int = 6
    prm_learning_rate: float = 2e-3
    """With 5e-4, it learns which questions are hard but not which of their answers are right."""
    rl_steps: int = 25
    groups_per_batch: int = 16
    group_size: int = 8
    rl_learning_rate: float = 1e-3
    lora_rank: int = 32
    max_tokens: int = 64
    n: int = 8
    """Number of completions to choose from, sampled at temperature 1."""
    strategy: Strategy = "last"
    """How a completion's step scores are combined. The last step's label is the outcome."""
    limit: int | None = None
    """Maximum held-out questions; None for all."""

    @property
    def identity(self) -> str:
        """A hash that distinguishes recipes."""
        return content_hash([VERSION, asdict(self)])[:12]

    def rl_fields(self, seed: int) -> dict[str, Any]:
        """Configuration fields of both reinforcement trainings."""
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


@dataclass(frozen=True, slots=True)
class SqlDemo:
    """The pipeline of one seed."""

    seed: int
    installation: Installation
    recipe: SqlDemoRecipe
    stop: threading.Event

    @property
    def folder(self) -> Path:
        """The folder of the pipeline's data and policies."""
        return self.installation.home / "sql-demo" / f"seed-{self.seed}"

    def run(self) -> dict[str, Figures]:
        """Run all stages and map each to its figures.

        Raises UsageError for a folder that another recipe made, and StopRequestedError after `stop`
        was set; calling it again continues.
        """
        return Stages(self.folder, self.recipe.identity, f"seed {self.seed}").run(
            {
                "data": self._data,
                "sft": self._sft,
                "step labels": self._labels,
                "reward model": self._reward_model,
                "grpo outcome": lambda: self._grpo("outcome"),
                "grpo process": lambda: self._grpo("process"),
                f"{BEST} sft": lambda: self._best_of_n("sft"),
                f"{BEST} process": lambda: self._best_of_n("grpo-process"),
            }
        )

    def _named(self, stage: str) -> str:
        return f"sql-demo-{self.seed}-{stage}"

    def _source(self, split: str) -> dict[str, Any]:
        limit = self.recipe.limit if split == "dev" else None
        return questions_of(self.folder / "data", split, limit)

    def _data(self) -> Figures:
        recipe = self.recipe
        size = SyntheticSize(
            recipe.train_databases,
            recipe.dev_databases,
            recipe.questions_per_template,
            recipe.templates,
            recipe.most_tables,
        )
        written = write_synthetic(self.folder / "data", self.seed, size)
        build_demo_policy(self.folder / "base", self.folder / "data", recipe.dim, self.seed)
        random = Random(derived_seed(self.seed, "mistakes"))  # noqa: S311  # not for secrets
        rows = with_mistakes(
            read_answered(self.folder / "data", None), recipe.mistaken_share, random
        )
        write_durably(self.folder / IMITATED, json.dumps(rows, indent=1) + "\n")
        return {split: one.num_questions for split, one in written.items()}

    def _fine_tune(
        self, objective: Objective, base: str, data: str, output: str, **fields: object
    ) -> FineTuningSummary:
        """Train all weights. `base`, `data` and `output` are in the pipeline's folder."""
        given = {
            "training_name": self._named(output),
            "model_name": str(self.folder / base),
            "data_path": [str(self.folder / data)],
            "output_dir": self.folder / output,
            "train_type": "full",
            "batch_size": 16,
            "save_strategy": "no",
            "eval_strategy": "no",
            "logging_steps": 25,
            "device": "cpu",
            "seed": self.seed,
            "data_seed": self.seed,
        }
        return fine_tune(objective, given | fields, installation=self.installation, stop=self.stop)

    def _sft(self) -> Figures:
        summary = self._fine_tune(
            *("sft", "base", IMITATED, "sft"),
            epochs=self.recipe.sft_epochs,
            learning_rate=self.recipe.sft_learning_rate,
            weight_decay=0.01,
            adam_beta2=0.98,
            held_out_ratio=0.02,
        )
        return {"steps": summary.steps, "loss": summary.train_loss_last}

    def _labels(self) -> Figures:
        recipe = self.recipe
        found = label_steps(
            model_name=str(self.folder / "sft"),
            data=self.folder / "data",
            output=self.folder / LABELLED,
            installation=self.installation,
            completions_per_question=recipe.completions,
            step_completions=recipe.step_completions,
            limit=recipe.labelled_questions,
            training_name=self._named("labels"),
            max_tokens=recipe.max_tokens,
            max_concurrent=64,
            seed=self.seed,
            device="cpu",
            stop=self.stop,
        )
        return asdict(found)

    def _reward_model(self) -> Figures:
        summary = self._fine_tune(
            *("process_reward", "sft", LABELLED, "prm"),
            epochs=self.recipe.prm_epochs,
            learning_rate=self.recipe.prm_learning_rate,
        )
        return {
            "steps": summary.steps,
            "accuracy": summary.accuracy_after,
            "auc": summary.auc_after,
        }

    def _grpo(self, reward: str) -> Figures:
        """Train the imitating policy. The evaluation before the first step measures that policy."""
        source = self._source("dev")
        given = {
            **self.recipe.rl_fields(self.seed),
            "training_name": self._named(f"grpo-{reward}"),
            "model_name": str(self.folder / "sft"),
            "tasks": self._source("train"),
            "eval_tasks": source,
            "eval_episodes": num_questions(source),
            "core_function": PROCESS if reward == "process" else OUTCOME,
        }
        if reward == "process":
            given |= {"process_reward_model": self.folder / "prm", "skip_baseline": True}
        summary = run(read_config(given), installation=self.installation, stop=self.stop)
        write_adapter(summary, self.folder / f"grpo-{reward}")
        outcome = self._named("grpo-outcome")
        gained = (
            measured(self.installation, outcome)
            if reward == "outcome"
            else measured_beside(self.installation, outcome, self._named("grpo-process"))
        )
        return {
            "steps": summary.steps,
            "eval_split": summary.eval_split,
            **gained,
        }

    def _best_of_n(self, policy: str) -> Figures:
        """Best-of-N of the policy in this folder."""
        found = chosen_accuracy(
            {
                **policy_fields(str(self.folder / policy)),
                "max_tokens": self.recipe.max_tokens,
                "max_concurrent_rollouts": 64,
                "device": "cpu",
                "seed": self.seed,
            },
            self._source("dev"),
            n=self.recipe.n,
            reward_model=self.folder / "prm",
            installation=self.installation,
            stop=self.stop,
        )
        return {
            "questions": found.questions,
            "sizes": [
                {"n": size.num_candidates, **size.by_strategy, "pass_at_n": size.pass_at_n}
                for size in found.sizes
            ],
        }


def build_demo_policy(folder: Path, data: Path, dim: int, seed: int) -> None:
    """Write the initial network, which can only copy. Replaces `folder`.

    Its vocabulary covers schemas and questions, including the held-out ones, but no held-out
    answers.
    """
    from producer.policy.torch_policy.loading import load_base
    from producer.text_policy.build import TextPolicySize, build_text_policy
    from producer.text_policy.initial_attention import lay_out_copying

    texts = [message.content for item in read_answered(data, None) for message in item.messages]
    for question in read_questions(data, "dev"):
        texts += [question.question, question.evidence, *database_statements(question.database)]
    shutil.rmtree(folder, ignore_errors=True)
    build_text_policy(folder, texts, seed, TextPolicySize(dim=dim), extra_tokens=LABEL_TOKENS)
    network, _ = load_base(str(folder))
    lay_out_copying(network, seed)
    network.save_pretrained(folder)
