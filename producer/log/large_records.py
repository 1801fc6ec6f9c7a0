"""Sends records so that one which is too large is known before anything after it is sent.

Opens no connection: `send` and the errors that it raises are given.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from producer.log.writer import Coordinates, Record, RecordRefusedError
from schemas.kafka_log import MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, largest_value, raise_limit


def send_in_order(
    records: Sequence[Record],
    *,
    send: Callable[[Sequence[Record]], list[Coordinates]],
    is_large: Callable[[Record], bool],
    too_large: tuple[type[Exception], ...],
    restart: Callable[[], None],
    reason: Callable[[Record], str],
) -> list[Coordinates]:
    """Send all, in order; records that may be refused (`is_large`) are sent alone.

    `restart`: called after one of the errors `too_large`, before anything more is sent. Raises
    RecordRefusedError with `reason` for the first record that is refused: those before it are sent,
    of those after it none; and what else `send` raises.
    """
    sent: list[Coordinates] = []
    for is_alone, numbered in groupby(enumerate(records), lambda pair: is_large(pair[1])):
        part = list(numbered)
        if not is_alone:
            try:
                sent += send([record for _, record in part])
                continue
            except too_large:
                # The limit is lower than known: one at a time tells which record it is.
                restart()
        for index, record in part:
            try:
                sent += send([record])
            except too_large as error:
                restart()
                raise RecordRefusedError(index, reason(record)) from error
    return sent


def refusal(record: Record, servers: str) -> str:
    """Why this record was refused, and what an operator does about it."""
    if len(record.value) > largest_value(MAX_BATCH_BYTES):
        return (
            f"a record of {len(record.value):,} bytes is larger than any reader takes, which is"
            f" {largest_value(MAX_BATCH_BYTES):,} bytes; it stays in the spool"
        )
    needed = MAX_MESSAGE_BYTES
    while largest_value(needed) < len(record.value):
        needed *= 2
    return (
        f"a record of {len(record.value):,} bytes is larger than topic {record.topic} takes;"
        f" {raise_limit(servers, record.topic, needed)}"
    )
