"""A small run of the whole trainer without torch."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from producer.config import RunConfig, read_config

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


class _Watcher(logging.Handler):
    def __init__(self, watch: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        self._watch(record.getMessage())


@contextmanager
def watching(watch: Callable[[str], None]) -> Iterator[None]:
    """Call `watch` with each line that the trainer logs, on the thread that logs it."""
    logger, handler = logging.getLogger("producer"), _Watcher(watch)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
