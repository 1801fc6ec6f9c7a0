"""Streams that the shipper cannot send further: the target takes no record of that size.

The record and what follows it in its stream stay in the spool. Other streams go on.
"""

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from producer.log.blob_uploads import NoLog
from producer.log.spool import Spool, SpooledRecords
from producer.log.writer import LogWriter, Record, RecordRefusedError

logger = logging.getLogger(__name__)

RECORDS_AT_ONCE = 100


class HeldStreams:
    """Holds streams back and tries to send them again. For the shipper's thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._warned: set[tuple[str, int]] = set()

    def hold(
        self,
        spool: Spool,
        target: LogWriter | NoLog,
        spooled: SpooledRecords,
        refused: RecordRefusedError,
    ) -> SpooledRecords:
        """Hold the stream of the refused record; what was sent of these records before it."""
        index = refused.index
        self._hold(spool, target, spooled.records[index].key, spooled.positions[index], refused)
        sent = spooled.records[:index], spooled.positions[:index]
        return SpooledRecords(*sent, next_position=spooled.positions[index])

    def try_again(
        self,
        spool: Spool,
        target: LogWriter | NoLog,
        end: int,
        before: Callable[[list[Record]], None] | None,
    ) -> None:
        """Send held streams up to the cursor `end`, as far as the target takes them now."""
        for key, position in spool.held(target.log_id).items():
            held = spool.read_held(key, position, end)
            while chunk := _chunk(held):
                records = [record for _, record in chunk]
                if before is not None:
                    before(records)
                try:
                    target.append(records)
                except RecordRefusedError as refused:
                    self._hold(spool, target, key, chunk[refused.index][0], refused)
                    break
            else:
                spool.release(target.log_id, key)
                logger.warning("%s is sent again", key)

    def _hold(
        self,
        spool: Spool,
        target: LogWriter | NoLog,
        key: str,
        position: int,
        refused: RecordRefusedError,
    ) -> None:
        spool.hold(target.log_id, key, position)
        if (key, position) in self._warned:
            return
        self._warned.add((key, position))
        at = spool.coordinates(position)
        logger.warning(
            "%s: %s. This record (%s/%d, offset %d of the local log) and what follows it in its"
            " stream stay in %s; other streams go on",
            *(key, refused, at.topic, at.partition, at.offset, self._path),
        )


def _chunk(held: Iterator[tuple[int, Record]]) -> list[tuple[int, Record]]:
    return list(islice(held, RECORDS_AT_ONCE))
