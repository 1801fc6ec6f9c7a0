"""Threads of an operation follow from the size of the network, and are said where bits follow."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from producer.policy.compute_settings import PolicySettings
from producer.policy.torch_policy import cpu_parallel
from producer.policy.torch_policy.open import open_in_process

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
def test_a_small_policy_of_a_folder_is_computed_with_one_thread(
    base_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        open_in_process(PolicySettings(str(base_folder), lora_rank=2))
    assert torch.get_num_threads() == 1
    assert "threads per operation" not in caplog.text


@pytest.mark.usefixtures("four_threads")
def test_a_large_network_has_torchs_threads_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cpu_parallel, "_TORCHS", 3)
    assert cpu_parallel.choose_threads(50_000_000, CPU) == 1
    assert cpu_parallel.choose_threads(50_000_001, CPU) == 3
    assert cpu_parallel.choose_threads(1, GPU) == 3
    with caplog.at_level(logging.INFO):
        cpu_parallel.use_threads("large", 50_000_001, CPU)
    assert torch.get_num_threads() == 3
    assert "policy 'large' is computed with 3 threads per operation" in caplog.text


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_a_command_wait_without_spinning_unless_the_user_says_otherwise(
    given: str | None, expected: str
) -> None:
    command = (
        "import atexit, json, os, sys\n"
        "atexit.register(lambda: print(json.dumps([os.environ['OMP_WAIT_POLICY'],"
        " 'torch' in sys.modules])))\n"
        "from producer.cli import main\n"
        "sys.argv = ['cua-train', 'tasks', 'list', '--json']\n"
        "main()\n"
    )
    environ = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environ |= {} if given is None else {"OMP_WAIT_POLICY": given}
    done = subprocess.run(
        [sys.executable, "-c", command], env=environ, capture_output=True, check=True, timeout=60
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [expected, False]
