"""The table at the end: what was done to the installation, and what was found."""

import json
from typing import Any

from tests.chaos.run import Outcome
from tests.chaos.schedule import KILLS, STOPS, Kind

SHOWN_SENTENCES = 20


def is_good(outcome: Outcome) -> bool:
    """Nothing lost, nothing twice, tables equal by both comparisons."""
    found = outcome.findings
    return (
        not found.sentences
        and outcome.verify == "equal"
        and found.tables_hash == found.reference_hash
    )


def rows(outcome: Outcome) -> list[tuple[str, str]]:
    """(what, figure) of one run."""
    found, hits = outcome.findings, outcome.hits
    kills, stops = (sum(hits[kind] for kind in kinds) for kinds in (KILLS, STOPS))
    return [
        ("kills -9", f"{kills:,}"),
        *[(f"  {kind.value}", f"{hits[kind]:,}") for kind in KILLS if hits[kind]],
        ("stopped and continued", f"{stops:,}"),
        ("take-overs", f"{hits[Kind.TAKE_OVER]:,} ({outcome.fenced_exits} noticed)"),
        ("outages of the log", f"{hits[Kind.OUTAGE]:,}"),
        ("full disks", f"{hits[Kind.FULL_DISK]:,}"),
        ("torn records of strangers", f"{hits[Kind.TORN_RECORDS]:,}"),
        ("records in the log", f"{found.records:,}"),
        ("events planned / applied", f"{found.planned:,} / {found.applied:,}"),
        ("events acknowledged", f"{found.acknowledged:,}"),
        ("acknowledged and lost", f"{found.lost:,}"),
        ("applied twice", f"{found.twice:,}"),
        (
            "duplicates, fenced, parked, gaps",
            f"{found.duplicates:,}, {found.fenced:,}, {found.parked:,}, {found.waiting:,}",
        ),
        ("tables", found.tables_hash[:16]),
        ("reference fold", found.reference_hash[:16]),
        ("cua-project verify", outcome.verify),
        ("seconds", f"{outcome.seconds:.0f}"),
    ]


def table(outcomes: dict[str, Outcome]) -> str:
    """A column per log."""
    columns = {name: dict(rows(outcome)) for name, outcome in outcomes.items()}
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    lines = [f"{'':<36}" + "".join(f"{name:>22}" for name in columns)]
    lines += [
        f"{name:<36}" + "".join(f"{column.get(name, '-'):>22}" for column in columns.values())
        for name in names
    ]
    return "\n".join(lines)


def problems(outcomes: dict[str, Outcome]) -> list[str]:
    """What is wrong, the first sentences of every run."""
    return [
        f"{name}: {sentence}"
        for name, outcome in outcomes.items()
        for sentence in outcome.findings.sentences[:SHOWN_SENTENCES]
    ]


def as_json(seed: int, outcomes: dict[str, Outcome]) -> str:
    """The same for a script."""
    report: dict[str, Any] = {"seed": seed}
    for name, outcome in outcomes.items():
        report[name] = {
            "hits": {kind.value: number for kind, number in outcome.hits.items()},
            **outcome.findings._asdict(),
            "verify": outcome.verify,
            "seconds": round(outcome.seconds, 1),
            "good": is_good(outcome),
        }
    return json.dumps(report)
