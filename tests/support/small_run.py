"""Small runs of the whole trainer: by the oracle without torch, or by the policy of a folder."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
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

TINY: dict[str, Any] = {
    "max_turns": 3,
    "max_tokens": 8,
    "skip_baseline": True,
    "eval_every": 0,
    "eval_episodes": 2,
    "renderer_name": "compact",
    # Rewards differ, although so small a policy solves nothing.
    "reward": "tests.support.token_reward:by_tokens",
    "learning_rate": 1e-2,
    "lora_rank": 4,
}
"""Steps alone, by the smallest policy of screens."""


def small(**changes: object) -> RunConfig:
    return read_config({**SMALL, **changes})


def one_step(folder: Path, **changes: object) -> RunConfig:
    """One step of two rollouts of one turn, by the policy of this folder."""
    return read_config(
        {
            "training_name": "first",
            "model_name": str(folder),
            "tasks": {"source_type": "ids", "task_ids": ["train_01_open_settings"]},
            "num_steps": 1,
            "group_size": 2,
            "groups_per_batch": 1,
            "max_turns": 1,
            "max_tokens": 4,
            "lora_rank": 2,
            "skip_baseline": True,
            "eval_every": 0,
            "eval_episodes": 1,
            **changes,
        }
    )


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
