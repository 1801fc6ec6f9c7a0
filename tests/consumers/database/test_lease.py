"""Taking the projector's lease over."""

import pytest

from consumers.database.connection import connected
from consumers.database.lease import LeaseTakenError, ProjectorLease
from tests.support.postgres import execute

pytestmark = pytest.mark.services


def test_a_holder_that_dies_while_its_lease_is_taken_is_named_as_the_former_one(
    migrated_url: str,
) -> None:
    with (
        connected(migrated_url, "former") as former,
        connected(migrated_url, "next") as successor,
    ):
        former.autocommit = successor.autocommit = True
        ProjectorLease(former, "far/1/a", lambda: 0.0).acquire()

        def expiring_clock() -> float:
            """Is read between the look at the holder and the taking of its lease."""
            execute(migrated_url, "UPDATE cua_ops.lease SET renewed_at = '2026-01-01'")
            return 0.0

        with pytest.raises(LeaseTakenError, match="process 1 on far"):
            ProjectorLease(successor, "near/2/b", lambda: 0.0).acquire()
        taken_from = ProjectorLease(successor, "near/2/b", expiring_clock).acquire()
    assert taken_from is not None
    assert taken_from.holder == "far/1/a"
