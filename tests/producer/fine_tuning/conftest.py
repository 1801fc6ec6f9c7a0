"""Fixtures: a tiny text policy and examples that it can learn."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from producer.fine_tuning.run import FineTuningSummary, fine_tune
from producer.text_policy.build import TextPolicySize, build_text_policy
from schemas.installation import Installation
from tests.support.reading import installation_at

TABLES = ("orders", "users", "items")
RIGHT, WRONG = "SELECT name FROM users", "SELECT name FROM items"
SIZE = TextPolicySize(dim=32, layers=2, heads=2, ffn=64)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def prompts(num: int = 24) -> list[tuple[str, str]]:
    """(prompt, right answer)."""
    return [
        (f"Show {TABLES[at % 3]} number {at}", f"SELECT name FROM {TABLES[at % 3]}")
        for at in range(num)
    ]


def rows_of(objective: str) -> list[dict[str, Any]]:
    """Whatever is asked, an answer from `items` is wrong."""
    rows: list[dict[str, Any]] = []
    for at, (prompt, right) in enumerate(prompts()):
        if objective == "sft":
            rows.append({"prompt": prompt, "completion": right})
        elif objective == "pairwise_reward":
            rows.append({"prompt": prompt, "chosen": RIGHT, "rejected": WRONG})
        else:
            rows += [
                {
                    "question_id": at,
                    "input": f"{prompt}\n\nWITH a AS и\n\n{answer} и",
                    "label": [0.75, label],
                }
                for answer, label in ((RIGHT, 1.0), (WRONG, 0.0))
            ]
    return rows


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text-policy")
    texts = [f"{prompt} {answer}" for prompt, answer in prompts()] * 5
    build_text_policy(folder, texts, 0, SIZE, extra_tokens=["+", "-"])
    return folder


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Objective -> a file of its examples."""
    folder = tmp_path_factory.mktemp("data")
    paths = {}
    for objective in ("sft", "process_reward", "pairwise_reward"):
        paths[objective] = folder / f"{objective}.json"
        paths[objective].write_text(json.dumps(rows_of(objective), ensure_ascii=False))
    return paths


def settings(policy: Path, data: dict[str, Path]) -> dict[str, Any]:
    return {
        "training_name": "small",
        "model_name": str(policy),
        "data_path": [str(data["sft"])],
        "batch_size": 8,
        "epochs": 3,
        "train_type": "full",
        "learning_rate": 1e-2,
        "held_out_ratio": 0.1,
        "save_strategy": "epoch",
        "eval_strategy": "epoch",
        "device": "cpu",
    }


@pytest.fixture
def given(policy: Path, data: dict[str, Path]) -> dict[str, Any]:
    """The settings of a small fine-tuning: 3 epochs of 3 steps."""
    return settings(policy, data)


@pytest.fixture(scope="session")
def whole(
    policy: Path, data: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Installation, FineTuningSummary]:
    """That fine-tuning, complete; only to be read."""
    installation = installation_at(tmp_path_factory.mktemp("whole") / "home")
    return installation, fine_tune("sft", settings(policy, data), installation=installation)


@pytest.fixture
def complete(whole: tuple[Installation, FineTuningSummary], tmp_path: Path) -> Installation:
    """A copy of it."""
    return installation_at(shutil.copytree(whole[0].home, tmp_path / "complete"))
