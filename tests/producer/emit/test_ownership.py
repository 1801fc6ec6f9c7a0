from pathlib import Path
from uuid import uuid4

import pytest

from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, OwnershipMonitor, check_owner, claim
from producer.log.stream_history import StreamHistory
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentRequested,
    EnvironmentTerminated,
)
from schemas.event import Fact, StreamPoint
from schemas.ids import EPOCH_START
from tests.producer.emit.reading import installation_at

REQUESTED = EnvironmentRequested(env_type="a", box_type="b", config={})


def test_a_claim_on_a_new_stream_is_read_back_as_ours(tmp_path: Path) -> None:
    owner = uuid4()
    subject = f"environment/{owner}"
    with Emitter.open(installation_at(tmp_path)) as emitter:
        history = claim(emitter, Fact(subject, REQUESTED), StreamHistory(subject), {})
        assert history.position.point == StreamPoint(1, 1)
        assert history.position.source == emitter.source
        assert history.statuses == {("environment", owner): "pending"}
        assert [event.payload for event in history.events] == [REQUESTED]


def test_of_two_who_claim_the_same_epoch_the_first_in_the_log_wins_and_the_other_learns_who(
    tmp_path: Path,
) -> None:
    subject = f"environment/{uuid4()}"
    with (
        Emitter.open(installation_at(tmp_path)) as first,
        Emitter.open(installation_at(tmp_path)) as second,
    ):
        empty = StreamHistory(subject)
        claim(first, Fact(subject, REQUESTED), empty, {})
        with pytest.raises(ClaimLostError) as lost:
            claim(second, Fact(subject, REQUESTED), empty, {})
        assert (lost.value.source, lost.value.epoch) == (first.source, 1)
        assert first.source in str(lost.value)
        check_owner(first, first.log.read_back(subject, {}))


def test_a_resumed_stream_is_taken_over_and_the_old_writer_finds_out(tmp_path: Path) -> None:
    subject = f"environment/{uuid4()}"
    with (
        Emitter.open(installation_at(tmp_path)) as old,
        Emitter.open(installation_at(tmp_path)) as new,
    ):
        claim(old, Fact(subject, REQUESTED), StreamHistory(subject), {})
        old.stream(subject).emit(EnvironmentCreationStarted()).wait(10)
        history = claim(
            new, Fact(subject, EnvironmentCreationStarted()), new.log.read_back(subject, {}), {}
        )
        assert history.position.point == StreamPoint(2, 1)
        assert history.events[-1].envelope.continues == StreamPoint(1, 2)
        old.stream(subject).emit(EnvironmentTerminated(terminated_at=EPOCH_START)).wait(10)
        after = old.log.read_back(subject, {})
        assert (after.position.point, after.num_fenced) == (StreamPoint(2, 1), 1)
        assert not any(isinstance(event.payload, EnvironmentTerminated) for event in after.events)
        with pytest.raises(ClaimLostError, match=new.source):
            check_owner(old, after)


def test_a_claim_that_the_old_writer_overtook_is_lost_and_the_next_one_under_a_fresh_name_wins(
    tmp_path: Path,
) -> None:
    subject = f"environment/{uuid4()}"
    with (
        Emitter.open(installation_at(tmp_path)) as old,
        Emitter.open(installation_at(tmp_path)) as new,
    ):
        claim(old, Fact(subject, REQUESTED), StreamHistory(subject), {})
        stale = new.log.read_back(subject, {})
        old.stream(subject).emit(EnvironmentCreationStarted()).wait(10)
        with pytest.raises(ClaimLostError, match=old.source):
            claim(new, Fact(subject, EnvironmentCreationStarted()), stale, {})
        refused = new.source
        assert new.renew_source(subject) != refused
        history = claim(
            new, Fact(subject, EnvironmentCreationStarted()), new.log.read_back(subject, {}), {}
        )
        assert history.position.point == StreamPoint(2, 1)
        assert history.position.source == new.source
        assert history.num_fenced == 1


def test_a_fresh_name_is_refused_once_other_streams_were_written_under_the_old_one(
    tmp_path: Path,
) -> None:
    with Emitter.open(installation_at(tmp_path)) as emitter:
        emitter.stream(f"environment/{uuid4()}").emit(REQUESTED)
        with pytest.raises(ValueError, match="nothing said but the claim"):
            emitter.renew_source(f"environment/{uuid4()}")


def test_a_watch_sees_a_takeover_and_nothing_else(tmp_path: Path) -> None:
    subject = f"environment/{uuid4()}"
    with (
        Emitter.open(installation_at(tmp_path)) as old,
        Emitter.open(installation_at(tmp_path)) as new,
    ):
        before = old.log.lower_bounds()
        watch = OwnershipMonitor(
            old, claim(old, Fact(subject, REQUESTED), StreamHistory(subject), {}), before
        )
        watch.check()
        old.stream(subject).emit(EnvironmentCreationStarted()).wait(10)
        watch.check()
        stale = new.log.read_back(subject, {})
        old.stream(subject).emit(EnvironmentCreationStarted()).wait(10)
        with pytest.raises(ClaimLostError):
            claim(new, Fact(subject, EnvironmentCreationStarted()), stale, {})
        watch.check()
        new.renew_source(subject)
        claim(new, Fact(subject, EnvironmentCreationStarted()), new.log.read_back(subject, {}), {})
        with pytest.raises(ClaimLostError, match=new.source):
            watch.check()
