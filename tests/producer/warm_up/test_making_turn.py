"""Who makes the default policy when several processes of a home need it."""

import os
import threading
import time
from pathlib import Path

from producer.warm_up.ensure import making_turn
from tests.support.stopped_process import stopped_process


def test_a_maker_that_is_stopped_is_not_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / ".policy.lock"
    with stopped_process(lock, {}):
        began = time.monotonic()
        with making_turn(lock, lambda: False) as turn:
            assert not turn.is_alone
        assert time.monotonic() - began < 5


def test_a_maker_without_progress_is_not_waited_for(tmp_path: Path) -> None:
    """Where /proc does not tell who is stopped."""
    lock = tmp_path / ".policy.lock"
    with making_turn(lock, lambda: False) as first:
        assert first.is_alone
        os.utime(lock, (0, 0))
        with making_turn(lock, lambda: False, stale_s=60) as second:
            assert not second.is_alone


def test_a_maker_that_makes_progress_is_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / ".policy.lock"
    begun, over = threading.Event(), threading.Event()

    def make() -> None:
        with making_turn(lock, lambda: False) as turn:
            begun.set()
            while not over.wait(0.05):
                turn.beat()

    maker = threading.Thread(target=make)
    maker.start()
    assert begun.wait(20)
    threading.Timer(4.0, over.set).start()
    began = time.monotonic()
    with making_turn(lock, lambda: False, stale_s=2.0) as turn:
        assert turn.is_alone
        assert time.monotonic() - began > 3.0
    maker.join()


def test_a_policy_that_is_made_meanwhile_is_not_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / ".policy.lock"
    with (
        making_turn(lock, lambda: False),
        making_turn(lock, lambda: True) as second,
    ):
        assert not second.is_alone
