"""Text policies that have learnt a handful of entries or questions by heart, in seconds."""

import json
from pathlib import Path
from typing import Any

import torch

from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.policy.demonstrations import Demonstration, build_examples, demonstrate
from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.fine_tuning.questions import read_answered
from producer.fine_tuning.run import fine_tune
from producer.fine_tuning.settings import Objective
from producer.policy.torch_policy.loading import load_base
from producer.supervised.fit import Fit, FitSettings
from producer.supervised.objective import CrossEntropy
from producer.text_policy.build import TextPolicySize, build_text_policy
from tests.support.reading import installation_at

SEED = 5
SKILLS = ("delete", "limit_only", "update")
NUM_ENTRIES = 6
SIZE = TextPolicySize(dim=64, layers=2, heads=2, ffn=96)
TASKS: dict[str, Any] = {
    "source_type": "dbbench_generated",
    "num_samples": NUM_ENTRIES,
    "seed": SEED,
    "skills": list(SKILLS),
}
"""The entries that it knows."""
RUN: dict[str, Any] = {
    "training_name": "small",
    "environment": "dbbench",
    "tasks": TASKS,
    "eval_tasks": TASKS,
    "num_steps": 3,
    "groups_per_batch": 3,
    "learning_rate": 1e-3,
    "max_tokens": 40,
    "eval_episodes": 6,
    "eval_every": 2,
    "save_every": 2,
}
"""A run on them; `model_name` is missing."""


STEP_MARKS = ("+", "-", "и")
"""Tokens of a process reward model."""


def known_sessions() -> list[Demonstration]:
    return [demonstrate(entry) for entry in generate(NUM_ENTRIES, SEED, SKILLS)]


def build_knowing_policy(folder: Path, num_steps: int = 80) -> None:
    """Fewer steps know less: with 80 about half of the sessions are right at temperature 1."""
    torch.set_num_threads(1)
    sessions = known_sessions()
    build_text_policy(folder, [text for session in sessions for text in session.texts], SEED, SIZE)
    (folder / "cua_policy.json").write_text(json.dumps({"codec": "dbbench"}))
    network, tokenizer = load_base(str(folder))
    network.requires_grad_(requires_grad=True)
    settings = FitSettings(num_steps=num_steps, batch_size=6, learning_rate=4e-3, schedule="linear")
    Fit(network, build_examples(sessions, tokenizer, None), CrossEntropy(), settings).run()
    network.save_pretrained(folder)


def build_answering_policy(folder: Path) -> dict[str, Any]:
    """A policy that has seen the answers to two questions: some of its rollouts are right.

    The fields `model_name` and `tasks` of a training on them.
    """
    torch.set_num_threads(1)
    write_synthetic(folder / "data", 0, SyntheticSize(1, 1, 1, templates=("count", "filter")))
    texts = [
        message.content for row in read_answered(folder / "data", None) for message in row.messages
    ]
    size = TextPolicySize(dim=32, layers=2, heads=2, ffn=64)
    build_text_policy(folder / "base", texts * 5, 0, size, extra_tokens=[*STEP_MARKS])
    _fit(folder, "sft", "base", folder / "data", "policy", epochs=40, learning_rate=1e-2)
    tasks = {"source_type": "text_to_sql", "path": str(folder / "data"), "split": "train"}
    return {"model_name": str(folder / "policy"), "tasks": tasks}


def build_step_scorer(folder: Path) -> Path:
    """A process reward model of the policy that `build_answering_policy` made in `folder`."""
    rows = [
        {"input": f"{row.messages[-2].content}\n\n{answer} и", "label": [label]}
        for row in read_answered(folder / "data", None)
        for answer, label in ((row.messages[-1].content, 1.0), ("SELECT 1", 0.0))
    ]
    (folder / "steps.json").write_text(json.dumps(rows, ensure_ascii=False))
    return _fit(folder, "process_reward", "policy", folder / "steps.json", "prm", epochs=2)


def _fit(
    folder: Path, objective: Objective, begun_from: str, data: Path, result: str, **changes: Any
) -> Path:
    given = {
        "training_name": result,
        "model_name": str(folder / begun_from),
        "data_path": [str(data)],
        "output_dir": str(folder / result),
        "batch_size": 2,
        "train_type": "full",
        "held_out_ratio": 0,
        "save_strategy": "no",
        "eval_strategy": "no",
        "device": "cpu",
        **changes,
    }
    fine_tune(objective, given, installation=installation_at(folder / "home"))
    return folder / result
