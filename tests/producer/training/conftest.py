"""A small run of the whole trainer without torch, and its log as plain dictionaries."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consumers.log.local import LocalLogReader
from producer.config import RunConfig, read_config
from schemas.installation import Installation, read_installation

SMALL: dict[str, Any] = {
    "training_name": "small",
    "model_name": "oracle",
    "num_steps": 3,
    "group_size": 3,
    "groups_per_batch": 2,
    "eval_episodes": 4,
    "eval_every": 2,
    "save_every": 2,
    "tasks": {"source_type": "ids", "task_ids": ["train_01_open_settings", "train_02_enable_wifi"]},
}


def small(**changes: object) -> RunConfig:
    return read_config({**SMALL, **changes})


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return read_installation({"CUA_HOME": str(tmp_path / "home")})


@pytest.fixture
def read_log(installation: Installation) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        reader = LocalLogReader(installation.local_log_path, topic_prefix=installation.topic_prefix)
        try:
            reader.seek(dict.fromkeys(reader.places(), 0))
            events: list[dict[str, Any]] = []
            while records := reader.poll(10_000, 0.0):
                events += [
                    {
                        **json.loads(one.value),
                        "topic": one.topic,
                        "partition": one.partition,
                        "offset": one.offset,
                    }
                    for one in records
                ]
            return events
        finally:
            reader.close()

    return read
