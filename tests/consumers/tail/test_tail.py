import base64
import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from uuid import uuid4

import pytest

from consumers.console import sanitize
from consumers.log.local import LocalLogReader
from consumers.log.reader import TopicPartition
from consumers.tail.event_filter import EventFilter
from consumers.tail.formats import json_line
from consumers.tail.session import TailRequest, TailSession
from consumers.tail.text import decoders
from producer.emit import Emitter
from producer.log.local import LocalLog
from producer.log.stream_history import StreamHistory
from producer.log.writer import Record
from schemas.arrays import encode_float32, encode_int32
from schemas.environment import EnvironmentRequested
from schemas.ids import EPOCH_START, training_id
from schemas.installation import Installation
from schemas.turn import Sampling, TokenRecord, TurnTaken
from tests.support.forked_command import run_command
from tests.support.paths import ROOT
from tests.support.reading import installation_at, read_all

BLOB = "blob:sha256:" + "ab" * 32

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from consumers.cli import main; main()", "tail", *arguments]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "CUA_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def tail(environ: dict[str, str]) -> Run:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return run_command("consumers", "tail", *arguments, environ=environ)

    return run


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return installation_at(tmp_path)


@pytest.fixture
def emitter(installation: Installation) -> Iterator[Emitter]:
    with Emitter.open(installation) as emitter:
        yield emitter


def request_environments(emitter: Emitter, names: list[str], training: str | None = None) -> None:
    owner = None if training is None else training_id(training)
    for name in names:
        stream = emitter.stream(f"environment/{uuid4()}", training_id=owner)
        stream.emit(EnvironmentRequested(env_type=name, box_type="android", config={}))
    emitter.flush(10)


def names(done: "subprocess.CompletedProcess[str]") -> list[str]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["data"]["env_type"] for line in done.stdout.splitlines()]


def test_json_is_the_envelope_as_it_was_written_with_its_place_in_the_log(
    tail: Run, emitter: Emitter, installation: Installation
) -> None:
    request_environments(emitter, ["a", "b", "c"])
    lines = [json.loads(line) for line in tail("--json").stdout.splitlines()]
    records = read_all(installation)
    assert len(lines) == 3
    for line, record in zip(lines, records, strict=True):
        assert (line.pop("topic"), line.pop("partition"), line.pop("offset")) == record[:3]
        assert line == json.loads(record.value)


def test_records_come_in_the_order_of_appending_over_all_partitions(
    tail: Run, emitter: Emitter
) -> None:
    order = [f"n{number}" for number in range(40)]
    request_environments(emitter, order)
    assert names(tail("--json")) == order


def test_num_is_the_last_ones_and_from_an_offset_the_first_ones(
    tail: Run, emitter: Emitter
) -> None:
    request_environments(emitter, ["a", "b", "c", "d"])
    assert names(tail("--json", "-n", "2")) == ["c", "d"]
    assert names(tail("--json", "-n", "2", "--offset", "start")) == ["a", "b"]


def test_filters_are_by_training_stream_type_and_place(
    tail: Run, emitter: Emitter, installation: Installation
) -> None:
    request_environments(emitter, ["mine"], training="demo")
    request_environments(emitter, ["theirs"], training="other")
    assert names(tail("--json", "--training", "demo")) == ["mine"]
    assert names(tail("--json", "--type", "environment.*")) == ["mine", "theirs"]
    assert names(tail("--json", "--type", "cua.environment.requested")) == ["mine", "theirs"]
    assert names(tail("--json", "--type", "rollout.*")) == []
    last = read_all(installation)[-1]
    assert names(tail("--json", "--stream", str(last.key))) == ["theirs"]
    assert names(tail("--json", "--topic", "training")) == []
    assert "theirs" in names(
        tail("--json", "--topic", "cua.rollouts", "--partition", str(last.partition))
    )


def test_an_unknown_topic_and_a_bad_offset_are_usage_errors(tail: Run) -> None:
    for arguments in (
        ["--topic", "nope"],
        ["--offset", "nope"],
        ["--json", "--format", "%v"],
        ["--format", "%z"],
        ["-n", "0"],
        ["-n", "0", "--follow", "--offset", "start"],
        ["-n", "0", "--follow", "--cursor", "cursor.json"],
        ["-n", "-1", "--follow"],
    ):
        done = tail(*arguments)
        assert done.returncode == 2, arguments
        assert done.stdout == ""
        assert "Traceback" not in done.stderr


