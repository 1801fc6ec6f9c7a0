"""Rows written by our projector, by Debezium's JDBC sink, by quixstreams' and by COPY.

`make bench-peers`. One Kafka, one PostgreSQL that syncs every commit, 12 partitions in every topic;
the sinks take turns, in an order that rotates with the rounds, and every turn has a new database
with our tables and their indexes. Our projector reads the events of recorded trainings and writes
all tables (`cua-project run --once`). The others get the very rows that it wrote, ready-made, of
the tables that hold at least 1 % of all rows, a topic for each. After every turn the number and
the digest of the rows are compared.

Counted are CPU-seconds of the sink's processes and of PostgreSQL, not Kafka's. Ours counts from the
start of its process to its end, quixstreams from the start of its processes to its last write,
Debezium from the creation of its connectors in a running JVM to its last write. The warm half: from
when about half of the rows were there.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from schemas.catalogue import NUM_PARTITIONS
from tests.bench.peer_setup import (
    CONNECT_VERSION,
    DEBEZIUM_VERSION,
    QUIXSTREAMS_VERSION,
    PeerError,
    debezium_jars,
    kafka_is_there,
    quixstreams_python,
)
from tests.bench.peer_turns import OURS, SINKS, prepared
from tests.bench.sink_meter import Spent, Stretch

Figure = Callable[[Stretch], float]


class Sinks(Protocol):
    """Takes turns."""

    def take(self, sink: str, number: int) -> Spent:
        """A sink's turn in a round. PeerError."""


class Round(NamedTuple):
    """One turn of every sink."""

    load: float
    """Of the machine before it, a minute's average."""
    spent: dict[str, Spent]


class Report(NamedTuple):
    """A run."""

    events: int
    rows: int
    """Of all tables."""
    tables: dict[str, int]
    """Rows of the tables that the peers write."""
    rounds: list[Round]


def measure(num_events: int, num_rounds: int, folder: Path) -> Report:
    """PeerError if a sink fails or its tables differ from ours."""
    with prepared(num_events, folder) as turns:
        rounds = [take_round(turns, number) for number in range(num_rounds)]
        return Report(
            turns.num_events,
            turns.num_rows,
            {table.name: table.rows for table in turns.tables},
            rounds,
        )


def take_round(turns: Sinks, number: int) -> Round:
    """A turn of every sink; with the rounds another one is first."""
    load = os.getloadavg()[0]
    first = number % len(SINKS)
    spent = {}
    for sink in (*SINKS[first:], *SINKS[:first]):
        spent[sink] = turns.take(sink, number)
        whole = spent[sink].whole
        sys.stderr.write(
            f"round {number + 1}, {sink}: {whole.rows:,} rows in {whole.seconds:.1f} s,"
            f" {whole.cpu_s_per_1000:.4f} CPU-s per 1,000, of others"
            f" {whole.other_s / whole.seconds:.2f} CPU-s a second\n"
        )
    return Round(load, spent)


def _rate(stretch: Stretch) -> float:
    return stretch.rows_per_s


def _cpu(stretch: Stretch) -> float:
    return stretch.cpu_s_per_1000


def figures(rounds: Sequence[Round], sink: str, figure: Figure, *, warm: bool) -> list[float]:
    """Of each round; empty if a round was too short to have a warm half."""
    found = [one.spent[sink].warm if warm else one.spent[sink].whole for one in rounds]
    return [figure(stretch) for stretch in found if stretch] if all(found) else []


def ratios(rounds: Sequence[Round], sink: str, figure: Figure, *, warm: bool) -> list[float]:
    """Ours to this sink's, round by round; plain COPY has no warm half and is compared whole."""
    ours = figures(rounds, OURS, figure, warm=warm)
    theirs = figures(rounds, sink, figure, warm=warm)
    if not (ours and theirs):
        return []
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def _spread(numbers: Sequence[float], digits: int) -> str:
    if not numbers:
        return "-"
    middle, least, most = statistics.median(numbers), min(numbers), max(numbers)
    return f"{middle:,.{digits}f} ({least:,.{digits}f}-{most:,.{digits}f})"


