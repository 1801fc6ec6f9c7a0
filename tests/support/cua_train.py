"""`cua-train` called in this process."""

import signal
import sys
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import pytest

from producer.cli import main


class Done(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


class CuaTrain(Protocol):
    """Calls the command; its output, once its exit code is the expected one."""

    def __call__(self, *words: str, expected: int = 0) -> Done: ...


def caller(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CuaTrain:
    def call(*words: str, expected: int = 0) -> Done:
        monkeypatch.setattr(sys, "argv", ["cua-train", *words])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        done = Done(*capfd.readouterr())
        assert end.value.code == expected, done.stderr
        return done

    return call


@pytest.fixture
def cua_train(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[CuaTrain]:
    """The command line in this process; the signal handlers are restored."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield caller(monkeypatch, capfd)
    for number, handler in handlers.items():
        signal.signal(number, handler)
