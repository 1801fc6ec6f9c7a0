"""Policies of the hub that are not on this machine: weighed before their weights are downloaded."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.support.checkpoints import change_json, write_checkpoint
from tests.support.forked_command import run_command
from tests.support.hub_server import HubServer, hub_server

TIMEOUT_S = 300.0
ORGANISATION, NAME = "someone", "small"
TASKS = '{"source_type": "ids", "task_ids": ["train_02_enable_wifi"]}'
TOO_LONG = ("--max-turns", "1000000", "--max-recent-turns", "none")


def run_policy(home: Path, hub: HubServer, *words: str) -> subprocess.CompletedProcess[str]:
    """`cua-train run` of the hub's policy, with a cache of its own."""
    environ = {**os.environ, "CUA_HOME": str(home / "cua"), "HF_HOME": str(home / "hf")}
    environ |= {"HF_ENDPOINT": hub.url, "OMP_NUM_THREADS": "1"}
    settings = ("--model-name", f"{ORGANISATION}/{NAME}", "--tasks", TASKS, "--max-tokens", "4")
    small = ("--num-steps", "1", "--group-size", "2", "--groups-per-batch", "1", "--max-turns", "1")
    given = ("--no-monitor", "--skip-baseline", "--eval-episodes", "1", *settings, *small, *words)
    return run_command("producer", "run", *given, environ=environ, timeout_s=TIMEOUT_S)


def weights(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*.safetensors")}


@pytest.mark.parametrize("has_ranges", [True, False])
def test_a_policy_that_does_not_fit_is_refused_before_its_weights_are_loaded(
    tmp_path: Path, *, has_ranges: bool
) -> None:
    folder = tmp_path / "hub" / ORGANISATION / NAME
    write_checkpoint(folder, "qwen3_vl")
    with hub_server(tmp_path / "hub") as hub:
        hub.has_ranges = has_ranges
        done = run_policy(tmp_path, hub, *TOO_LONG)
        sent = {name: num for name, num in hub.sent.items() if name in weights(folder)}
    assert done.returncode == 2, done.stderr
    assert "does not fit into memory" in done.stderr
    num_weights = sum(
        tensor.numel()
        for path in folder.glob("*.safetensors")
        for tensor in load_file(path).values()
    )
    assert f"weights: {num_weights:,} x 4 bytes" in done.stderr
    assert not (tmp_path / "cua").exists()
    is_said = "not known before its weights are downloaded" in done.stderr
    assert is_said is not has_ranges
    if not has_ranges:
        assert sent == weights(folder)
    else:
        assert not list((tmp_path / "hf").rglob("*.safetensors"))


def test_a_policy_that_fits_is_downloaded_and_trained(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "hub" / ORGANISATION / NAME, "qwen3_vl")
    with hub_server(tmp_path / "hub") as hub:
        done = run_policy(tmp_path, hub, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 1


def test_an_architecture_that_cannot_be_trained_is_refused_before_its_weights_are_downloaded(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "hub" / ORGANISATION / NAME
    write_checkpoint(folder, "qwen3_vl")
    change_json(folder / "config.json", model_type="qwen9")
    with hub_server(tmp_path / "hub") as hub:
        done = run_policy(tmp_path, hub)
        assert not any(name.endswith(".safetensors") for name in hub.sent)
    assert done.returncode == 2, done.stderr
    assert "qwen9" in done.stderr
    assert not (tmp_path / "cua").exists()
