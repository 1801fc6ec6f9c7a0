"""`tail --cursor` names what was printed, however and whenever the run ends: at least once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from schemas.installation import read_installation
from tests.support.logs import logged_events, write_local_log

TAIL = (sys.executable, "-m", "consumers", "tail", "--format", "%t/%p@%o\\n", "--cursor")
DEADLINE_S = 60
WIDE = (*TAIL[:-2], "%t/%p@%o %v\\n", "--cursor")
"""With the value."""
NUM_READERS, MOST_LINES, PIPE_BYTES = 10, 4_000, 1 << 12


@pytest.fixture
def expected() -> list[str]:
    """Every record of a log of some thousand, as `tail` prints it."""
    events = logged_events("a", "b", "c", "d")
    write_local_log(read_installation(os.environ).local_log_path, events * 3)
    done = subprocess.run(
        [*TAIL[:-1]], capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3 * len(events) > 3000
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
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("follow", [(), ("--follow",)], ids=["once", "follow"])
def test_ended_by_signals_at_many_points_it_prints_every_record_once(
    expected: list[str], tmp_path: Path, number: signal.Signals, follow: tuple[str, ...]
) -> None:
    random = Random(number)
    printed: list[str] = []
    for _ in range(12):
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
    expected: list[str], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert expected
    # More than a pipe may hold, so that the cursor moves although every reader goes away.
    write_local_log(read_installation(os.environ).local_log_path, logged_events(*"abcd") * 9)
    done = subprocess.run([*WIDE[:-1], *arguments], capture_output=True, check=True)
    whole = by_partition(done.stdout.splitlines())
    random = Random(7)
    num_read = dict.fromkeys(whole, 0)
    has_moved = False

    def take(lines: list[bytes]) -> None:
        for at, some in by_partition(lines).items():
            start = whole[at].index(some[0])
            assert start <= num_read[at], "a record was skipped"
            assert some == whole[at][start : start + len(some)]
            num_read[at] = max(num_read[at], start + len(some))

    for _ in range(NUM_READERS):
        process = tail(tmp_path / "cursor", *arguments, command=WIDE)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(random.randrange(1, MOST_LINES))]
        # Sometimes long enough for it to fill the pipe with what nobody will read.
        time.sleep(random.choice([0, 0.02]))
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
