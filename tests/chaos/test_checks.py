"""The checks of `make chaos` find a single lost, doubled or changed event. No server is needed."""

from pathlib import Path
from random import Random

import pytest

from producer.log.local import LocalLog
from producer.log.local_file import open_for_writing
from producer.log.writer import Record, TopicPartition
from schemas.catalogue import topic_of
from schemas.event import StreamPoint
from schemas.ids import uuid7
from schemas.wire import encode
from tests.chaos.acknowledged import Report, ReportFile, Reports
from tests.chaos.begun import Begun
from tests.chaos.checks import (
    AppliedStream,
    Folded,
    compare_with_plan,
    fold_log,
    lost_events,
    planned_events,
)
from tests.chaos.torn import append, strangers_records, tear_wal
from tests.chaos.trainings import SHAPE, by_stream, training
from tests.reference_fold.histories import history
from tests.reference_fold.writers import BEGAN, LoggedEvent
from tests.support.reading import installation_at, read_all

SEED, EMITTER = 7, 1


@pytest.fixture(scope="module")
def said() -> list[LoggedEvent]:
    return history(f"chaos-{SEED}-{EMITTER}-0", (SEED * 100 + EMITTER) * 10_000, SHAPE)


@pytest.fixture(scope="module")
def plan() -> dict[str, list[int]]:
    return planned_events(SEED, {EMITTER: 1})


def folded(home: Path, events: list[LoggedEvent]) -> Folded:
    log = LocalLog(installation_at(home).local_log_path)
    log.append(
        [Record(topic_of(event.subject, "cua."), event.subject, event.value) for event in events]
    )
    log.close()
    return fold_log(installation_at(home))


def applied(found: Folded) -> dict[str, list[int]]:
    streams = found.reference.streams.items()
    return {name: one.applied for name, one in streams if isinstance(one, AppliedStream)}


def test_what_was_planned_and_written_once_is_found_so(
    tmp_path: Path, said: list[LoggedEvent], plan: dict[str, list[int]]
) -> None:
    assert compare_with_plan(plan, applied(folded(tmp_path, said))) == (0, [])


def test_a_record_that_is_sent_again_is_no_second_application(
    tmp_path: Path, said: list[LoggedEvent], plan: dict[str, list[int]]
) -> None:
    found = folded(tmp_path, [*said, said[5], said[40]])
    assert compare_with_plan(plan, applied(found)) == (0, [])
    assert found.reference.count("duplicates") == 2


def test_an_event_missing_from_the_log_is_lost_and_leaves_its_stream_short(
    tmp_path: Path, said: list[LoggedEvent], plan: dict[str, list[int]]
) -> None:
    last = len(said) - 1
    subject = said[last].subject
    found = folded(tmp_path, said[:last])
    twice, sentences = compare_with_plan(plan, applied(found))
    assert twice == 0
    assert len(sentences) == 1
    assert sentences[0].startswith(subject)
    key = max((key for key in found.seen if key[0] == subject), key=lambda key: key[2])
    number = max(found.seen[key])
    assert lost_events({key: number}, found.seen) == []
    assert len(lost_events({key: number + 1}, found.seen)) == 1


def test_an_event_told_twice_by_two_writers_is_found(
    tmp_path: Path, said: list[LoggedEvent], plan: dict[str, list[int]]
) -> None:
    rollout = next(item for item in by_stream(training(SEED, EMITTER, 0)) if "rollout/" in item)
    payloads = by_stream(training(SEED, EMITTER, 0))[rollout]
    mine = [item for item in said if item.subject == rollout]
    turn = next(payload for payload in payloads if payload.TYPE == "cua.rollout.phase_entered")
    again = encode(
        turn,
        id=uuid7(BEGAN),
        source="//host/2",
        time=BEGAN,
        subject=rollout,
        epoch=2,
        sequence=1,
        training_id=None,
        continues=StreamPoint(1, payloads.index(turn) + 1),
    )
    cut = mine[: payloads.index(turn) + 1]
    found = applied(folded(tmp_path, [*cut, LoggedEvent(rollout, again)]))
    _, sentences = compare_with_plan({rollout: plan[rollout]}, found)
    assert len(sentences) == 1
    assert f"first difference at {payloads.index(turn) + 1}" in sentences[0]


def test_reports_are_read_on_and_a_line_cut_short_waits_for_its_rest(tmp_path: Path) -> None:
    reports = Reports(tmp_path)
    file = ReportFile(reports.path(2, 1))
    file.write(Report("//me", 4, 100, {}, begins=True))
    file.write(Report("//me", 4, 180, {"rollout/a": (2, 9)}))
    with reports.path(2, 1).open("ab") as other:
        other.write(b'["//me", 4, 300')
    assert reports.read() == 180
    assert reports.acknowledged == {("rollout/a", "//me", 2): 9}
    assert reports.trainings == {2: {4: 100}}
    with reports.path(2, 1).open("ab") as other:
        other.write(b", {}, false]\n")
    assert reports.read() == 300


def test_a_training_is_read_from_where_the_first_to_begin_the_one_before_found_the_log(
    tmp_path: Path,
) -> None:
    begun, place, other = Begun(tmp_path, 1), TopicPartition("t", 0), TopicPartition("t", 1)
    begun.note(4, {place: 17, other: 9})
    begun.note(4, {place: 30, other: 5})
    assert begun.bound(5) == {place: 17, other: 5}
    assert begun.bound(4) == {}
    assert not begun.is_begun(5)


@pytest.mark.parametrize("seed", range(5))
def test_half_a_commit_in_the_wal_takes_nothing_acknowledged_away(
    tmp_path: Path, seed: int, said: list[LoggedEvent]
) -> None:
    path = installation_at(tmp_path).local_log_path
    log = LocalLog(path)
    records = [Record("cua.rollouts", item.subject, item.value) for item in said[:300]]
    for start in range(0, 300, 20):
        log.append(records[start : start + 20])
    # Copied while it is open: closing would checkpoint the WAL.
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    for name in (path.name, f"{path.name}-wal"):
        (copy.parent / name).write_bytes(path.with_name(name).read_bytes())
    log.close()
    assert tear_wal(copy, Random(seed))
    with open_for_writing(copy) as connection:
        found = connection.execute("SELECT value FROM records ORDER BY position").fetchall()
    assert [value for (value,) in found] == [record.value for record in records]


def test_what_strangers_append_is_parked_or_fenced_and_leaves_the_streams_alone(
    tmp_path: Path, said: list[LoggedEvent], plan: dict[str, list[int]]
) -> None:
    installation = installation_at(tmp_path)
    whole = folded(tmp_path, said)
    known = {key: max(sequences) for key, sequences in whole.seen.items()}
    records = strangers_records(known, Random(1))
    assert append(installation, records)
    found = fold_log(installation)
    assert found.records == len(said) + len(records) == len(read_all(installation))
    assert compare_with_plan(plan, applied(found)) == (0, [])
    assert found.reference.count("parked") > 0
