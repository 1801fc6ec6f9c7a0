import json
from pathlib import Path
from uuid import uuid4

import pytest

from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, check_owner, claim
from producer.log.stream_history import StreamHistory
from producer.log.writer import Record
from schemas.environment import EnvironmentTerminated
from schemas.event import StreamPoint
from schemas.ids import EPOCH_START
from tests.support.emitting import CREATING, REQUESTED, new_subject
from tests.support.reading import installation_at


def test_a_claim_on_a_new_stream_is_read_back_as_ours(tmp_path: Path) -> None:
    owner, training = uuid4(), uuid4()
    subject = f"environment/{owner}"
    with Emitter.open(installation_at(tmp_path)) as emitter:
        stream, _ = claim(emitter, REQUESTED, StreamHistory(subject), {}, training_id=training)
        assert emitter.stream(subject) is stream
        assert stream.status(("environment", owner)) == "pending"
        history = emitter.log.read_back(subject, {})
        assert history.position.point == StreamPoint(1, 1)
        assert history.position.source == emitter.source
        assert history.statuses == {("environment", owner): "pending"}
        (event,) = history.events
        assert (event.payload, event.envelope.training_id) == (REQUESTED, training)


def test_of_two_claims_of_one_epoch_the_first_in_the_log_wins_and_the_other_learns_whose(
    tmp_path: Path,
) -> None:
    subject = new_subject()
    with (
        Emitter.open(installation_at(tmp_path)) as first,
        Emitter.open(installation_at(tmp_path)) as second,
    ):
        claim(first, REQUESTED, StreamHistory(subject), {})
        with pytest.raises(ClaimLostError) as lost:
            claim(second, REQUESTED, StreamHistory(subject), {})
        assert (lost.value.source, lost.value.epoch) == (first.source, 1)
        assert first.source in str(lost.value)
        check_owner(first, first.log.read_back(subject, {}))
        with pytest.raises(ValueError, match="was closed"):
            second.stream(subject)


def test_a_resumed_stream_is_taken_over_and_the_old_writer_finds_out(tmp_path: Path) -> None:
    subject = new_subject()
    with (
        Emitter.open(installation_at(tmp_path)) as old,
        Emitter.open(installation_at(tmp_path)) as new,
    ):
        replaced, _ = claim(old, REQUESTED, StreamHistory(subject), {})
        replaced.emit(CREATING).wait(10)
        claim(new, CREATING, new.log.read_back(subject, {}), {})
        history = new.log.read_back(subject, {})
        assert history.position.point == StreamPoint(2, 1)
        assert history.events[-1].envelope.continues == StreamPoint(1, 2)
        replaced.emit(EnvironmentTerminated(terminated_at=EPOCH_START)).wait(10)
        after = old.log.read_back(subject, {})
        assert after == history  # the replaced writer's event is fenced
        assert not any(isinstance(event.payload, EnvironmentTerminated) for event in after.events)
        with pytest.raises(ClaimLostError, match=new.source):
            check_owner(old, after)


def test_a_claim_overtaken_by_the_old_writer_is_lost_and_another_emitter_wins_the_next_one(
    tmp_path: Path,
) -> None:
    subject = new_subject()
    with (
        Emitter.open(installation_at(tmp_path)) as old,
        Emitter.open(installation_at(tmp_path)) as loser,
        Emitter.open(installation_at(tmp_path)) as new,
    ):
        current, _ = claim(old, REQUESTED, StreamHistory(subject), {})
        stale = loser.log.read_back(subject, {})
        current.emit(CREATING).wait(10)
        with pytest.raises(ClaimLostError, match=old.source):
            claim(loser, CREATING, stale, {})
        # Its source is refused in epoch 2 for ever, so the same emitter cannot claim that again.
        with pytest.raises(ValueError, match="read it again"):
            claim(loser, CREATING, loser.log.read_back(subject, {}), {})
        claim(new, CREATING, new.log.read_back(subject, {}), {})
        history = new.log.read_back(subject, {})
        assert history.position.point == StreamPoint(2, 1)
        assert history.position.source == new.source
        assert history.position.refused == {(2, loser.source)}


def test_a_monitor_sees_a_takeover_and_nothing_else(tmp_path: Path) -> None:
    subject = new_subject()
    with (
        Emitter.open(installation_at(tmp_path)) as old,
        Emitter.open(installation_at(tmp_path)) as loser,
        Emitter.open(installation_at(tmp_path)) as new,
    ):
        current, monitor = claim(old, REQUESTED, StreamHistory(subject), {})
        monitor.check()
        current.emit(CREATING).wait(10)
        monitor.check()
        stale = loser.log.read_back(subject, {})
        current.emit(CREATING).wait(10)
        with pytest.raises(ClaimLostError):
            claim(loser, CREATING, stale, {})
        monitor.check()
        claim(new, CREATING, new.log.read_back(subject, {}), {})
        with pytest.raises(ClaimLostError, match=new.source):
            monitor.check()


def test_a_monitor_sees_a_takeover_behind_records_that_cannot_be_read(tmp_path: Path) -> None:
    """A stranger's, or a later version's: what follows is read all the same."""
    subject = new_subject()
    with Emitter.open(installation_at(tmp_path)) as emitter:
        log = emitter.log.local
        _, monitor = claim(emitter, REQUESTED, StreamHistory(subject), {})
        ((_, value),) = log.read_streams("cua.rollouts", [subject], {})
        own = json.loads(value)
        claimed = own | {"source": "//new", "epoch": 2, "sequence": 1}

        def append(content: bytes) -> None:
            log.append([Record("cua.rollouts", subject, content)])

        append(b"garbage")
        append(json.dumps(claimed | {"subject": new_subject()}).encode())
        dreamt = {"type": "cua.environment.dreamt", "dataschema": "urn:cua:dreamt:1"}
        append(json.dumps(own | dreamt | {"sequence": 2}).encode())
        monitor.check()

        append(json.dumps(claimed | dreamt | {"continues": "1/2"}).encode())
        with pytest.raises(ClaimLostError, match="//new"):
            monitor.check()
