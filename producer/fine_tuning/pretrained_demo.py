"""Text-to-SQL with a pretrained policy: imitation of a few golds, then rejection sampling.

The imitation of golds ends early. Then the policy answers every training question several times and
imitates those of its own answers that return the gold's rows: one step of the advantage
`rejection`, in minibatches. A control imitates equally many of its answers, regardless of their
rows. Both are measured greedily on questions whose gold has a form that no training has seen, about
databases whose set of tables no training has seen.
"""

import json
import shutil
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from producer.agents.text_to_sql.data.generate import BirdSplit, SyntheticSize, write_synthetic
from producer.agents.text_to_sql.data.layouts import read_questions
from producer.agents.text_to_sql.data.tasks import database_statements
from producer.config import read_config
from producer.durable import write_durably
from producer.errors import UnreachableError
from producer.fine_tuning.greedy_gain import measured, measured_beside
from producer.fine_tuning.named_policy import num_questions, policy_fields, questions_of
from producer.fine_tuning.output import write_adapter
from producer.fine_tuning.questions import AnsweredQuestion, read_answered
from producer.fine_tuning.run import fine_tune
from producer.fine_tuning.stages import Figures, Stages
from producer.pretrained.get import get_model
from producer.pretrained.known import known_model
from producer.seeds import derived_seed
from producer.training.redo import redo
from producer.training.run import run
from schemas.ids import content_hash
from schemas.installation import Installation

VERSION: Final = 3
"""Increment when a change of the code changes the figures of a recipe."""
IMITATED: Final = "imitated.json"
"""File with the golds that are imitated."""
DEV: Final = "dev.json"
ZERO_SHOT: Final = "zero-shot"


@dataclass(frozen=True, slots=True)
class PretrainedDemoRecipe:
    """Everything that determines the figures, except the seed."""

    model: str = "smollm2-135m"
    train_databases: int = 60
    dev_databases: int = 64
    questions_per_template: int = 1
    """Maximum questions per database for each of the 16 templates."""
    most_tables: int = 2
    """Maximum tables per database; few, so that prompts are short."""
    imitated_databases: int = 16
    imitated_of_each: int = 8
    """Golds imitated per database."""
    lora_rank: int = 16
    sft_epochs: int = 3
    sft_learning_rate: float = 1e-3
    group_size: int = 2
    """Answers per training question."""
    temperature: float = 0.7
    learning_rate: float = 5e-4
    groups_per_update: int = 48
    """Questions per optimiser step."""
    max_tokens: int = 110
    """Token limit of an answer; the longest gold has 102 tokens."""
    zero_shot_questions: int = 32
    """Questions asked of the policy before any training, each about another database. Its answers
    are prose."""
    limit: int | None = None
    """Maximum held-out questions; None for all."""

    @property
    def identity(self) -> str:
        """A hash that distinguishes recipes."""
        return content_hash([VERSION, asdict(self)])[:12]


