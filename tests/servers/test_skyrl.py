"""Trainings by a real server of the Tinker protocol, SkyRL's, of a small text policy.

What it sampled and trained is computed again by transformers and peft, from the events and the
adapters that the server saved.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model, set_peft_model_state_dict
from torch import Tensor
from transformers import AutoModelForCausalLM

from schemas.arrays import decode_float32, decode_int32
from schemas.installation import Installation, read_installation
from tests.servers.skyrl import SkyrlServer, skyrl_server
from tests.support.checkpoints import write_checkpoint
from tests.support.forked_command import run_command
from tests.support.killed_run import run_until_killed
from tests.support.paths import ROOT
from tests.support.reading import read_all
from tests.support.tinker_key import KEY

pytestmark = [pytest.mark.slow, pytest.mark.services, pytest.mark.timeout(1200)]
NEAR = 1e-5
NUM_STEPS = 3
RANK = 4


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the family that SkyRL computes; random weights."""
    folder = tmp_path_factory.mktemp("qwen3")
    write_checkpoint(folder, "qwen3")
    return folder


@pytest.fixture(scope="module")
def server(
    skyrl_python: Path, policy: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SkyrlServer]:
    with skyrl_server(skyrl_python, policy, tmp_path_factory.mktemp("skyrl")) as started:
        yield started


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sql") / "questions"
    sizes = ("--train-databases", "2", "--dev-databases", "1", "--output", str(folder))
    done = run_command("producer", "sql", "data", "generate", *sizes)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def installation(server: SkyrlServer, monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    monkeypatch.setenv("TINKER_TELEMETRY", "0")
    return read_installation(os.environ)


def with_sdk(folder: Path) -> dict[str, str]:
    """The environment of a command that uses this release of the SDK."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def words(policy: Path, questions: Path, name: str) -> list[str]:
    settings = {
        "--provider": "tinker",
        "--environment": "text_to_sql",
        "--model-name": str(policy),
        "--training-name": name,
        "--tasks": json.dumps({"source_type": "text_to_sql", "path": str(questions)}),
        "--num-steps": str(NUM_STEPS),
        "--group-size": "2",
        "--groups-per-batch": "4",
        "--max-tokens": "12",
        "--lora-rank": str(RANK),
        "--learning-rate": "1e-3",
        # The small policy answers no question: rewards are the tasks', and groups have but one.
        "--reward": "tests.support.token_reward:by_task",
        "--advantage": "reinforce",
        "--eval-every": "0",
        "--eval-episodes": "2",
        "--save-every": "1",
    }
    given = ["--skip-baseline", "--no-remove-constant-reward-groups", "--no-monitor"]
    return ["run", *(word for pair in settings.items() for word in pair), *given]


def events(installation: Installation, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(record.value) for record in read_all(installation)]
    return [event["data"] for event in found if event["type"] == f"cua.{kind}"]


def adapted(policy: Path, settings: dict[str, Any], weights: dict[str, Tensor]) -> PeftModel:
    """The policy with an adapter that the server saved."""
    base = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    config = LoraConfig(
        r=settings["r"],
        lora_alpha=settings["lora_alpha"],
        target_modules=sorted({name.split(".")[-3] for name in weights}),
    )
    network = get_peft_model(base, config)
    assert isinstance(network, PeftModel)
    assert set_peft_model_state_dict(network, weights).unexpected_keys == []
    return network


def logprobs_N(network: PeftModel, tokens: dict[str, Any]) -> Tensor:
    """[N]: log-prob of each completion token of a turn."""
    prompt = decode_int32(tokens["prompt_tokens"])
    completion = decode_int32(tokens["completion_tokens"])
    logits = network(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
    picked: Tensor = logits.log_softmax(-1).gather(1, torch.tensor(completion)[:, None])
    return picked[:, 0]


def sequence_length(tokens: dict[str, Any]) -> int:
    """Number of targets of a turn: every token but the first."""
    both = (tokens["prompt_tokens"], tokens["completion_tokens"])
    return sum(len(decode_int32(part)) for part in both) - 1


def check_step(
    network: PeftModel,
    turns: Sequence[dict[str, Any]],
    advantages: Sequence[float],
    step: dict[str, Any],
) -> None:
    """A step's samples, loss and gradient norm are those of the adapter that it began with."""
    loss = torch.zeros(())
    # SkyRL divides a sequence's loss by its length and averages over sequences; Tinker sums.
    trained = torch.zeros(())
    for turn, advantage in zip(turns, advantages, strict=True):
        sampled_N = torch.tensor(decode_float32(turn["tokens"]["completion_logprobs"]))
        current_N = logprobs_N(network, turn["tokens"])
        assert (current_N.detach() - sampled_N).abs().max() <= NEAR
        turn_loss = -((current_N - sampled_N).exp() * advantage).sum()
        loss = loss + turn_loss
        trained = trained + turn_loss / sequence_length(turn["tokens"]) / len(turns)
    assert step["loss"] == pytest.approx(loss.item(), abs=NEAR * len(turns))
    torch.autograd.backward(trained)
    gradients = [one.grad for one in network.parameters() if one.grad is not None]
    norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt().item()
    assert norm > 0
    assert step["policy_gradient_norm"] == pytest.approx(norm, rel=1e-3)


def test_killed_a_training_goes_on_from_its_saved_state_and_computes_what_peft_does(
    policy: Path,
    questions: Path,
    server: SkyrlServer,
    pinned_sdk: Path,
    installation: Installation,
    migrated_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = words(policy, questions, "first")
    environ = with_sdk(pinned_sdk)
    run_until_killed(("emit", "cua.step.training_started", "2"), given, environ)
    done = subprocess.run(
        [sys.executable, "-m", "producer", *given],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert len(events(installation, "training.resumed")) == 1
    saved = [one["path"] for one in events(installation, "checkpoint.saved")]
    steps = events(installation, "step.finished")
    assert (len(saved), [step["policy_version"] for step in steps]) == (NUM_STEPS + 1, [1, 2, 3])
    chosen = events(installation, "step.samples_chosen")
    found = [json.loads(record.value) for record in read_all(installation)]
    turns = {
        event["subject"].partition("/")[2]: event["data"]
        for event in found
        if event["type"] == "cua.rollout.turn_taken"
    }
    for path, step in zip(saved[:-1], steps, strict=True):
        samples = [
            sample
            for batch in chosen
            if batch["step_id"] == step["step_id"]
            for sample in batch["samples"]
        ]
        assert len({sample["advantage"] for sample in samples}) > 1
        check_step(
            adapted(policy, *server.saved_adapter(path)),
            [turns[sample["rollout_id"]] for sample in samples],
            [sample["advantage"] for sample in samples],
            step,
        )
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    assert run_command("consumers", "run", "--once").returncode == 0
    verified = run_command("consumers", "verify")
    assert verified.returncode == 0, verified.stdout


def test_a_server_of_an_older_protocol_is_named_with_what_to_install(
    policy: Path, questions: Path, installation: Installation
) -> None:
    done = run_command("producer", *words(policy, questions, "newest"), timeout_s=300)
    assert done.returncode == 1, done.stderr
    assert "install the release of tinker that the server asks for" in done.stderr
    assert events(installation, "step.finished") == []
