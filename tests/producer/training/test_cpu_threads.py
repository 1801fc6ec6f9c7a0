"""The number of threads of a large policy is part of the result: recorded, and taken again."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from producer.errors import UsageError
from producer.policy.compute_settings import ComputeSettings, PolicySettings
from producer.training.run import run
from schemas.installation import Installation
from tests.support.reading import ReadLog
from tests.support.small_run import one_step

torch = pytest.importorskip("torch")

from producer.algorithms.losses import kl_sample_train  # noqa: E402  # imports torch
from producer.policy.torch_policy import cpu_parallel  # noqa: E402  # imports torch
from producer.policy.torch_policy.open import open_in_process  # noqa: E402


@pytest.fixture(autouse=True)
def _own_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def _is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every network counts as a large one."""
    monkeypatch.setattr(cpu_parallel, "SMALL_WEIGHTS", 0)


def recorded_threads(events: list[dict[str, Any]]) -> list[int | None]:
    """Of every process that trained, in order."""
    types = {"cua.training.created", "cua.training.resumed"}
    return [event["data"]["config"]["cpu_threads"] for event in events if event["type"] in types]


@pytest.mark.usefixtures("_is_large")
def test_a_training_that_goes_on_elsewhere_has_the_threads_of_the_machine_that_began_it(
    installation: Installation,
    read_log: ReadLog,
    policy: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(cpu_parallel, "_TORCHS", 3)
    run(one_step(Path(policy)), installation=installation)
    assert torch.get_num_threads() == 3
    monkeypatch.setattr(cpu_parallel, "_TORCHS", 1)
    monkeypatch.setattr(cpu_parallel, "num_cores", lambda: 1)
    with caplog.at_level(logging.WARNING):
        run(one_step(Path(policy), num_steps=2), installation=installation)
    assert torch.get_num_threads() == 3
    assert recorded_threads(read_log()) == [3, 3]
    assert "cpu_threads is 3 and this machine has 1 cores" in caplog.text
    with pytest.raises(UsageError, match="cpu_threads: 3 -> 2"):
        run(one_step(Path(policy), num_steps=3, cpu_threads=2), installation=installation)


@pytest.mark.usefixtures("_is_large")
def test_a_number_that_is_given_is_the_one(
    installation: Installation, read_log: ReadLog, policy: str
) -> None:
    run(one_step(Path(policy), cpu_threads=2), installation=installation)
    assert torch.get_num_threads() == 2
    assert recorded_threads(read_log()) == [2]


def test_a_small_policy_has_one_thread_and_a_number_without_effect_is_named(
    installation: Installation, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        run(one_step(Path(policy), cpu_threads=2), installation=installation)
    assert torch.get_num_threads() == 1
    assert "cpu_threads has no effect" in caplog.text


@pytest.mark.usefixtures("_is_large")
def test_the_bits_are_those_of_the_given_threads_whatever_torch_would_choose(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(0)
    sampled_N, trained_N = torch.randn((2, 4_000_000), generator=generator)

    def kl(given: int, torchs: int) -> float:
        """A mean over tokens, as a step has, once the policy is open."""
        monkeypatch.setattr(cpu_parallel, "_TORCHS", torchs)
        compute = ComputeSettings(cpu_threads=given)
        open_in_process(PolicySettings(policy, lora_rank=2, compute=compute))
        return kl_sample_train(sampled_N, trained_N).v1

    found = {given: kl(given, 1) for given in (1, 2, 3)}
    assert found == {given: kl(given, 4) for given in (1, 2, 3)}
    assert len(set(found.values())) > 1, "the number matters"
