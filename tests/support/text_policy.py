"""A text policy that has learnt a handful of DB Bench entries by heart, in seconds."""

import json
from pathlib import Path
from typing import Any

import torch

from producer.policy.torch_policy.loading import load_base
from producer.sql_data.dbbench.generate import generate
from producer.supervised.fit import Fit, FitSettings
from producer.supervised.objective import CrossEntropy
from producer.text_policy.build import TextPolicySize, build_text_policy
from producer.text_policy.demonstrations import Demonstration, build_examples, demonstrate

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


def known_sessions() -> list[Demonstration]:
    return [demonstrate(entry) for entry in generate(NUM_ENTRIES, SEED, SKILLS)]


def build_knowing_policy(folder: Path, num_steps: int = 80) -> None:
    """Fewer steps know less: with 80 about half of the sessions are right at temperature 1."""
    torch.set_num_threads(1)
    sessions = known_sessions()
    build_text_policy(folder, [text for one in sessions for text in one.texts], SEED, SIZE)
    (folder / "cua_policy.json").write_text(json.dumps({"codec": "dbbench"}))
    network, tokenizer = load_base(str(folder))
    network.requires_grad_(requires_grad=True)
    settings = FitSettings(num_steps=num_steps, batch_size=6, learning_rate=4e-3, schedule="linear")
    Fit(network, build_examples(sessions, tokenizer, None), CrossEntropy(), settings).run()
    network.save_pretrained(folder)
