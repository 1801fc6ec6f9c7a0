"""`cua-project` called in this process, on a database of the test's own."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from consumers.cli import main
from consumers.database.silence import WATCH


class Called(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


Call = Callable[..., Called]


@pytest.fixture
def call(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Call]:
    """The command line with DATABASE_URL set."""
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments: str) -> Called:
        monkeypatch.setattr(sys, "argv", ["cua-project", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Called(end.value.code, out, err)

    yield run
    WATCH.start(None)
    for number, handler in handlers.items():
        signal.signal(number, handler)
