"""The pipeline of text-to-SQL on small policies, from data to best-of-N.

Imitation, labelled steps, a process reward model, reinforcement by outcomes and by steps.

Every training is one of the log, under a name of its own, and continues there. What a stage came to
is kept in `stages.json` of the seed's folder, so that the same command goes on behind it.
"""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from time import monotonic, process_time
from typing import Any, Final

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.config import read_config
from producer.durable import write_durably
from producer.errors import UsageError
from producer.fine_tuning.adapter_output import write_adapter
from producer.fine_tuning.executed_accuracy import chosen_accuracy
from producer.fine_tuning.mistaken_answers import with_mistakes
from producer.fine_tuning.named_policy import num_questions, policy_fields, questions_of
from producer.fine_tuning.questions import read_answered
from producer.fine_tuning.run import fine_tune
from producer.fine_tuning.sql_demo_recipe import SqlDemoRecipe
from producer.fine_tuning.step_labels import label_steps
from producer.process_rewards.best_of_n_plot import best_of_n_svg
from producer.seeds import derived_seed
from producer.training.run import run
from schemas.installation import Installation

logger = logging.getLogger(__name__)

STAGES: Final = "stages.json"
BEST: Final = "best of n,"
"""Begins the names of the stages that choose among completions."""
IMITATED: Final = "imitated.json"
"""The answers that are imitated, some of them mistaken."""
PROCESS, OUTCOME = "compute_grpo_process_advantage_avg_unique", "compute_grpo_outcome_advantage"
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SqlDemo:
    """One seed's pipeline."""

    seed: int
    installation: Installation
    recipe: SqlDemoRecipe
    stop: threading.Event

    @property
    def folder(self) -> Path:
        """Where its data and policies are."""
        return self.installation.home / "sql-demo" / f"seed-{self.seed}"

    def run(self) -> dict[str, Figures]:
        """Stage -> its figures. UsageError for a folder that another recipe made.

        StopRequestedError after `stop` was set; the same call goes on.
        """
        done = self._done()
        stages: dict[str, Callable[[], Figures]] = {
            "data": self._data,
            "sft": self._sft,
            "step labels": self._labels,
            "reward model": self._reward_model,
            "grpo outcome": lambda: self._grpo("outcome"),
            "grpo process": lambda: self._grpo("process"),
            f"{BEST} sft": lambda: self._best_of_n("sft"),
            f"{BEST} process": lambda: self._best_of_n("grpo-process"),
        }
        for name, stage in stages.items():
            if name in done:
                continue
            begun_s, cpu_s = monotonic(), process_time()
            logger.info("seed %d: %s", self.seed, name)
            figures = stage()
            figures["seconds"] = round(monotonic() - begun_s, 1)
            figures["cpu_seconds"] = round(process_time() - cpu_s, 1)
            done[name] = figures
            whole = {"recipe": self.recipe.identity, "stages": done}
            write_durably(self.folder / STAGES, json.dumps(whole, indent=1) + "\n")
        return done

    def _done(self) -> dict[str, Figures]:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / STAGES
        if not path.is_file():
            return {}
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["recipe"] != self.recipe.identity:
            message = f"{self.folder} was made by another recipe; remove it, or use another --seed"
            raise UsageError(message)
        stages: dict[str, Figures] = kept["stages"]
        return stages

    def _named(self, stage: str) -> str:
        return f"sql-demo-{self.seed}-{stage}"

    def _source(self, split: str) -> dict[str, Any]:
        limit = self.recipe.limit if split == "dev" else None
        return questions_of(self.folder / "data", split, limit)

    def _data(self) -> Figures:
        from producer.fine_tuning.sql_demo_policy import build_demo_policy

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

    def _sft(self) -> Figures:
        recipe = self.recipe
        summary = fine_tune(
            "sft",
            {
                "training_name": self._named("sft"),
                "model_name": str(self.folder / "base"),
                "data_path": [str(self.folder / IMITATED)],
                "output_dir": self.folder / "sft",
                "train_type": "full",
                "epochs": recipe.sft_epochs,
                "learning_rate": recipe.sft_learning_rate,
                "weight_decay": 0.01,
                "adam_beta2": 0.98,
                "batch_size": 16,
                "save_strategy": "no",
                "eval_strategy": "no",
                "held_out_ratio": 0.02,
                "logging_steps": 25,
                "device": "cpu",
                "seed": self.seed,
                "data_seed": self.seed,
            },
            installation=self.installation,
            stop=self.stop,
        )
        return {"steps": summary.steps, "loss": summary.train_loss_last}

    def _labels(self) -> Figures:
        recipe = self.recipe
        found = label_steps(
            model_name=str(self.folder / "sft"),
            data=self.folder / "data",
            output=self.folder / "steps.json",
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
        recipe = self.recipe
        summary = fine_tune(
            "process_reward",
            {
                "training_name": self._named("prm"),
                "model_name": str(self.folder / "sft"),
                "data_path": [str(self.folder / "steps.json")],
                "output_dir": self.folder / "prm",
                "epochs": recipe.prm_epochs,
                "learning_rate": recipe.prm_learning_rate,
                "batch_size": 16,
                "save_strategy": "no",
                "eval_strategy": "no",
                "logging_steps": 25,
                "device": "cpu",
                "seed": self.seed,
                "data_seed": self.seed,
            },
            installation=self.installation,
            stop=self.stop,
        )
        return {
            "steps": summary.steps,
            "accuracy": summary.accuracy_after,
            "auc": summary.auc_after,
        }

    def _grpo(self, reward: str) -> Figures:
        """From the imitating policy; the evaluation before the first step is that policy's."""
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
        return {
            "steps": summary.steps,
            "before": summary.success_before,
            "before_standard_error": summary.standard_error_before,
            "accuracy": summary.success_after,
            "standard_error": summary.standard_error_after,
            "questions": summary.episodes,
        }

    def _best_of_n(self, policy: str) -> Figures:
        """Of the policy in this folder; with a plot over N beside it."""
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
        title = f"Best-of-N of {policy}, seed {self.seed}, {found.questions} questions"
        write_durably(self.folder / f"best-of-n-{policy}.svg", best_of_n_svg(found.sizes, title))
        return {
            "questions": found.questions,
            "sizes": [
                {"n": size.num_candidates, **size.by_strategy, "pass_at_n": size.pass_at_n}
                for size in found.sizes
            ],
        }
