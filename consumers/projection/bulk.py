"""Operators' decisions about many parked records at once."""

from functools import partial
from typing import NamedTuple

from consumers.projection.held_filter import HeldFilter
from consumers.projection.held_records import (
    PART_RECORDS,
    HeldCount,
    count_held,
    drop_all,
    held_page,
    streams_of,
)
from consumers.projection.redrive import Operator, Redriven
from consumers.tables import SCHEMA

BEHIND = "behind"
"""The kind of records that only wait for the one before them."""


class Dropped(NamedTuple):
    """What a bulk drop did."""

    records: int
    """Given up, each by a decision of its own."""
    streams: int
    events: int
    """Applied, that were behind them."""
    still_parked: int


def count(operator: Operator, wanted: HeldFilter) -> HeldCount:
    """How many parked records the operator means."""
    with operator.connection, operator.connection.cursor() as cursor:
        return count_held(cursor, SCHEMA, wanted._replace(held_as="parked"))


def culprits(wanted: HeldFilter) -> str:
    """SQL that leaves out what is only behind a parked record, unless that kind is asked for."""
    return "true" if wanted.kind == BEHIND else f"kind <> '{BEHIND}'"


def count_culprits(operator: Operator, wanted: HeldFilter) -> HeldCount:
    """How many records `drop_matching` begins with."""
    with operator.connection, operator.connection.cursor() as cursor:
        parked = wanted._replace(held_as="parked")
        return count_held(cursor, SCHEMA, parked, culprits(wanted))


def redrive_matching(operator: Operator, wanted: HeldFilter) -> Redriven:
    """Try again the streams that have a parked record which is meant."""
    with operator.connection, operator.connection.cursor() as cursor:
        streams = streams_of(cursor, SCHEMA, wanted._replace(held_as="parked"))
    nameless = operator.redrive_nameless() if None in streams else 0
    named = [name for name in streams if name is not None]
    result = operator.redrive(named) if named else Redriven(0, 0, 0)
    return result._replace(events=result.events + nameless)


def drop_matching(
    operator: Operator, wanted: HeldFilter, *, rest: bool, made_by: str, reason: str | None
) -> Dropped:
    """Give up every parked record that is meant, and redrive its stream, until none is left.

    A stream's next record may be parked for the same reason, and is given up too. `rest`: the
    streams from the record on. Interrupted, it can be started again.
    """
    parked = wanted._replace(held_as="parked")
    dropped, events = set[str](), 0
    streams: set[str] = set()
    while True:
        with operator.connection, operator.connection.cursor() as cursor:
            page, _ = held_page(
                cursor, SCHEMA, parked, None, PART_RECORDS, condition=culprits(wanted)
            )
        found = [item for item in page if item.id not in dropped]
        if not found:
            break
        operator.exclusively(
            partial(
                drop_all, schema=SCHEMA, records=found, rest=rest, made_by=made_by, reason=reason
            )
        )
        dropped |= {item.id for item in found}
        names = sorted({item.stream for item in found if item.stream is not None})
        streams |= set(names)
        if names:
            events += operator.redrive(names).events
        if any(item.stream is None for item in found):
            events += operator.redrive_nameless()
    with operator.connection, operator.connection.cursor() as cursor:
        left = count_held(cursor, SCHEMA, HeldFilter("parked"), streams=sorted(streams)).records
    return Dropped(len(dropped), len(streams), events, left)
