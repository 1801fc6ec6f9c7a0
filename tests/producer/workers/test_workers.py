"""Rollouts of a trainer that workers run: the same results, whatever dies."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from producer.emit import Emitter
from producer.emit.emitter import now_utc
from producer.errors import CuaTrainError, StopRequestedError, UnreachableError, UsageError
from producer.log.event_log import EventLog
from producer.log.kafka_queue import WorkSender
from producer.log.writer import TopicPartition
from producer.training.run import run
from producer.workers.worker import Worker
from schemas.installation import Installation, read_installation
from tests.chaos.checks import read_log
from tests.support.checkpoints import write_checkpoint
from tests.support.forked_command import run_command
from tests.support.kafka import KafkaService
from tests.support.policy_server import policy_server
from tests.support.small_run import one_step, small

pytestmark = pytest.mark.slow
ONE_STEP: dict[str, object] = {
    "num_steps": 1,
    "skip_baseline": True,
    "eval_every": 0,
    "eval_episodes": 1,
}


@pytest.fixture
def environ(
    kafka: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, str]]:
    """Variables of a host by its name; this process is the trainer."""
    shared = {
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "CUA_TOPIC_PREFIX": f"w{uuid4().hex[:8]}-",
        "CUA_BLOBS": str(tmp_path / "blobs"),
    }
    for name, value in shared.items():
        monkeypatch.setenv(name, value)
    return lambda host: {**os.environ, **shared, "CUA_HOME": str(tmp_path / host)}


@pytest.fixture
def installation(environ: Callable[[str], dict[str, str]]) -> Installation:
    return read_installation(environ("trainer"))


@contextmanager
def worker(environ: dict[str, str], max_rollouts: int = 4) -> Iterator[Worker]:
    """On threads of this process; stopped gracefully at the end."""
    stop, ready = threading.Event(), threading.Event()
    installation = read_installation(environ)
    with Emitter.open(installation) as emitter:
        made = Worker(emitter, installation, now_utc, max_rollouts=max_rollouts, stop=stop)
        thread = threading.Thread(target=made.run, args=(ready.set,))
        thread.start()
        try:
            assert ready.wait(60)
            yield made
        finally:
            stop.set()
            thread.join()


@contextmanager
def process(
    environ: dict[str, str], act_s: float, log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker of one rollout at a time, on phones that take `act_s` for an action."""
    words = [sys.executable, "-m", "tests.support.slow_worker", str(act_s), "worker"]
    with log.open("wb") as stderr:
        started = subprocess.Popen(
            [*words, "--max-concurrent-rollouts", "1"], env=environ, stderr=stderr
        )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def events(installation: Installation, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(value) for _, value in read_log(installation)]
    return [event for event in found if event["type"] == f"cua.{kind}"]


def rewards(installation: Installation) -> dict[tuple[str, int, int], float]:
    """(source, group, place) -> reward of every rollout that was finished."""
    created = {event["subject"]: event["data"] for event in events(installation, "rollout.created")}
    finished = events(installation, "rollout.finished")
    assert len({event["subject"] for event in finished}) == len(finished)
    plans = [(created[event["subject"]], event["data"]["reward"]) for event in finished]
    return {
        (plan["rollout_id"].split("/")[2], plan["group_num"], plan["env_index"]): reward
        for plan, reward in plans
    }


