"""SIGKILL at random moments, each followed by the same command.

`python -m tests.chaos.kill_trainer --kills 20` does it at length.
"""

import os

import pytest

from tests.chaos.kill_trainer import kill_until_done


@pytest.mark.slow
def test_a_killed_trainer_continues_and_loses_doubles_and_leaves_open_nothing() -> None:
    hit, violations, summary = kill_until_done(
        dict(os.environ), kills=4, seed=3, model="oracle", steps=4
    )
    assert violations == []
    assert summary["status"] == "completed"
    assert len(hit) >= 3
