"""A port of the tests is given to one test of one process."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ports
from tests.support.paths import ROOT
from tests.support.ports import FIRST, NUM_PORTS, FreePorts, free_port

HOLDING = """
import sys
from pathlib import Path
from tests.support.ports import FreePorts
ports = FreePorts(int(sys.argv[1]), Path(sys.argv[2]))
print(ports.take(), ports.take(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def all_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens on any, whatever else this machine does."""
    monkeypatch.setattr(ports, "_is_free", lambda _port: True)


@pytest.mark.usefixtures("all_free")
def test_none_is_given_twice_nor_by_two_processes_at_once(tmp_path: Path) -> None:
    file = tmp_path / "ports"
    command = [sys.executable, "-c", HOLDING, "5000", str(file)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = set(map(int, other.stdout.readline().split()))
        own = FreePorts(5000, file)
        ours = {own.take() for _ in range(50)}
        other.communicate("")
    assert (len(theirs), len(ours)) == (2, 50)
    assert not theirs & ours
    first = min(theirs)
    assert FreePorts(first - FIRST, file).take() == first  # its holder has ended


def test_one_on_which_somebody_listens_is_not_given(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        assert FreePorts(port - FIRST, tmp_path / "ports").take() != port


@pytest.mark.usefixtures("all_free")
def test_they_lie_where_the_system_chooses_none_and_may_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 1024 < FIRST < FIRST + NUM_PORTS <= 32768
    monkeypatch.setattr(ports, "NUM_PORTS", 3)
    few = FreePorts(2, tmp_path / "ports")
    assert {few.take() for _ in range(3)} == {FIRST, FIRST + 1, FIRST + 2}
    with pytest.raises(RuntimeError, match="all ports from 20000 to 20002 are taken"):
        few.take()
