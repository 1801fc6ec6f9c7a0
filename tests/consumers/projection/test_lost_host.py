"""A host that is lost: a network that swallows every packet, without a FIN or an RST.

The projector's host, seen by the database and by the next projector; the database's, seen by the
projector.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url

from consumers.database.migrate import migrate
from consumers.log.local import LocalLogReader
from consumers.status import read_status
from schemas.installation import read_installation
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent
from tests.reference_fold.reference import fold
from tests.support.eventually import eventually
from tests.support.logs import logged_events, write_local_log
from tests.support.lost_host import NETWORK, LostHost, lost_host
from tests.support.postgres import PostgresServer, execute, running_postgres
from tests.support.projectors import (
    SLOW_TRIGGER,
    holder,
    no_longer_sleeping,
    projector,
    sleeping,
)

pytestmark = [pytest.mark.services, pytest.mark.slow]
REPLACED_WITHIN_S = 20.0
"""As docs/operating.md promises, of a projector that is there: its start is not counted."""
NOTICED_WITHIN_S = 40.0
"""TCP gives a silent connection up after 25 s (`connection.SETTINGS`)."""


@pytest.fixture(scope="module")
def far_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server that other hosts reach."""
    folder = Path(tmp_path_factory.mktemp("far"))
    with running_postgres(folder, {"listen_addresses": "*"}, allowed=NETWORK) as server:
        yield server


@pytest.fixture
def url(far_postgres: PostgresServer) -> Iterator[str]:
    name = far_postgres.create()
    migrate(far_postgres.url(name))
    yield far_postgres.url(name)
    far_postgres.drop(name)


@pytest.fixture
def other_host() -> Iterator[LostHost]:
    with lost_host() as host:
        yield host


@pytest.fixture
def events() -> list[LoggedEvent]:
    return logged_events("a", "b", "c")


def seen_from(url: str, host: LostHost) -> str:
    return make_url(url).set(host=host.address_here).render_as_string(hide_password=False)


def equals_reference(url: str, events: list[LoggedEvent]) -> bool:
    reference = fold((event.subject, event.value) for event in events)
    return differences(plain_tables(reference.tables), database_tables(url)) == []


def is_current(url: str, log: Path) -> bool:
    with closing(LocalLogReader(log, topic_prefix="cua.")) as reader:
        return read_status(reader, url).lag_events == 0


@pytest.fixture
def log() -> Path:
    return read_installation(os.environ).local_log_path


def test_a_projector_whose_host_is_lost_is_replaced_and_waits_politely_when_it_is_back(
    url: str, log: Path, events: list[LoggedEvent], other_host: LostHost, tmp_path: Path
) -> None:
    write_local_log(log, events[:300])
    execute(url, SLOW_TRIGGER.format(table="cua.reader_position"))
    far_url = seen_from(url, other_host)
    with projector(far_url, tmp_path / "far.log", launcher=other_host.command()) as far:
        # In a transaction that has locked rows.
        eventually(lambda: sleeping(url, "cua-project run"))
        other_host.unplug()
        no_longer_sleeping(url, "cua-project run")
        with projector(url, tmp_path / "near.log") as near:
            write_local_log(log, events[300:400])
            eventually(near.has_started)
            eventually(lambda: is_current(url, log), REPLACED_WITHIN_S)
            assert holder(url) == str(near.pid)
            assert near.says("took the lease over from process")

            other_host.plug_in()
            write_local_log(log, events[400:])
            eventually(lambda: far.says("another projector is running"))
            eventually(lambda: is_current(url, log))
            assert holder(url) == str(near.pid)
    assert equals_reference(url, events)


def test_a_projector_names_the_database_host_that_it_lost_and_goes_on_when_it_is_back(
    url: str, log: Path, events: list[LoggedEvent], other_host: LostHost, tmp_path: Path
) -> None:
    write_local_log(log, events[:300])
    execute(url, SLOW_TRIGGER.format(table="cua.reader_position"))
    far_url = seen_from(url, other_host)
    with projector(far_url, tmp_path / "far.log", launcher=other_host.command()) as far:
        eventually(lambda: sleeping(url, "cua-project run"))
        other_host.unplug()
        no_longer_sleeping(url, "cua-project run")
        eventually(lambda: far.says(other_host.address_here), NOTICED_WITHIN_S)
        assert far.says("retrying until it works")

        other_host.plug_in()
        write_local_log(log, events[300:])
        eventually(lambda: is_current(url, log))
        assert far.says("works again after")
    assert equals_reference(url, events)


def test_a_projector_that_lost_its_database_host_stops_when_it_is_told_to(
    url: str, log: Path, events: list[LoggedEvent], other_host: LostHost, tmp_path: Path
) -> None:
    write_local_log(log, events[:300])
    far_url = seen_from(url, other_host)
    with projector(far_url, tmp_path / "far.log", launcher=other_host.command()) as far:
        eventually(lambda: is_current(url, log))
        other_host.unplug()
        far.signal(signal.SIGTERM)
        eventually(far.has_ended, NOTICED_WITHIN_S)
