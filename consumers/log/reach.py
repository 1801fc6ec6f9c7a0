"""Whether a log has the next records to read, and what to do where it has not."""

from collections.abc import Mapping

from consumers.errors import CuaProjectError, MismatchError
from consumers.log.reader import TopicPartition

DELETED = (
    "records were deleted. With an archive that has them, `cua-project rebuild --archive` makes the"
    " tables"
)
"""For a partition that begins after the next record."""
CUT_OFF = (
    "this is another log, or it was truncated or restored from an older state;"
    " `cua-project rebuild --from-shorter-log` replaces the tables with what it has"
)
"""For a partition that ends before what was read."""


def out_of_reach(
    wanted: Mapping[TopicPartition, int],
    beginnings: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> CuaProjectError | None:
    """The error for the first partition that does not have its wanted offset; None: each has it.

    CuaProjectError for a record that was deleted, MismatchError for a partition that is too short.
    """
    for at, offset in sorted(wanted.items()):
        wants = f"the next record to read is {at.topic}/{at.partition} offset {offset}"
        if offset < beginnings[at]:
            message = f"{wants}, but the partition begins at {beginnings[at]}: {DELETED}"
            return CuaProjectError(message)
        if offset > ends[at]:
            return MismatchError(f"{wants}, but the partition ends at {ends[at]}: {CUT_OFF}")
    return None