def test_workers_share_the_rollouts_and_their_results_are_those_of_one_process(
    installation: Installation, environ: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    with worker(environ("one")) as one, worker(environ("two")) as two:
        summary = run(small(rollouts_by="workers"), installation=installation)
    assert (summary.status, summary.steps) == ("completed", 3)
    alone = replace(installation, home=tmp_path / "alone", kafka_bootstrap_servers=None)
    run(small(), installation=alone)

    ended = events(installation, "rollout.finished")
    assert one.num_ended + two.num_ended == len(ended)
    assert min(one.num_ended, two.num_ended) >= len(ended) // 4
    sources = Counter(event["source"] for event in ended)
    assert len(sources) == 2
    assert {event["source"] for event in events(installation, "step.finished")}.isdisjoint(sources)
    assert rewards(installation) == rewards(alone)


@pytest.mark.parametrize("arrived", [True, False], ids=["arrived", "lost"])
def test_an_assignment_that_kafka_did_not_answer_is_run_once(
    installation: Installation,
    environ: Callable[[str], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    arrived: bool,
) -> None:
    """Every other answer is missing, whether or not Kafka took the assignment."""
    send, number = WorkSender.send, itertools.count()

    def without_an_answer(self: WorkSender, partition: int, key: str, value: bytes) -> None:
        is_answered = next(number) % 2 == 1
        if arrived or is_answered:
            send(self, partition, key, value)
        if not is_answered:
            message = "Kafka did not take an assignment"
            raise UnreachableError(message)

    monkeypatch.setattr(WorkSender, "send", without_an_answer)
    with worker(environ("one")), worker(environ("two")):
        summary = run(small(rollouts_by="workers", **ONE_STEP), installation=installation)
    assert (summary.status, summary.steps) == ("completed", 1)
    assert len(rewards(installation)) == 2 * 3 + 1
    assert len(events(installation, "rollout.created")) == 2 * 3 + 1


def test_a_killed_worker_loses_doubles_and_scores_no_rollout(
    installation: Installation,
    environ: Callable[[str], dict[str, str]],
    tmp_path: Path,
    migrated_url: str,
) -> None:
    with ExitStack() as stack:
        doomed = stack.enter_context(process(environ("doomed"), 3600.0, tmp_path / "doomed.log"))

        def kill_in_a_rollout() -> None:
            """Then another one comes."""
            while not events(installation, "rollout.started"):
                time.sleep(0.05)
            doomed.kill()
            stack.enter_context(process(environ("next"), 0.0, tmp_path / "next.log"))

        killer = threading.Thread(target=kill_in_a_rollout)
        killer.start()
        summary = run(small(rollouts_by="workers", **ONE_STEP), installation=installation)
        killer.join()
    assert (summary.status, summary.steps) == ("completed", 1)

    (cancelled,) = events(installation, "rollout.cancelled")
    assert cancelled["epoch"] == 2
    assert cancelled["data"]["reason"] == "its process ended before it did"
    assert events(installation, "rollout.failed") == []
    assert len(rewards(installation)) == 2 * 3 + 1
    assert len(events(installation, "rollout.created")) == 2 * 3 + 1 + 1
    variables = {**environ("trainer"), "DATABASE_URL": migrated_url}
    assert run_command("consumers", "run", "--once", environ=variables).returncode == 0
    verified = run_command("consumers", "verify", environ=variables)
    assert verified.returncode == 0, verified.stdout


def has_rollout(installation: Installation, pid: int) -> bool:
    """Whether the process has taken a turn of a rollout that it has not ended."""
    begun, ended = (
        {event["subject"] for event in found if event["source"].split("/")[3] == str(pid)}
        for found in (
            events(installation, "rollout.turn_taken"),
            events(installation, "rollout.finished"),
        )
    )
    return bool(begun - ended)


def test_workers_restarted_in_turn_finish_their_rollouts_and_exit_with_0(
    kafka: KafkaService,
    installation: Installation,
    environ: Callable[[str], dict[str, str]],
    tmp_path: Path,
) -> None:
    """Also while Kafka is slow, so that their events are not sent yet when they end."""
    codes: list[int] = []
    with ExitStack() as stack:
        # The second still has a rollout once the first is replaced.
        running = [
            stack.enter_context(process(environ(f"old-{at}"), act_s, tmp_path / f"old-{at}.log"))
            for at, act_s in enumerate((0.3, 2.0))
        ]

        def restart_in_turn() -> None:
            until_s = time.monotonic() + 120
            for at, old in enumerate(running):
                while not has_rollout(installation, old.pid) and time.monotonic() < until_s:
                    time.sleep(0.05)
                old.terminate()
                if at == 0:
                    kafka.send_signal(signal.SIGSTOP)
                    time.sleep(3)  # less than a heartbeat of the consumers' group
                    kafka.send_signal(signal.SIGCONT)
                new = process(environ(f"new-{at}"), 0.0, tmp_path / f"new-{at}.log")
                stack.enter_context(new)
                codes.append(old.wait(60))

        restarter = threading.Thread(target=restart_in_turn, daemon=True)
        restarter.start()
        summary = run(small(rollouts_by="workers", **ONE_STEP), installation=installation)
        restarter.join(60)
    assert codes == [0, 0], [path.read_text() for path in tmp_path.glob("old-*.log")]
    assert (summary.status, summary.steps) == ("completed", 1)
    assert events(installation, "rollout.cancelled") == []
    assert events(installation, "rollout.failed") == []
    finished = events(installation, "rollout.finished")
    assert len(events(installation, "rollout.created")) == len(finished) == 2 * 3 + 1
    assert len(rewards(installation)) == 2 * 3 + 1
    pids = {event["source"].split("/")[3] for event in finished}
    assert {str(old.pid) for old in running} <= pids, "each ended the rollout that it had"


def test_a_step_that_begins_while_kafka_does_not_answer_waits_for_it(
    installation: Installation,
    environ: Callable[[str], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As one that is under way does."""
    ends, number = EventLog.ends, itertools.count()

    def answers_later(self: EventLog) -> dict[TopicPartition, int]:
        if next(number) == 0:
            message = "Kafka did not answer"
            raise UnreachableError(message)
        return ends(self)

    with worker(environ("one")):
        config = small(rollouts_by="workers", **ONE_STEP)
        monkeypatch.setattr("producer.workers.worker_engine.RETRY_S", 0.1)
        with monkeypatch.context() as patch:
            patch.setattr(EventLog, "ends", answers_later)
            summary = run(config, installation=installation)
    assert (summary.status, summary.steps) == ("completed", 1)
    assert "Kafka did not answer" in caplog.text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    made = tmp_path_factory.mktemp("policy") / "qwen3_vl"
    write_checkpoint(made, "qwen3_vl")
    return made


def test_log_probs_of_workers_are_those_of_the_learner(
    folder: Path, installation: Installation, environ: Callable[[str], dict[str, str]]
) -> None:
    settings: dict[str, object] = {
        "max_turns": 3,
        "max_tokens": 6,
        "max_recent_turns": 1,
        "group_size": 2,
    }
    settings |= {"num_steps": 2, "entropy_coef": 0.1, "learning_rate": 0.01}
    with policy_server(folder) as server, worker(environ("one")), worker(environ("two")):
        config = one_step(folder, base_url=server.url, rollouts_by="workers", **settings)
        run(config, installation=installation)
    steps = [event["data"] for event in events(installation, "step.finished")]
    assert len(steps) == 2
    for step in steps:
        assert 0 <= step["metrics"]["sampling/logprob_gap_max"] <= 1e-5
        assert step["num_tokens"] > 0
    turns = [event["data"] for event in events(installation, "rollout.turn_taken")]
    assert {turn["policy_version"] for turn in turns} == {0, 1, 2}


def test_what_workers_cannot_do_is_refused_before_the_first_event(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(message: str, **changes: object) -> None:
        with pytest.raises(UsageError, match=message):
            run(small(rollouts_by="workers", **changes), installation=installation)

    refused("base_url", model_name="demo")
    refused("max_steps_off_policy: only with rollouts_by trainer", max_steps_off_policy=1)
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS")
    without = read_installation(os.environ)
    with pytest.raises(UsageError, match="set KAFKA_BOOTSTRAP_SERVERS"):
        run(small(rollouts_by="workers"), installation=without)
    assert not without.local_log_path.exists()
    done = run_command("producer", "worker")
    assert done.returncode == 2
    assert "set KAFKA_BOOTSTRAP_SERVERS" in done.stderr


def test_a_worker_with_another_blob_store_ends_and_names_both(
    installation: Installation, environ: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    variables = environ("elsewhere") | {"CUA_BLOBS": str(tmp_path / "other")}
    stop = threading.Event()

    def train_until_stopped() -> None:
        with pytest.raises(StopRequestedError):
            run(small(rollouts_by="workers"), installation=installation, stop=stop)

    with process(variables, 0.0, tmp_path / "log") as started:
        training = threading.Thread(target=train_until_stopped)
        training.start()
        assert started.wait(60) == 2
        stop.set()
        training.join()
    said = (tmp_path / "log").read_text()
    assert f"stores screenshots in {tmp_path / 'other'}" in said
    assert f"from {tmp_path / 'blobs'}; set the same store" in said


def test_what_a_worker_lacks_fails_the_rollout_and_not_the_worker(
    installation: Installation,
    environ: Callable[[str], dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The trainer has a reward function that no other host can import."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own_rewards.py").write_text("def half(outcome):\n    return 0.5\n")
    monkeypatch.syspath_prepend(folder)
    with process(environ("lacking"), 0.0, tmp_path / "log") as started:
        config = small(rollouts_by="workers", reward="own_rewards:half", max_attempts=1)
        with pytest.raises(CuaTrainError, match=r"worker //.* cannot run it: .*own_rewards"):
            run(config, installation=installation)
        assert started.poll() is None
