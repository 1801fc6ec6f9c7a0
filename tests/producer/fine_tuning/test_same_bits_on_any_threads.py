"""One seed, one result: a supervised stage has the same bits whatever OMP_NUM_THREADS is."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from producer.errors import UsageError
from producer.fine_tuning.run import fine_tune
from producer.policy.torch_policy import cpu_parallel
from schemas.installation import Installation
from tests.support.paths import ROOT
from tests.support.reading import read_all

NUMBERS = ("1", "5")
"""Sums of one thread, and sums that are split."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What every stage came to, of a process for each number of threads."""
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.support.supervised_bits"),
                str(tmp_path_factory.mktemp("threads")),
            ],
            env={**os.environ, "OMP_NUM_THREADS": number},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in NUMBERS
    ]
    found = []
    for process in processes:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-2000:]
        found.append(json.loads(output.splitlines()[-1]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage",
    [
        *("data", "sft", "step labels", "reward model", "grpo outcome", "grpo process"),
        *("best of n, sft", "best of n, process", "pairwise"),
    ],
)
def test_a_stage_has_the_same_figures(made: list[dict[str, Any]], stage: str) -> None:
    assert made[0]["stages"][stage]
    assert all(item["stages"][stage] == made[0]["stages"][stage] for item in made)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", ["base", "sft", "prm", "grpo-outcome", "grpo-process", "warm-up", "pairwise"]
)
def test_a_policy_has_the_same_weights(made: list[dict[str, Any]], policy: str) -> None:
    assert {item["weights"][policy] for item in made} == {made[0]["weights"][policy]}


@pytest.mark.slow
def test_labelled_steps_are_the_same_file(made: list[dict[str, Any]]) -> None:
    assert len({item["labels"] for item in made}) == 1


@pytest.fixture
def _own_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_own_threads")
def test_a_large_policy_has_the_threads_of_the_machine_that_began_its_training(
    installation: Installation, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_parallel, "SMALL_WEIGHTS", 0)
    monkeypatch.setattr(cpu_parallel, "_TORCHS", 3)
    fine_tune("sft", {**given, "epochs": 1}, installation=installation)
    assert torch.get_num_threads() == 3
    monkeypatch.setattr(cpu_parallel, "_TORCHS", 1)
    with pytest.raises(UsageError, match="cpu_threads: 3 -> 2"):
        fine_tune("sft", {**given, "cpu_threads": 2}, installation=installation)
    torch.set_num_threads(1)
    fine_tune("sft", {**given, "epochs": 1}, installation=installation)
    assert torch.get_num_threads() == 3
    events = [json.loads(record.value) for record in read_all(installation)]
    (created,) = [event for event in events if event["type"] == "cua.training.created"]
    assert created["data"]["config"]["cpu_threads"] == 3


@pytest.mark.usefixtures("_own_threads")
def test_a_small_policy_has_one_thread_whatever_is_given(
    installation: Installation, given: dict[str, Any]
) -> None:
    torch.set_num_threads(2)
    fine_tune("sft", {**given, "epochs": 1, "cpu_threads": 2}, installation=installation)
    assert torch.get_num_threads() == 1


def test_a_network_is_loaded_in_one_place_which_fixes_the_threads() -> None:
    """A stage that loads one elsewhere would compute with the threads of the machine."""
    makes = re.compile(r"from_pretrained\(|from_config\(|For(CausalLM|ConditionalGeneration)\(")
    making = {
        path.relative_to(ROOT / "producer").as_posix()
        for path in (ROOT / "producer").rglob("*.py")
        if makes.search(path.read_text(encoding="utf-8"))
    }
    assert making == {
        "policy/torch_policy/loading.py",
        "policy/torch_policy/memory_check.py",  # settings and sizes, no weights
        "policy/torch_policy/adapters.py",  # over a network that was loaded
        "policy/tinker_policy/policy_files.py",  # tokenizers, no weights
        "supervised/pairwise_reward.py",  # fixes them too
        "text_policy/build.py",  # writes a folder, which is then loaded
        "agents/android/policy/build.py",
        "commands/checkpoints.py",  # an example in a text
    }
