"""`make chaos`: kills, stops and take-overs on a real installation; exit 1 unless all holds.

Every process is real: emitters, `cua-project run` (two), PostgreSQL, Kafka. The seed is printed and
gives the same schedule again. What a run that failed leaves lies in its folder.
"""

import argparse
import os
import secrets
import shutil
import signal
import sys
import tempfile
import traceback
from functools import partial
from pathlib import Path

from tests.chaos import outage
from tests.chaos.at_once import at_once, terminate
from tests.chaos.disturbed_log import disturb, show
from tests.chaos.processes import ChaosError
from tests.chaos.report import as_json, is_good, problems, table
from tests.chaos.run import Options, Outcome
from tests.conftest import NEEDED_FOR_KAFKA

LOGS = {"local": ["local"], "kafka": ["kafka"], "both": ["local", "kafka"]}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=20, help="shared among the logs; 0: the outage only"
    )
    parser.add_argument("--events", type=int, default=100_000, help="shared among the logs")
    parser.add_argument("--seed", type=int, help="default: drawn and printed")
    parser.add_argument("--log", choices=LOGS, default="both")
    parser.add_argument(
        "--outage-seconds", type=int, default=20, help="of Kafka at 1,000 events/s; 0: leave it out"
    )
    parser.add_argument("--folder", type=Path, help="default: a temporary one")
    parser.add_argument(
        "--no-mount", action="store_true", help="fill no small disk; limit files in size instead"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder of a good run too")
    parser.add_argument("--json", action="store_true", dest="as_json")
    return parser.parse_args()


def possible(logs: list[str]) -> list[str]:
    """Without Kafka where it cannot be started, except in CI: there that is a failure."""
    missing = [what for tool, what in NEEDED_FOR_KAFKA.items() if shutil.which(tool) is None]
    if not missing or "kafka" not in logs or os.environ.get("CI"):
        return logs
    show(f"Kafka is left out: install {' and '.join(missing)}")
    return [log for log in logs if log != "kafka"]


def main() -> int:
    """0: everything held."""
    options = parse()
    signal.signal(signal.SIGTERM, terminate)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    folder = options.folder or Path(tempfile.mkdtemp(prefix="cua-chaos-"))
    logs = possible(LOGS[options.log])
    show(f"seed {seed}, folder {folder}")
    outcomes: dict[str, Outcome] = {}
    measured: outage.Measured | None = None
    try:
        calls = {}
        for number, log in enumerate(logs if options.kills else []):
            (folder / log).mkdir(parents=True)
            one = Options(
                seed,
                options.kills // len(logs) + (number < options.kills % len(logs)),
                options.events // len(logs),
                with_kafka=log == "kafka",
                folder=folder / log,
                mount=not options.no_mount,
            )
            calls[log] = partial(disturb, log, one)
        outcomes = at_once(calls)
        if options.outage_seconds and "kafka" in logs:
            (folder / "outage").mkdir(parents=True)
            measured = outage.measure(folder / "outage", options.outage_seconds, show)
    except KeyboardInterrupt:
        show(f"interrupted; what was done lies in {folder}")
        return 130
    except Exception as error:  # noqa: BLE001  # whatever it is, the seed and the folder are told
        if not isinstance(error, ChaosError):
            show(traceback.format_exc())
        show(f"FAILED: {error}")
        show(f"replay: make chaos CHAOS='--seed {seed} ...'; everything is in {folder}")
        return 1
    good = all(is_good(outcome) for outcome in outcomes.values())
    good = good and (measured is None or measured.is_good)
    if options.as_json:
        sys.stdout.write(as_json(seed, outcomes) + "\n")
    else:
        sys.stdout.write(table(outcomes) + "\n")
        sys.stdout.write((measured.sentence() + "\n") if measured is not None else "")
        sys.stdout.write(f"seed {seed}: {'everything held' if good else 'FAILED'}\n")
    for line in problems(outcomes):
        show(line)
    if good and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        show(f"everything is in {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
