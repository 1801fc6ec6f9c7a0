"""What a trigger or a constraint of yours on our tables refuses is parked, and tried again."""

import pytest

from consumers.database.connection import connected
from consumers.projection.loop import ProjectionLoop
from consumers.projection.operators import Operator
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.reference import fold
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryReader
from tests.support.postgres import execute, one

pytestmark = pytest.mark.services

REFUSES = """
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.run_name = 'b' THEN RAISE EXCEPTION 'no training of the name %', NEW.run_name; END IF;
  RETURN NEW;
END $$;
"""
TRIGGERS = [
    "CREATE TRIGGER mine BEFORE INSERT ON cua.training FOR EACH ROW EXECUTE FUNCTION"
    " public.refuse()",
    "CREATE CONSTRAINT TRIGGER mine AFTER INSERT ON cua.training DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION public.refuse()",
]


@pytest.mark.parametrize("trigger", TRIGGERS, ids=["at the row", "at the commit"])
def test_a_row_that_a_trigger_refuses_parks_its_stream_alone(
    migrated_url: str, trigger: str
) -> None:
    log = memory_log(logged_events("a", "b"))
    execute(migrated_url, REFUSES + trigger)

    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    parked = one(
        migrated_url, "SELECT count(*) FROM cua.stream_position WHERE parked_since > '-infinity'"
    )
    reason = one(migrated_url, "SELECT reason FROM cua.unapplied_record WHERE kind <> 'behind'")
    assert parked == 1
    assert "no training of the name b" in str(reason)
    execute(migrated_url, "DROP TRIGGER mine ON cua.training")
    with connected(migrated_url, "test") as connection:
        assert Operator(connection, "cua").retry().still_parked == 0
    reference = fold((record.key, record.value) for record in log.records)
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []
