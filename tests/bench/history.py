"""What starting, continuing, evaluating and looking cost as the log grows.

Run: `make bench-history`, or `python -m tests.bench.history --events 10000 10000000 --home FOLDER`.
`--home` keeps the logs there and uses them again: 10 million events are 11 GB. `--kafka` measures
on a real Kafka, which is filled anew: 1 million events take half a minute.

Each figure is the CPU of this process and the server, and the wall time, of the fastest of three
runs: after imports, with the file in the page cache as far as it fits. Flat means: the largest log
costs at most twice what the smallest does.
"""

import argparse
import io
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from consumers.database.connection import connected
from consumers.database.migrate import migrate
from consumers.log.local import LocalLogReader
from consumers.log.reader import LogReader
from consumers.projection.loop import ProjectionLoop
from consumers.status import read_status
from consumers.tail.event_filter import EventFilter
from consumers.tail.formats import json_line
from consumers.tail.session import TailRequest, TailSession
from producer.emit import Emitter
from producer.resume.recorded_training import read_recorded_training
from schemas import ids
from schemas.catalogue import stream
from schemas.installation import Installation
from tests.bench.long_log import SHAPE, TRAINING, make_long_log
from tests.bench.meter import Meter
from tests.bench.projecting import BenchServer, bench_server
from tests.reference_fold.histories import history
from tests.support.logs import write_local_log
from tests.support.reading import installation_at

RUNS = 3
STREAMS_PER_EVENT = 0.11
NUM_TRAININGS = 300
COPIES = (
    'INSERT INTO cua."{table}" SELECT copy.* FROM (SELECT t AS one FROM cua."{table}" t LIMIT 1) AS'
    " first, generate_series(1, %s) AS n,"
    " LATERAL json_populate_record(first.one, json_build_object({changes})) AS copy"
)
CHANGES = {
    "training": "'id', md5(n::text)::uuid, 'run_name', 'other-' || n",
    "rollout": "'id', md5(n::text)::uuid, 'rollout_id', 'rollout-' || n, 'env_index', n",
    "stream_position": "'stream', 'rollout/' || md5(n::text)::uuid",
}


class Cost(NamedTuple):
    """Of one thing that somebody waits for."""

    what: str
    cpu_s: float
    wall_s: float


def measure(installation: Installation, bench: BenchServer, num_events: int) -> list[Cost]:
    """Every figure at one length of the log, which is made when it is not there."""
    if not installation.local_log_path.exists():
        make_long_log(installation, num_events)
    # Once: a log made by an older version is indexed now.
    Emitter.open(installation).close()
    costs = _producing(installation)
    with closing(LocalLogReader(installation.local_log_path, topic_prefix="cua.")) as reader:
        costs += tailing(reader)
        url = tables_of(bench, reader, num_events)
        costs.append(cost("cua-project run --once", lambda: run_once(reader, url), bench))
        costs.append(cost("cua-project status", lambda: read_status(reader, url), bench))
    return costs


def _producing(installation: Installation) -> list[Cost]:
    own = (event.subject for event in history(TRAINING, 1, SHAPE))
    evaluation = next(subject for subject in own if subject.startswith("evaluation/"))
    costs = [cost("emitter start", lambda: Emitter.open(installation).close())]
    with Emitter.open(installation) as emitter:

        def read(name: str) -> None:
            folder = installation.runs_dir / name
            recorded = read_recorded_training(emitter, name, folder)
            assert recorded.stream.exists == (name == TRAINING)

        def read_back() -> None:
            assert emitter.log.read_back(evaluation, {}).exists

        costs.append(cost("cua-train run, a new name", lambda: read("never heard of")))
        costs.append(cost("cua-train run, resume", lambda: read(TRAINING)))
        costs.append(cost("cua-train evaluate, read back", read_back))
    return costs


def tailing(reader: LogReader) -> list[Cost]:
    training = ids.training_id(TRAINING)
    filters = {
        "": EventFilter(),
        f" --training {TRAINING}": EventFilter(training_id=training),
        " --stream training/ID": EventFilter(stream=stream("training", training)),
    }

    def tail(event_filter: EventFilter) -> None:
        request = TailRequest(None, 5, False, event_filter, lambda _: True)
        out = io.BytesIO()
        TailSession(reader, request, json_line, out, None).run()
        assert out.getvalue().count(b"\n") == 5

    return [
        cost(f"cua-project tail -n 5{flags}", partial(tail, event_filter))
        for flags, event_filter in filters.items()
    ]


def tables_of(bench: BenchServer, reader: LogReader, num_events: int) -> str:
    """Tables as large as those of the log, and at its end; their URL."""
    url = bench.server.url(bench.server.create())
    migrate(url)
    with tempfile.TemporaryDirectory() as home:
        small = installation_at(Path(home))
        write_local_log(small.local_log_path, history(TRAINING, 1, SHAPE))
        with closing(LocalLogReader(small.local_log_path, topic_prefix="cua.")) as projected:
            ProjectionLoop(projected, url).run_once()
    num_streams = int(num_events * STREAMS_PER_EVENT)
    numbers = {
        "training": NUM_TRAININGS,
        "rollout": num_streams // 2,
        "stream_position": num_streams,
    }
    ends = reader.end_offsets(reader.partitions())
    with connected(url, "bench") as connection, connection, connection.cursor() as cursor:
        for table, number in numbers.items():
            cursor.execute(COPIES.format(table=table, changes=CHANGES[table]), (number,))
        cursor.execute("UPDATE cua.projection SET log_id = %s", (reader.log_id,))
        cursor.execute("DELETE FROM cua.reader_position")
        cursor.executemany(
            "INSERT INTO cua.reader_position (topic, partition, next_offset, num_events,"
            " num_duplicates) VALUES (%s, %s, %s, 0, 0)",
            [(*tp, end) for tp, end in ends.items()],
        )
        cursor.execute("ANALYZE")
    assert read_status(reader, url).lag_events == 0
    return url


def run_once(reader: LogReader, url: str) -> None:
    assert ProjectionLoop(reader, url).run_once().events == 0


def cost(what: str, work: Callable[[], object], bench: BenchServer | None = None) -> Cost:
    work()
    meters = []
    for _ in range(RUNS):
        with Meter(None if bench is None else bench.postmaster) as meter:
            work()
        meters.append(meter)
    return Cost(
        what,
        min(meter.own_s + meter.server_s for meter in meters),
        min(meter.seconds for meter in meters),
    )


def run(lengths: list[int], home: Path) -> dict[int, list[Cost]]:
    """The costs at each length of the local log."""
    with bench_server(home / f"cluster-{os.getpid()}") as bench:
        return {
            length: measure(installation_at(home / f"log-{length}"), bench, length)
            for length in lengths
        }


def print_costs(costs: dict[int, list[Cost]]) -> None:
    """One line per thing, one pair of columns per length, and how the largest compares."""
    columns = "".join(f"{f'{length:,} events':>20}" for length in costs)
    lines = [f"{'CPU-ms / wall-ms with':36}{columns}"]
    for row in zip(*costs.values(), strict=True):
        figures = "".join(
            f"{item.cpu_s * 1e3:10.1f} /{item.wall_s * 1e3:8.1f}".replace("nan", "  -")
            for item in row
        )
        lines.append(f"{row[0].what:36}{figures}   x {row[-1].cpu_s / max(row[0].cpu_s, 1e-3):.1f}")
    sys.stdout.write("\n".join(lines) + "\n")


def main() -> None:
    """A table; --json: one object."""
    parser = argparse.ArgumentParser(prog="make bench-history", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--home", type=Path, help="where the logs are kept; none: nowhere")
    parser.add_argument(
        "--kafka", action="store_true", help="on a real Kafka, started for it, not the local log"
    )
    parser.add_argument("--json", action="store_true", dest="as_json")
    options = parser.parse_args()
    logging.basicConfig(format="%(message)s")
    logging.getLogger("tests").setLevel(logging.INFO)
    with tempfile.TemporaryDirectory(prefix="cua-bench-") as temporary:
        home = options.home or Path(temporary)
        if options.kafka:
            from tests.bench.kafka_history import run_on_kafka

            costs = run_on_kafka(options.events, home)
        else:
            costs = run(options.events, home)
    if options.as_json:
        report = {length: [item._asdict() for item in found] for length, found in costs.items()}
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        print_costs(costs)


if __name__ == "__main__":
    main()