def table(report: Report) -> str:
    """Medians, least and most."""
    rounds, width = report.rounds, 26
    lines = [
        f"{report.events:,} events, {report.rows:,} rows; ready-made for the peers"
        f" {sum(report.tables.values()):,} of {len(report.tables)} tables; {NUM_PARTITIONS}"
        f" partitions; {len(rounds)} rounds, median (least-most)",
        f"quixstreams {QUIXSTREAMS_VERSION}, Debezium {DEBEZIUM_VERSION}, Kafka Connect"
        f" {CONNECT_VERSION}",
    ]
    columns = (
        ("rows/s", _rate, 0, False),
        ("CPU-s per 1,000 rows", _cpu, 4, False),
        ("rows/s, warm half", _rate, 0, True),
        ("CPU-s per 1,000, warm", _cpu, 4, True),
    )
    titles = "".join(f"{title:>{width}}" for title, *_ in columns)
    lines += ["", f"{'':13}{titles}"]
    for sink in SINKS:
        cells = [
            _spread(figures(rounds, sink, figure, warm=warm), digits)
            for _, figure, digits, warm in columns
        ]
        lines.append(f"{sink:13}" + "".join(f"{cell:>{width}}" for cell in cells))
    lines += ["", f"{f'{OURS} /':13}{titles}"]
    for sink in SINKS:
        if sink != OURS:
            cells = [
                _spread(ratios(rounds, sink, figure, warm=warm), 2)
                for _, figure, _, warm in columns
            ]
            lines.append(f"{sink:13}" + "".join(f"{cell:>{width}}" for cell in cells))
    loads = ", ".join(f"{one.load:.1f}" for one in rounds)
    lines += ["", f"load before each round: {loads}"]
    return "\n".join(lines)


def as_json(report: Report) -> dict[str, object]:
    """For `--json`."""
    return {
        "events": report.events,
        "rows": report.rows,
        "tables": report.tables,
        "partitions": NUM_PARTITIONS,
        "versions": {
            "debezium": DEBEZIUM_VERSION,
            "connect": CONNECT_VERSION,
            "quixstreams": QUIXSTREAMS_VERSION,
        },
        "rounds": [
            {
                "load": one.load,
                "sinks": {
                    sink: {
                        name: None if stretch is None else _described(stretch)
                        for name, stretch in spent._asdict().items()
                    }
                    for sink, spent in one.spent.items()
                },
            }
            for one in report.rounds
        ],
        "ratios": {
            sink: {
                f"{name}{'_warm' if warm else ''}": ratios(report.rounds, sink, figure, warm=warm)
                for name, figure in (("rows_per_s", _rate), ("cpu_s_per_1000", _cpu))
                for warm in (False, True)
            }
            for sink in SINKS
            if sink != OURS
        },
    }


def _described(stretch: Stretch) -> dict[str, float]:
    return stretch._asdict() | {
        "rows_per_s": stretch.rows_per_s,
        "cpu_s_per_1000": stretch.cpu_s_per_1000,
    }


def positive(text: str) -> int:
    """For argparse, which reports the ValueError."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main() -> int:
    """Print the table; --json: one object."""
    parser = argparse.ArgumentParser(
        prog="make bench-peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--events", type=positive, default=250_000, help="recorded events (at least so many)"
    )
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--json", action="store_true", dest="as_json")
    options = parser.parse_args()
    try:
        for install in (kafka_is_there, debezium_jars, quixstreams_python):
            install()
        with tempfile.TemporaryDirectory(prefix="cua-bench-peers-") as name:
            report = measure(options.events, options.rounds, Path(name))
    except PeerError as error:
        sys.stderr.write(f"make bench-peers: {error}\n")
        return 1
    text = json.dumps(as_json(report)) if options.as_json else table(report)
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