def test_an_empty_log_shows_nothing_and_is_no_error(tail: Run) -> None:
    done = tail()
    assert (done.returncode, done.stdout) == (0, "")


def test_a_cursor_goes_on_exactly_where_the_last_tail_ended(
    tail: Run, emitter: Emitter, tmp_path: Path
) -> None:
    cursor = ["--cursor", str(tmp_path / "cursor.json"), "--json"]
    request_environments(emitter, ["a", "b", "c"])
    shown = names(tail(*cursor, "-n", "2"))
    shown += names(tail(*cursor))
    request_environments(emitter, ["d", "e"])
    shown += names(tail(*cursor, "-n", "1"))
    shown += names(tail(*cursor))
    assert shown == ["a", "b", "c", "d", "e"]
    assert names(tail(*cursor)) == []


@pytest.mark.usefixtures("emitter")
def test_a_cursor_of_another_log_is_an_error(tail: Run, tmp_path: Path) -> None:
    cursor = tmp_path / "cursor.json"
    cursor.write_text(json.dumps({"log_id": "local-other", "positions": {}}))
    done = tail("--cursor", str(cursor))
    assert done.returncode == 4
    assert "local-other" in done.stderr


@pytest.mark.usefixtures("emitter")
def test_a_file_that_is_no_cursor_is_a_usage_error_and_stays_as_it_is(
    tail: Run, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("my notes")
    assert tail("--cursor", str(tmp_path / "notes.txt")).returncode == 2
    assert (tmp_path / "notes.txt").read_text() == "my notes"


def test_format_strings_say_what_they_are_told(
    tail: Run, emitter: Emitter, installation: Installation
) -> None:
    request_environments(emitter, ["a"])
    (record,) = read_all(installation)
    done = tail("--format", r"%t|%p|%o|%k|%T|%s|%e/%q|%i|%%|\x41\t\\\n")
    assert done.stdout == (
        f"cua.rollouts|{record.partition}|0|{record.key}|cua.environment.requested|{record.key}"
        "|1/1|1|%|A\t\\\n"
    )
    assert tail("--format", "%v").stdout.encode() == record.value


class WatchedReader(LocalLogReader):
    """Says when somebody has looked for partitions."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation.local_log_path, topic_prefix=installation.topic_prefix)
        self.was_asked = threading.Event()

    def partitions(self) -> list[TopicPartition]:
        found = super().partitions()
        self.was_asked.set()
        return found


def test_of_a_log_that_appears_while_tail_waits_nothing_is_missed_and_the_number_ends_it(
    installation: Installation,
) -> None:
    reader, out = WatchedReader(installation), io.BytesIO()
    wanted = TailRequest(
        offset=None, limit=2, follow=True, event_filter=EventFilter(), is_wanted=lambda _: True
    )
    thread = threading.Thread(target=TailSession(reader, wanted, json_line, out, None).run)
    thread.start()
    assert reader.was_asked.wait(10)
    with Emitter.open(installation) as emitter:
        request_environments(emitter, ["a", "b", "c"])
    thread.join(10)
    assert not thread.is_alive()
    reader.close()
    assert [json.loads(line)["data"]["env_type"] for line in out.getvalue().splitlines()] == [
        "a",
        "b",
    ]


def test_follow_without_a_cursor_begins_at_the_end(
    environ: dict[str, str], emitter: Emitter
) -> None:
    request_environments(emitter, ["old"])
    process = subprocess.Popen(
        command("--follow", "--json", "-n", "1"),
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        request_environments(emitter, ["new"])
        time.sleep(0.05)
    said, _ = process.communicate(timeout=30)
    assert [json.loads(line)["data"]["env_type"] for line in said.splitlines()] == ["new"]


def test_follow_with_zero_old_records_prints_every_new_one(
    environ: dict[str, str], emitter: Emitter
) -> None:
    request_environments(emitter, ["old"])
    process = subprocess.Popen(
        command("-n", "0", "-f", "--json"), cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    reading = threading.Thread(target=lambda: lines.extend(islice(process.stdout or (), 3)))
    reading.start()
    deadline = time.monotonic() + 30
    while reading.is_alive() and time.monotonic() < deadline:
        request_environments(emitter, ["new"])
        time.sleep(0.05)
    process.terminate()
    process.communicate(timeout=30)
    reading.join(10)
    assert [json.loads(line)["data"]["env_type"] for line in lines] == ["new"] * 3


def test_an_unreadable_record_is_shown_as_such_and_the_rest_goes_on(
    tail: Run, emitter: Emitter, installation: Installation
) -> None:
    log = LocalLog(installation.local_log_path)
    log.append(
        [
            Record("cua.rollouts", "rollout/x", b"\xff\x1b[31mnot json"),
            Record("cua.rollouts", "rollout/x", b'{"half":'),
        ]
    )
    log.close()
    request_environments(emitter, ["a"])
    lines = tail().stdout.splitlines()
    assert len(lines) == 3
    assert all("UNREADABLE" in line and "rollout/x" in line for line in lines[:2])
    first = json.loads(tail("--json").stdout.splitlines()[0])
    assert base64.b64decode(first["value_base64"]) == b"\xff\x1b[31mnot json"
    assert tail("--format", r"%T|%k\n").stdout.splitlines()[0] == "|rollout/x"


def test_the_human_view_decodes_arrays_shortens_them_and_never_dumps_what_is_large(
    tail: Run, emitter: Emitter
) -> None:
    tokens = TokenRecord(
        prompt_tokens=encode_int32(range(2000)),
        prompt_images=(BLOB,),
        completion_tokens=encode_int32([5, 6]),
        completion_logprobs=encode_float32([-0.5, float("-inf")]),
        sampling=Sampling(temperature=1.0, max_tokens=2),
        stop_reason="stop",
    )
    turn = TurnTaken(
        turn=1,
        started_at=EPOCH_START,
        ended_at=EPOCH_START,
        policy_version=0,
        screenshot_before=BLOB,
        screenshot_after=None,
        text=None,
        model_response="\x1b]0;owned\x07\u202eclick" + "x" * 10_000,
        tokens=tokens,
        actions=(),
        reward=0.0,
        episode_done=False,
        progress_percent=10.0,
    )
    owner = uuid4()
    running = StreamHistory(f"rollout/{owner}", statuses={("rollout", owner): "running"})
    emitter.stream(running.subject, running).emit(turn).wait(10)
    line = tail().stdout
    assert "prompt_tokens: [2000: 0 1 2 3 4 5 …]" in line
    assert "completion_logprobs: [2: -0.5 -inf]" in line
    assert "blob:abababab" in line
    assert len(line) < 1500
    assert not any(
        ord(character) < 32 or character in "\x7f\u202e" for character in line.rstrip("\n")
    )


def test_a_reader_of_the_output_that_goes_away_is_no_error(
    environ: dict[str, str], emitter: Emitter
) -> None:
    request_environments(emitter, ["a" * 200] * 2000)
    process = subprocess.Popen(
        command("--json"), cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert (process.wait(30), complaint) == (0, b"")


def test_every_array_of_the_schemas_is_known_to_the_human_view() -> None:
    assert decoders() == {
        "prompt_tokens": "<i4",
        "completion_tokens": "<i4",
        "completion_logprobs": "<f4",
    }


def test_nothing_that_a_terminal_obeys_survives() -> None:
    assert (
        sanitize("ok é 漢\x00\x1b[0m\x9b31m\u200b\u2066\ud800end")
        == "ok é 漢\ufffd\ufffd[0m\ufffd31m\ufffd\ufffd\ufffdend"
    )


def test_a_kafka_that_is_not_there_is_exit_5_at_once_with_what_to_do(
    environ: dict[str, str],
) -> None:
    unreachable = {**environ, "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    began = time.monotonic()
    subprocess.run(command("--help"), cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, check=True)
    start_s = time.monotonic() - began
    done = subprocess.run(
        command(),
        cwd=ROOT,
        env=unreachable,
        capture_output=True,
        text=True,
        timeout=8 + 3 * start_s,
        check=False,
    )
    assert done.returncode == 5
    assert "KAFKA_BOOTSTRAP_SERVERS" in done.stderr
    assert "Traceback" not in done.stderr
