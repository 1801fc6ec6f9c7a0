"""One process of a home makes the default policy; the others wait for it."""

import threading
from pathlib import Path

import pytest

from producer.agents.built_policy import OnStep, OnWait
from producer.errors import CuaTrainError
from producer.warm_up.ensure import ensure_made
from tests.support.stopped_process import stopped_process


def ensured(folder: Path, content: str, on_wait: OnWait) -> str:
    def make(making: Path, on_step: OnStep) -> None:
        on_step(1, 0.5)
        (making / "made-by").write_text(content)

    return (ensure_made(folder, 1, make, on_wait=on_wait) / "made-by").read_text()


def test_who_needs_it_meanwhile_waits_and_takes_what_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "policies" / "demo-abc"
    begun, is_waited_for = threading.Event(), threading.Event()

    def make(making: Path, _on_step: OnStep) -> None:
        begun.set()
        assert is_waited_for.wait(20)
        (making / "made-by").write_text("the first")

    maker = threading.Thread(target=lambda: ensure_made(folder, 1, make))
    maker.start()
    assert begun.wait(20)
    assert ensured(folder, "the second", lambda _holder: is_waited_for.set()) == "the first"
    maker.join()


def test_what_a_killed_process_left_is_not_taken_for_it(tmp_path: Path) -> None:
    left = tmp_path / ".making-demo-abc"
    left.mkdir()
    (left / "half").touch()
    assert ensured(tmp_path / "demo-abc", "anew", lambda _holder: None) == "anew"
    assert {path.name for path in (tmp_path / "demo-abc").iterdir()} == {"made-by"}
    assert not left.exists()


def test_a_maker_that_is_stopped_is_named_and_not_waited_for(tmp_path: Path) -> None:
    with (
        stopped_process(tmp_path / ".demo-abc.lock", {}) as maker,
        pytest.raises(CuaTrainError, match=f"stopped: continue it .kill -CONT {maker.pid}"),
    ):
        ensured(tmp_path / "demo-abc", "anew", lambda _holder: None)
