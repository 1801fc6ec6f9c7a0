"""`tail --cursor` names what was printed, however and whenever the run ends: at least once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from schemas.installation import read_installation
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import logged_events, write_local_log
from tests.support.paths import ROOT

TAIL = (sys.executable, "-m", "consumers", "tail", "--format", "%t/%p@%o\\n", "--cursor")
DEADLINE_S = 60
WIDE = (*TAIL[:-2], "%t/%p@%o %v\\n", "--cursor")
"""With the value."""
READS = (1, 700, 2_500, 40, 3_500, 3_000)
"""Lines that each reader reads before it goes away, some of them more than a pipe may hold."""
NUM_SIGNALS, PIPE_BYTES = 8, 1 << 12


@pytest.fixture(scope="module")
def events() -> list[LoggedEvent]:
    return logged_events("a", "b", "c", "d")


@pytest.fixture(scope="module")
def written(
    events: list[LoggedEvent], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """A home whose log has some thousand records, and all of them as `tail` prints them."""
    home = tmp_path_factory.mktemp("written")
    environ = {"CUA_HOME": str(home), "PYTHONPATH": str(ROOT)}
    write_local_log(read_installation(environ).local_log_path, events * 3)
    done = subprocess.run(
        [*TAIL[:-1]], env=environ, capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3 * len(events) > 3000
    return home, lines


@pytest.fixture
def expected(written: tuple[Path, list[str]]) -> list[str]:
    """Every record of the log that a test has for itself."""
    home, lines = written
    shutil.copytree(home, read_installation(os.environ).home)
    return lines


def tail(
    cursor: Path, *arguments: str, command: tuple[str, ...] = TAIL
) -> "subprocess.Popen[bytes]":
    # A small pipe: a run that can write everything ends well before its reader goes away.
    return subprocess.Popen(
        [*command, str(cursor), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pipesize=PIPE_BYTES,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "follow"),
    [(signal.SIGTERM, ()), (signal.SIGINT, ("--follow",)), (signal.SIGHUP, ())],
)
def test_ended_by_signals_at_many_points_it_prints_every_record_once(
    expected: list[str], tmp_path: Path, number: signal.Signals, follow: tuple[str, ...]
) -> None:
    random = Random(number)
    printed: list[str] = []
    for _ in range(NUM_SIGNALS):
        process = tail(tmp_path / "cursor", *follow)
        assert process.stdout is not None
        # A slow reader, so that the signal meets a full pipe, too.
        got = process.stdout.read(random.randrange(1, 4000))
        time.sleep(random.random() / 50)
        process.send_signal(number)
        got += process.stdout.read()
        process.stdout.close()
        # Killed by it: before it began or after it had finished.
        assert process.wait(DEADLINE_S) in {0, 130, -number}
        assert got == b"" or got.endswith(b"\n")
        printed += got.decode().splitlines()
        if len(printed) >= len(expected):
            break
    process = tail(tmp_path / "cursor")
    printed += process.communicate(timeout=DEADLINE_S)[0].decode().splitlines()
    assert sorted(printed) == sorted(expected)


def by_partition(lines: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for line in lines:
        found.setdefault(line.partition(b"@")[0], []).append(line)
    return found


@pytest.mark.parametrize("arguments", [(), ("--type", "*.created")], ids=["all", "filtered"])
def test_after_a_reader_went_away_the_next_run_begins_at_or_before_what_it_left_unread(
    expected: list[str], events: list[LoggedEvent], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert expected
    # More than a pipe may hold, so that the cursor moves although every reader goes away.
    write_local_log(read_installation(os.environ).local_log_path, events * 4)
    done = subprocess.run([*WIDE[:-1], *arguments], capture_output=True, check=True)
    whole = by_partition(done.stdout.splitlines())
    num_read = dict.fromkeys(whole, 0)
    has_moved = False

    def take(lines: list[bytes]) -> None:
        for at, some in by_partition(lines).items():
            start = whole[at].index(some[0])
            assert start <= num_read[at], "a record was skipped"
            assert some == whole[at][start : start + len(some)]
            num_read[at] = max(num_read[at], start + len(some))

    for index, num_lines in enumerate(READS):
        process = tail(tmp_path / "cursor", *arguments, command=WIDE)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(num_lines)]
        # Sometimes long enough for it to fill the pipe with what nobody will read.
        time.sleep(0.02 * (index % 2))
        process.stdout.close()
        assert process.wait(DEADLINE_S) == 0
        take([line[:-1] for line in lines if line])
        has_moved |= lines[0] != done.stdout.partition(b"\n")[0] + b"\n"
    assert has_moved or arguments
    process = tail(tmp_path / "cursor", *arguments, command=WIDE)
    take(process.communicate(timeout=DEADLINE_S)[0].splitlines())
    assert num_read == {at: len(lines) for at, lines in whole.items()}


def test_a_signal_ends_a_run_whose_reader_has_stopped_reading(
    expected: list[str], tmp_path: Path
) -> None:
    process = tail(tmp_path / "cursor")
    assert process.stdout is not None
    first = os.read(process.stdout.fileno(), 100)
    time.sleep(0.5)  # the pipe is full now
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 130
    assert time.monotonic() - began < 5
    # What is in the pipe will still be read, so it is printed.
    whole, _, _ = (first + process.stdout.read()).rpartition(b"\n")
    process.stdout.close()
    process = tail(tmp_path / "cursor")
    rest = process.communicate(timeout=DEADLINE_S)[0]
    assert sorted([*whole.decode().splitlines(), *rest.decode().splitlines()]) == sorted(expected)


def test_what_a_full_disk_did_not_take_is_printed_again(
    expected: list[str], tmp_path: Path
) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123  # a device, not a path of ours
        done = subprocess.run(
            [*TAIL, str(tmp_path / "cursor")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the disk is full (standard output); free some space")
    saved = json.loads((tmp_path / "cursor").read_text())["positions"]
    assert sum(offset for partitions in saved.values() for offset in partitions.values()) == 0
    process = tail(tmp_path / "cursor")
    rest = process.communicate(timeout=DEADLINE_S)[0].decode().splitlines()
    assert sorted(rest) == sorted(expected)
