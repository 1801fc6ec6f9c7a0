"""Runs every measurement in one process, so that the ratios compare like with like.

`make bench`.
"""

import argparse
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from schemas.installation import read_installation
from tests.bench.emitting import measure_emit, recorded
from tests.bench.history import print_costs
from tests.bench.history import run as run_history
from tests.bench.projecting import (
    ProjectionCost,
    bench_server,
    fill_log,
    measure_copy,
    measure_projection,
    measure_rebuild,
)
from tests.support.kafka import KafkaService

HISTORY_EVENTS = [10_000, 100_000]
"""`make bench-history` measures longer logs."""


def main() -> None:
    """Print four tables."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--events", type=int, default=60_000, help="recorded events to project (at least so many)"
    )
    parser.add_argument(
        "--no-kafka", action="store_true", help="leave the measurement from Kafka out"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cua-bench-") as name:
        folder = Path(name)
        _print_emit(folder / "emit")
        said = recorded(options.events)
        size = sum(len(value) for _, value in said) / len(said)
        print(f"\na recorded run: {len(said):,} events of {size:.0f} bytes on average")
        _print_projection(folder, said, with_kafka=not options.no_kafka)
        print()
        print_costs(run_history(HISTORY_EVENTS, folder / "history"))


def _print_emit(home: Path) -> None:
    print(f"{'emit':38} {'bytes':>7} {'CPU-µs':>8} {'paced at':>9} {'p50 µs':>8} {'p99 µs':>8}")
    for cost in measure_emit(home):
        print(
            f"{cost.what:38} {cost.bytes_each:7,} {cost.cpu_us:8.1f} {cost.per_second:7,}/s"
            f" {cost.p50_us:8.1f} {cost.p99_us:8.1f}"
        )


def _print_projection(folder: Path, said: list[tuple[str, bytes]], *, with_kafka: bool) -> None:
    installation = read_installation({"CUA_HOME": str(folder / "home")})
    fill_log(installation, said)
    costs: list[ProjectionCost] = []
    with bench_server(folder / "cluster") as bench:
        local, url = measure_projection(bench, installation, "projection from the local log")
        costs.append(local)
        if with_kafka and shutil.which("java") and shutil.which("mvn"):
            with KafkaService() as kafka:
                remote = replace(installation, kafka_bootstrap_servers=kafka.bootstrap_servers)
                fill_log(remote, said)
                costs.append(measure_projection(bench, remote, "projection from Kafka")[0])
        else:
            print("(no measurement from Kafka: it needs java and mvn)")
        costs.append(measure_rebuild(bench, installation, url, local.rows))
        copy = measure_copy(bench, url, local.events)
    columns = (
        f"{'seconds':>8} {'events/s':>9} {'rows/s':>9} {'Python':>8} {'PostgreSQL':>11}"
        f" {'together':>9} {'x COPY':>7}"
    )
    print(f"{'':31} {columns}\n{'':31} {'':8} {'':9} {'':9} {'CPU-µs per event':^30} {'CPU':>7}")
    base = copy.meter.own_s + copy.meter.server_s
    for cost in [*costs, copy]:
        meter = cost.meter
        own, server = (seconds / cost.events * 1e6 for seconds in (meter.own_s, meter.server_s))
        print(
            f"{cost.what:31} {meter.seconds:8.2f} {cost.events / meter.seconds:9,.0f}"
            f" {cost.rows / meter.seconds:9,.0f} {own:8.1f} {server:11.1f} {own + server:9.1f}"
            f" {(meter.own_s + meter.server_s) / base:7.1f}"
        )


if __name__ == "__main__":
    main()
