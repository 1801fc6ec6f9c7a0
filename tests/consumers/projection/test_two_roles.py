"""Projectors of two roles: one may not end the other's sessions, and says what would let it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import make_url

from consumers.log.local import LocalLogReader
from consumers.projection import lock_watch
from consumers.status import read_status
from schemas.installation import read_installation
from tests.support.eventually import eventually
from tests.support.logs import logged_events, write_local_log
from tests.support.postgres import execute
from tests.support.projectors import (
    SLOW_TRIGGER,
    no_longer_sleeping,
    projector,
    sleeping,
)

pytestmark = [pytest.mark.services, pytest.mark.slow]
_numbers = count()


@pytest.fixture
def roles(migrated_url: str) -> Iterator[tuple[str, str]]:
    """Two roles that may do everything with the tables, and nothing with each other."""
    number = next(_numbers)
    names = (f"alice_{number}", f"bob_{number}")
    for name in names:
        execute(
            migrated_url,
            f"CREATE ROLE {name} LOGIN PASSWORD 'secret';"
            f"GRANT ALL ON SCHEMA cua, cua_ops TO {name};"
            f"GRANT ALL ON ALL TABLES IN SCHEMA cua, cua_ops TO {name}",
        )
    yield names
    for name in names:
        execute(migrated_url, f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


def url_of(url: str, role: str) -> str:
    of_role = make_url(url).set(username=role, password="secret")  # noqa: S106  # this test's own
    return of_role.render_as_string(hide_password=False)


def test_a_stopped_projector_of_a_role_that_may_not_be_ended_is_named_with_what_to_grant(
    migrated_url: str, roles: tuple[str, str], tmp_path: Path
) -> None:
    alice, bob = roles
    events = logged_events("a", "b")
    log = read_installation(os.environ).local_log_path
    write_local_log(log, events[:200])
    # In a COPY, whose session PostgreSQL never ends by itself.
    execute(migrated_url, SLOW_TRIGGER.format(table="cua.rollout"))
    execute(migrated_url, f"GRANT ALL ON public.slow TO {alice}, {bob}")
    with (
        closing(LocalLogReader(log, topic_prefix="cua.")) as reader,
        projector(url_of(migrated_url, alice), tmp_path / "alice.log") as first,
    ):
        eventually(lambda: sleeping(migrated_url, "cua-project run"))
        first.signal(signal.SIGSTOP)
        no_longer_sleeping(migrated_url, "cua-project run")
        with projector(url_of(migrated_url, bob), tmp_path / "bob.log") as second:
            eventually(lambda: second.says("cannot end session"))
            eventually(lambda: second.says(f"GRANT {alice} TO {bob}"))
            eventually(lambda: second.says("if its process is stopped or its host gone"))
            assert read_status(reader, migrated_url).lag_events > 0
            assert not second.says("ended 2 of its 2")

            began = time.monotonic()
            execute(migrated_url, f"GRANT {alice} TO {bob}")
            eventually(lambda: read_status(reader, migrated_url).lag_events == 0)
            assert time.monotonic() - began < 2 * lock_watch.STOPPED_AFTER_S
