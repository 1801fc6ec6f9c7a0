"""Several processes of torchrun learn what one does, and end together."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from producer.errors import UsageError
from producer.training.run import run
from schemas.installation import read_installation
from tests.support.checkpoints import write_checkpoint
from tests.support.forked_command import run_command
from tests.support.forked_process import ForkedProcess
from tests.support.ports import free_port
from tests.support.ranked_updates import SETTINGS
from tests.support.reading import of_type, read_all
from tests.support.small_run import one_step

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
NUM_STEPS = 3
WORLD = {
    "WORLD_SIZE": "2",
    "RANK": "0",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "1",
}
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("policy") / "qwen3_vl"
    write_checkpoint(made, "qwen3_vl")
    return made


def words(folder: Path, home: Path, **settings: object) -> list[str]:
    """`-m producer run` of three steps of six rollouts, each with two optimiser steps."""
    given: dict[str, object] = {"model_name": str(folder), "num_steps": NUM_STEPS}
    given |= {"group_size": 3, "groups_per_batch": 2, "max_turns": 2, "max_tokens": 6}
    given |= {"num_substeps": 2, "entropy_coef": 0.1, "learning_rate": 0.01, "eval_every": 0}
    given |= {"lora_rank": 2, "remove_constant_reward_groups": False, "skip_baseline": True}
    given |= {"tasks": {"source_type": "ids", "task_ids": ["train_01_open_settings"]}, **settings}
    config = home / "config.json"
    config.write_text(json.dumps(given))
    return ["run", "--training-name", "a", "--no-monitor", "--config", str(config)]


def environ(home: Path) -> dict[str, str]:
    return {**os.environ, "CUA_HOME": str(home / "cua"), "OMP_NUM_THREADS": "1"}


def steps(home: Path) -> list[dict[str, Any]]:
    events = [json.loads(item.value) for item in read_all(read_installation(environ(home)))]
    return of_type(events, "step.finished")


def test_two_processes_learn_what_one_does(folder: Path, tmp_path: Path) -> None:
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    with ExitStack() as both:
        for rank in ("0", "1"):
            (tmp_path / rank).touch()
            member = ForkedProcess(
                *("tests.support.ranked_updates", str(folder)),
                environ={**world, "RANK": rank, "LOCAL_RANK": rank},
                stdout=str(tmp_path / rank),
            )
            both.enter_context(member)
        member.wait()
        pairs = json.loads((tmp_path / "0").read_text())
    assert len(pairs) == len(SETTINGS)
    for (alone, together), settings in zip(pairs, SETTINGS, strict=True):
        assert alone["norm"] > 0
        for name, expected in alone.items():
            if expected is None:
                assert together[name] is None
            else:
                assert together[name] == pytest.approx(expected, rel=1e-4, abs=1e-6), (
                    name,
                    settings,
                )


@pytest.mark.timeout(600)
def test_a_training_of_two_processes_that_is_killed_and_continued_has_the_losses_of_one_process(
    folder: Path, tmp_path: Path
) -> None:
    """One of the two is killed; the other ends too, and one process continues the training."""
    command = [*TORCHRUN, "-m", "producer", *words(folder, tmp_path, num_steps=100)]
    running = subprocess.Popen(
        command, env=environ(tmp_path), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert running.stderr is not None
    while "step 1/" not in (line := running.stderr.readline()):
        assert line, "it ended before its first step"
    second = next(
        child
        for child in psutil.Process(running.pid).children()
        if child.environ().get("RANK") == "1"
    )
    second.send_signal(signal.SIGKILL)
    rest = running.stderr.read()
    running.stderr.close()
    assert running.wait(60) != 0
    assert 'Traceback (most recent call last)\n  File "<frozen' not in rest

    num_steps = len(steps(tmp_path)) + 1
    alone = tmp_path / "alone"
    alone.mkdir()
    for home in (tmp_path, alone):
        again = [*words(folder, home, num_steps=num_steps), "--num-steps", str(num_steps)]
        with ForkedProcess("producer", *again, environ=environ(home)) as process:
            process.wait()
    of_both, of_one = steps(tmp_path), steps(alone)
    assert len(of_both) == num_steps
    assert any(step["loss"] for step in of_one)
    for name in ("loss", "policy_gradient_norm", "reward_mean", "num_tokens"):
        assert [step[name] for step in of_both] == pytest.approx(
            [step[name] for step in of_one], rel=1e-4, abs=1e-6
        ), name


@pytest.fixture
def group() -> Iterator[None]:
    """As torchrun, with one process."""
    torch.distributed.init_process_group(
        "gloo", rank=0, world_size=1, store=torch.distributed.HashStore()
    )
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    "changes",
    [
        {"advantage": "gae", "environment": "android"},
        {"lora_dropout": 0.1},
    ],
)
def test_what_several_processes_do_not_compute_as_one_is_refused_before_the_first_event(
    folder: Path, changes: dict[str, object]
) -> None:
    installation = read_installation(os.environ)
    with pytest.raises(UsageError, match="not with several processes of torchrun"):
        run(one_step(folder, **changes), installation=installation)
    assert not installation.local_log_path.exists()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"WORLD_SIZE": "2"}, "missing or empty: RANK, LOCAL_RANK, MASTER_PORT, MASTER_ADDR"),
        ({"WORLD_SIZE": "two"}, "missing or empty: RANK, LOCAL_RANK, MASTER_PORT, MASTER_ADDR"),
        (WORLD | {"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two', not a whole number from 0"),
        (WORLD | {"LOCAL_RANK": "-1"}, "LOCAL_RANK is '-1', not a whole number from 0"),
        (WORLD | {"MASTER_PORT": ""}, "missing or empty: MASTER_PORT"),
    ],
)
def test_variables_that_torchrun_would_not_set_are_refused(
    changed: dict[str, str], found: str
) -> None:
    done = run_command("producer", "run", environ={**os.environ, **changed})
    assert (done.returncode, found in done.stderr) == (2, True), done.stderr
