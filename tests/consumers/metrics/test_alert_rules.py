"""docs/prometheus: every metric named there is exported, and a server that is away is an alert."""

import json
import operator
import os
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple
from uuid import UUID

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from consumers.metrics.pages import MetricsPages
from consumers.metrics.probe import Probe
from consumers.projection.activity import Activity
from schemas.installation import read_installation
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.command import Call, call
from tests.support.logs import logged_events, write_local_log
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.postgres import PostgresServer

__all__ = ["call"]

FOLDER = ROOT / "docs" / "prometheus"
NAME = re.compile(r"\bcua_\w+")
EXPRESSION = re.compile(r"(?:(max|min|sum)\((\w+)(\{\S+\})?\)|(up)\{\S+\}) (==|>) (\d+)")
FOLDS: dict[str, Callable[[list[float]], float]] = {"max": max, "min": min, "sum": sum}
COMPARED = {"==": operator.eq, ">": operator.gt}
SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)


class Sample(NamedTuple):
    """One value."""

    name: str
    labels: Mapping[str, str]
    value: float


class Exported(NamedTuple):
    """What /metrics answers."""

    families: set[str]
    """Names as Prometheus has them, those without a value too."""
    samples: list[Sample]


class Scraped:
    """The pages of a projector, in this process; its clock is set by hand."""

    def __init__(self, url: str) -> None:
        self.now_s = 0.0
        self.activity = Activity(lambda: self.now_s)
        self.probe = Probe(read_installation(os.environ), lambda: url)
        self._pages = MetricsPages(self.probe, self.activity)

    def exported(self) -> Exported:
        text = self._pages.answer("/metrics").content.decode()
        families = list(text_string_to_metric_families(text))
        names = {family.name + "_total" * (family.type == "counter") for family in families}
        samples = [Sample(s.name, s.labels, s.value) for family in families for s in family.samples]
        return Exported(names, samples)

    def firing(self) -> set[str]:
        """Alerts that would fire once this has lasted."""
        samples = self.exported().samples
        return {str(rule["alert"]) for rule in rules() if fires(str(rule["expr"]), samples)}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    return list(group["rules"])


def expressions_of_the_dashboard() -> list[str]:
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def fires(expression: str, samples: Sequence[Sample]) -> bool:
    """A comparison with nothing is nothing, as in Prometheus."""
    found = EXPRESSION.fullmatch(expression)
    assert found is not None, f"this test does not evaluate {expression!r}"
    fold, name, labels, is_up, compared, limit = found.groups()
    if is_up:
        return False
    wanted = dict(re.findall(r'(\w+)="(\w+)"', labels or ""))
    values = [
        sample.value
        for sample in samples
        if sample.name == name and wanted.items() <= sample.labels.items()
    ]
    return bool(values) and bool(COMPARED[compared](FOLDS[fold](values), float(limit)))


@pytest.mark.services
def test_every_metric_of_rules_and_dashboard_is_exported(migrated_url: str) -> None:
    exported = Scraped(migrated_url).exported().families
    for expression in [str(rule["expr"]) for rule in rules()] + expressions_of_the_dashboard():
        named = set(NAME.findall(expression))
        assert named or expression.startswith("up{")
        assert named <= exported, expression


def test_records_are_gone_once_more_than_one_scrape_has_said_so() -> None:
    (rule,) = [rule for rule in rules() if rule["alert"] == "CuaRecordsGone"]
    assert rule["for"] == "2m"


@pytest.mark.services
def test_with_postgresql_away_an_alert_fires_and_counts_are_silent(
    postgres: PostgresServer, migrated_template: str
) -> None:
    name = postgres.create(migrated_template)
    scraped = Scraped(postgres.url(name))
    scraped.activity.worked(0, has_committed=False)
    assert scraped.firing() == set()
    postgres.drop(name)
    assert scraped.firing() == {"CuaDatabaseDown"}
    scraped.now_s = 31
    assert scraped.firing() == {"CuaDatabaseDown", "CuaProjectorUnhealthy", "CuaNotProjecting"}


@pytest.mark.services
def test_with_kafka_away_an_alert_fires(migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{free_port()}")
    scraped = Scraped(migrated_url)
    scraped.activity.worked(0, has_committed=False)
    assert scraped.firing() == {"CuaLogDown"}
    # A trainer of this home ended meanwhile: its events are an hour old and wait.
    path = read_installation(os.environ).local_log_path
    write_local_log(path, logged_events("a", shape=SMALL))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE records SET appended_at = appended_at - 3600000000")
    assert scraped.firing() == {"CuaLogDown", "CuaSpoolWaits"}


@pytest.mark.services
def test_a_parked_record_is_an_alert(call: Call) -> None:
    broken = LoggedEvent(f"environment/{UUID(int=1)}", b"{}")
    path = read_installation(os.environ).local_log_path
    write_local_log(path, [*logged_events("a", shape=SMALL), broken])
    assert call("run", "--once").code == 0
    scraped = Scraped(os.environ["DATABASE_URL"])
    scraped.activity.worked(0, has_committed=False)
    assert scraped.firing() == {"CuaParkedRecords"}
