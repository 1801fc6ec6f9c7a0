"""The runs: small, with seeds, on policies that are made here in seconds."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from producer.fine_tuning.sql_demo import SqlDemo
from producer.training.run import run
from schemas.installation import read_installation
from tests.producer.training.test_gae import SETTINGS as GAE
from tests.producer.training.test_prime import SETTINGS as PRIME
from tests.support.kafka import KafkaService
from tests.support.small_run import small
from tests.support.supervised_bits import DEMO
from tests.support.text_policy import build_answering_policy, build_knowing_policy
from tests.support.warmed_policies import phone_policy
from tests.whole.conftest import BARELY_WARM

SHORT = {
    "group_size": 4,
    "groups_per_batch": 2,
    "num_steps": 2,
    "eval_every": 2,
    "eval_episodes": 4,
    "save_every": 2,
    "lora_rank": 4,
    "max_tokens": 24,
    "learning_rate": 1e-3,
}


def _train(home: Path, name: str, **fields: Any) -> None:
    environ = {
        "CUA_HOME": str(home),
        "CUA_TOPIC_PREFIX": os.environ.get("CUA_TOPIC_PREFIX", ""),
        "KAFKA_BOOTSTRAP_SERVERS": os.environ.get("KAFKA_BOOTSTRAP_SERVERS", ""),
    }
    installation = read_installation({key: value for key, value in environ.items() if value})
    run(small(training_name=name, **fields), installation=installation)


def phone(home: Path, policies: Path) -> None:
    """GRPO on the simulated phone, with evaluations and a checkpoint."""
    _train(home, "phone", **SHORT, model_name=str(policies / "phone"), max_turns=3)


def phone_on_kafka(home: Path, policies: Path) -> None:
    """The same, sent to a broker."""
    with KafkaService() as kafka:
        kafka.start()
        os.environ["KAFKA_BOOTSTRAP_SERVERS"] = kafka.bootstrap_servers
        try:
            phone(home, policies)
        finally:
            del os.environ["KAFKA_BOOTSTRAP_SERVERS"]


def dbbench(home: Path, policies: Path) -> None:
    """REINFORCE on generated entries."""
    tasks = {"source_type": "dbbench_generated", "num_samples": 22, "seed": 0, "split": "train"}
    fields = {**SHORT, "max_tokens": 60, "environment": "dbbench", "tasks": tasks}
    _train(home, "dbbench", **fields, model_name=str(policies / "dbbench"))


def gae(home: Path, policies: Path) -> None:
    """A value head on the phone."""
    _train(home, "gae", **{**GAE, "num_steps": 2}, model_name=str(policies / "phone"))


def prime(home: Path, policies: Path) -> None:
    """An implicit reward model on text-to-SQL."""
    data = policies / "prime" / "data"
    tasks = {"source_type": "text_to_sql", "path": str(data), "split": "train"}
    given = {"model_name": str(policies / "prime" / "policy"), "tasks": tasks}
    _train(home, "prime", **{**PRIME, "num_steps": 2}, **given)


def text_to_sql(home: Path, _policies: Path) -> None:
    """The demonstration: imitation, step labels, a reward model, GRPO twice, best of N."""
    SqlDemo(0, read_installation({"CUA_HOME": str(home)}), DEMO, threading.Event()).run()


RUNS: dict[str, Callable[[Path, Path], None]] = {
    "phone": phone,
    "phone_on_kafka": phone_on_kafka,
    "dbbench": dbbench,
    "gae": gae,
    "prime": prime,
    "text_to_sql": text_to_sql,
}


def make_policies(folder: Path) -> None:
    """The policies that the runs begin with, unless they are there."""
    if (folder / "done").exists():
        return
    made = phone_policy(folder / "warm", BARELY_WARM)
    (folder / "phone").symlink_to(made)
    build_knowing_policy(folder / "dbbench", 40)
    build_answering_policy(folder / "prime")
    (folder / "done").touch()


def project(home: Path) -> None:
    """Fill the home's embedded database."""
    words = [sys.executable, "-m", "consumers", "run", "--once"]
    environ = {**os.environ, "CUA_HOME": str(home)}
    subprocess.run(words, env=environ, check=True, capture_output=True)


def main() -> None:
    """`python -m tests.frozen.runs RUN HOME POLICIES`: one run in a process of its own."""
    torch.set_num_threads(1)
    name, home, policies = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    RUNS[name](home, policies)


if __name__ == "__main__":
    main()
