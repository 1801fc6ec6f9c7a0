"""`rebuild --run` and `--until` read a stream in two partitions as the tables did, or refuse."""

import pytest

from consumers.errors import MismatchError
from consumers.log.reader import TopicPartition
from consumers.rebuild.rebuild import build_into
from tests.consumers.rebuild.test_split_streams import (
    claimed_twice,
    read_by_partition,
)
from tests.reference_fold.comparison import database_tables
from tests.support.memory_log import MemoryLog
from tests.support.postgres import execute, one
from tests.support.rebuilding import project

pytestmark = pytest.mark.services


UNDECIDED = {
    "nothing was read": "",
    "one partition was read": "",
    "another log was read": "UPDATE cua.projection SET log_id = 'another'",
    "older code kept no order": "UPDATE cua.stream_position SET partitions = NULL",
    "too many runs": "UPDATE cua.stream_position SET partitions ="
    ' \'[["cua.rollouts", 0, null], ["cua.rollouts", 1, null]]\'',
    "two partitions go on": "UPDATE cua.stream_position SET partitions ="
    ' \'[["cua.rollouts", 0, 3], ["cua.rollouts", 1, 2]]\'',
}


@pytest.mark.parametrize("why", UNDECIDED)
def test_a_copy_is_refused_where_the_tables_do_not_say_in_which_order_to_read(
    migrated_url: str, why: str
) -> None:
    log, stream = claimed_twice()
    read = MemoryLog(log.log_id, num_partitions=2)
    if why != "nothing was read":
        read.records = log.records[:3] if why == "one partition was read" else log.records
        project(read, migrated_url)
    execute(migrated_url, UNDECIDED[why] or "SELECT 1")

    named = rf"{stream} \(cua.rollouts/0, cua.rollouts/1\).* `cua-project run --once`"
    with pytest.raises(MismatchError, match=named):
        build_into(read_by_partition(log, 0), migrated_url, "copy")
    assert one(migrated_url, "SELECT to_regnamespace('copy') IS NULL")


def test_a_copy_up_to_positions_follows_the_order_of_the_tables_and_what_they_have_not_read(
    migrated_url: str,
) -> None:
    log, stream = claimed_twice()
    ends = {TopicPartition("cua.rollouts", 0): 4, TopicPartition("cua.rollouts", 1): 3}
    read = MemoryLog(log.log_id, num_partitions=2)
    read.records = log.records[:5]
    project(read, migrated_url)
    sequence = "SELECT epoch, sequence FROM {}.stream_position WHERE stream = '" + stream + "'"

    # The claim and the sixth record are in two partitions, of which the tables have read neither.
    with pytest.raises(MismatchError, match="do not say in which order"):
        build_into(read_by_partition(log, 0), migrated_url, "copy", until=ends)
    # Of one partition they come after what was read.
    ends[TopicPartition("cua.rollouts", 0)] = 3
    build_into(read_by_partition(log, 0), migrated_url, "early", until=ends)
    assert one(migrated_url, sequence.format("early")) == (1, 6)
    project(log, migrated_url)
    ends[TopicPartition("cua.rollouts", 0)] = 4
    build_into(read_by_partition(log, 0), migrated_url, "copy", until=ends)
    assert one(migrated_url, sequence.format("copy")) == one(migrated_url, sequence.format("cua"))
    assert database_tables(migrated_url, "copy") == database_tables(migrated_url)