@dataclass(frozen=True, slots=True)
class PretrainedDemo:
    """The pipeline of one seed."""

    seed: int
    installation: Installation
    recipe: PretrainedDemoRecipe
    stop: threading.Event

    @property
    def folder(self) -> Path:
        """The folder of the pipeline's data and adapters."""
        name = f"{self.recipe.model}-{self.recipe.identity}-seed-{self.seed}"
        return self.installation.home / "sql-demo" / name

    def run(self) -> dict[str, Figures]:
        """Run all stages and map each to its figures.

        Another recipe uses another folder and other trainings. Raises UnreachableError if the
        policy is not available locally and no index has it, and StopRequestedError after `stop` was
        set; calling it again continues.
        """
        return Stages(self.folder, self.recipe.identity, f"seed {self.seed}").run(
            {
                "policy": self._get_policy,
                "data": self._data,
                "zero-shot": self._zero_shot,
                "sft": self._sft,
                "rejection sampling": self._rejection_sampling,
                "control update": self._update_control,
                "control": self._control,
            }
        )

    @property
    def _policy(self) -> Path:
        return known_model(self.recipe.model).folder(self.installation.policies_dir)

    def _named(self, stage: str) -> str:
        return f"sql-demo-{self.recipe.model}-{self.recipe.identity}-{self.seed}-{stage}"

    def _get_policy(self) -> Figures:
        model = known_model(self.recipe.model)
        try:
            made = get_model(model, self.installation.policies_dir, None)
        except UnreachableError as error:
            small = "train a small built policy by `cua-train sql demo --small`"
            raise UnreachableError(error.message, ways=(*error.ways, small)) from None
        return {"sha256": made.sha256, "dtype": fast_dtype()}

    def _data(self) -> Figures:
        recipe = self.recipe
        size = SyntheticSize(
            recipe.train_databases,
            recipe.dev_databases,
            recipe.questions_per_template,
            most_tables=recipe.most_tables,
        )
        written = write_synthetic(self.folder / "data", self.seed, size)
        held_out = self._keep_new_schemas()
        self._write_zero_shot(held_out)
        chosen = some_questions(
            read_answered(self.folder / "data", None),
            recipe.imitated_databases,
            recipe.imitated_of_each,
            Random(derived_seed(self.seed, "imitated")),  # noqa: S311  # not for secrets
        )
        rows = [{"messages": [item._asdict() for item in one.messages]} for one in chosen]
        write_durably(self.folder / IMITATED, json.dumps(rows, indent=1) + "\n")
        return {
            "train": written["train"].num_questions,
            "dev": len(held_out),
            "imitated": len(rows),
        }

    def _keep_new_schemas(self) -> list[dict[str, Any]]:
        """The held-out questions, without databases whose tables also occur in training."""
        data = self.folder / "data"

        def tables_of(split: BirdSplit) -> dict[str, tuple[str, ...]]:
            files = {one.db_id: one.database for one in read_questions(data, split)}
            return {name: tuple(database_statements(file)) for name, file in files.items()}

        seen = {*tables_of("train").values()}
        is_new = {name: tables not in seen for name, tables in tables_of("dev").items()}
        kept = [one for one in json.loads((data / DEV).read_text()) if is_new[one["db_id"]]]
        write_durably(data / DEV, json.dumps(kept, indent=1) + "\n")
        return kept

    def _write_zero_shot(self, held_out: list[dict[str, Any]]) -> None:
        """Write one question about each of the first databases as a separate data set."""
        folder = self.folder / ZERO_SHOT
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "dev_databases").symlink_to(self.folder / "data" / "dev_databases")
        firsts = {one["db_id"]: one for one in reversed(held_out)}
        asked = [firsts[name] for name in sorted(firsts)][: self.recipe.zero_shot_questions]
        write_durably(folder / DEV, json.dumps(asked, indent=1) + "\n")

    def _sft(self) -> Figures:
        given = {
            "training_name": self._named("sft"),
            "model_name": str(self._policy),
            "data_path": [str(self.folder / IMITATED)],
            "output_dir": self.folder / "sft",
            "epochs": self.recipe.sft_epochs,
            "learning_rate": self.recipe.sft_learning_rate,
            "lora_rank": self.recipe.lora_rank,
            "batch_size": 8,
            "group_by_prefix": True,
            "held_out_ratio": 0.0,
            "save_strategy": "no",
            "eval_strategy": "no",
            "logging_steps": 16,
            "device": "cpu",
            "dtype": fast_dtype(),
            "seed": self.seed,
            "data_seed": self.seed,
        }
        summary = fine_tune("sft", given, installation=self.installation, stop=self.stop)
        return {"steps": summary.steps, "loss": summary.train_loss_last}

    def _zero_shot(self) -> Figures:
        given = {
            **self._fields("zero-shot", questions_of(self.folder / ZERO_SHOT, "dev")),
            "model_name": str(self._policy),
            "baseline_only": True,
        }
        summary = run(read_config(given), installation=self.installation, stop=self.stop)
        return {
            "accuracy": summary.success_before,
            "standard_error": summary.standard_error_before,
            "questions": summary.episodes,
        }

    def _rejection_sampling(self) -> Figures:
        """Train the imitating policy. The evaluation before the step measures that policy."""
        recipe = self.recipe
        questions = num_questions(questions_of(self.folder / "data", "train"))
        num_updates = -(-questions // recipe.groups_per_update)
        given = {
            **self._fields("rejection", questions_of(self.folder / "data", "dev", recipe.limit)),
            **policy_fields(str(self.folder / "sft")),
            "advantage": "rejection",
            "loss_aggregation": "token_mean",
            "num_steps": 1,
            "groups_per_batch": questions,
            "group_size": recipe.group_size,
            "num_substeps": num_updates,
            "group_by_prefix": num_updates > 1,
            "temperature": recipe.temperature,
            "learning_rate": recipe.learning_rate,
            "compute_post_kl": False,
        }
        summary = run(read_config(given), installation=self.installation, stop=self.stop)
        write_adapter(summary, self.folder / "rejection")
        return {
            "answers": questions * self.recipe.group_size,
            "eval_split": summary.eval_split,
            **measured(self.installation, self._named("rejection")),
        }

    def _update_control(self) -> Figures:
        """Apply the same update to the same answers, with their rewards permuted."""
        adapter = self.folder / "control"
        shutil.rmtree(adapter, ignore_errors=True)
        trained = self._named("rejection")
        done = redo(self.installation, trained, 1, adapter, self.stop, "shuffled_rewards")
        return {"loss": done.steps[-1].update.loss, "adapter_sha256": done.adapter_sha256}

    def _control(self) -> Figures:
        given = {
            **self._fields("control", questions_of(self.folder / "data", "dev", self.recipe.limit)),
            **policy_fields(str(self.folder / "control")),
            "baseline_only": True,
        }
        run(read_config(given), installation=self.installation, stop=self.stop)
        return measured_beside(self.installation, self._named("rejection"), self._named("control"))

    def _fields(self, stage: str, held_out: dict[str, Any]) -> dict[str, Any]:
        """Configuration fields of every training that samples.

        `held_out` is the evaluation source.
        """
        return {
            "training_name": self._named(stage),
            "environment": "text_to_sql",
            "tasks": questions_of(self.folder / "data", "train"),
            "eval_tasks": held_out,
            "eval_episodes": num_questions(held_out),
            "eval_every": 0,
            "eval_temperature": 0.0,
            "save_every": 0,
            "max_turns": 1,
            "max_tokens": self.recipe.max_tokens,
            "max_concurrent_rollouts": 64,
            "lora_rank": self.recipe.lora_rank,
            "behavior_if_log_dir_exists": "resume",
            "device": "cpu",
            "dtype": fast_dtype(),
            "seed": self.seed,
        }


def fast_dtype() -> Literal["float32", "bfloat16"]:
    """bfloat16 if the processor multiplies bfloat16 matrices, which is almost twice as fast."""
    import torch

    return "bfloat16" if torch.cpu.get_capabilities().get("amx_bf16") else "float32"


def some_questions(
    answered: list[AnsweredQuestion], num_databases: int, of_each: int, random: Random
) -> list[AnsweredQuestion]:
    """Questions about the first databases, drawn from each without replacement."""
    by_name: dict[str, list[AnsweredQuestion]] = {}
    for item in answered:
        by_name.setdefault(item.group.rpartition("/")[0], []).append(item)
    return [
        item
        for of_one in list(by_name.values())[:num_databases]
        for item in random.sample(of_one, min(of_each, len(of_one)))
    ]
