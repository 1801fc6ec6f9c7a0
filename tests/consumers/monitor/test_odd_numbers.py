"""Numbers that an event may state and no page expects: each page is drawn all the same."""

import math
import re
from collections.abc import Callable

import pytest
from pydantic import JsonValue
from sqlalchemy import text

from consumers.monitor.chart import Series, chart
from consumers.monitor.layout import duration, number, rounded, share
from consumers.monitor.measured import standard_error
from consumers.tables import Eval
from consumers.trackers.measurements import numbers
from tests.consumers.monitor.conftest import Monitor
from tests.support.sample_rows import named


@pytest.mark.parametrize("seconds", [math.inf, math.nan])
def test_what_is_no_length_of_time_is_a_dash(seconds: float) -> None:
    assert duration(seconds) == "—"
    assert duration(1e18).startswith("277777777777777 h")


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.12345, "0.123"), (7, "7"), (10**400, "1.00e+400")],
)
def test_an_integer_larger_than_any_float_is_written(value: float, written: str) -> None:
    assert rounded(value) == written


@pytest.mark.parametrize("write", [number, rounded, share])
def test_what_is_no_number_is_called_as_in_the_json(write: Callable[[float], str]) -> None:
    written = [write(value) for value in (math.nan, math.inf, -math.inf)]
    assert written == ["NaN", "Infinity", "-Infinity"]


def test_pages_call_it_so_too(monitor: Monitor) -> None:
    odd = {
        "training": ("learning_rate", "temperature"),
        "step": ("loss", "kl_divergence", "reward_mean", "learning_rate"),
        "eval": ("success_rate", "avg_reward"),
        "rollout": ("reward", "temperature"),
    }
    with monitor.engine.begin() as connection:
        for table, columns in odd.items():
            values = ", ".join(f"{column} = 'NaN'" for column in columns)
            connection.execute(text(f"UPDATE cua.{table} SET {values}"))
    for kind, row in (
        *(("training", "demo"), ("step", "step-1"), ("eval", "eval-2-again")),
        ("rollout", "rollout-1"),
    ):
        page = monitor.get(f"/{kind}/{named(row)}")
        assert page.code == 200
        assert "NaN" in page.text
        assert re.search(r"\b(nan|inf)\b", page.text) is None, kind


def test_a_curve_over_all_that_a_float_holds_has_numbers_for_places() -> None:
    drawing = chart("t", Series("s", [(0, -1.7e308), (1, 0.0), (2, 1.7e308)]))
    assert drawing is not None
    assert [f'cy="{y}"' in drawing.markup for y in (128.0, 69.0, 10.0)] == [True] * 3
    assert "nan" not in drawing.markup


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.25, 0.25), (10**400, 0.0), (-1, 0.0), (math.nan, 0.0), ("NaN", 0.0), (None, 0.0)],
)
def test_a_standard_error_is_a_share_or_none(value: object, expected: float) -> None:
    assert standard_error(Eval(metrics_json={"standard_error": value})) == expected


def test_trackers_get_the_numbers_that_a_float_holds() -> None:
    metrics: dict[str, JsonValue] = {
        "a": 10**400,
        "b": {"c": 1, "d": "x"},
        "e": 1e308,
        "f": math.nan,
        "g": True,
    }
    assert numbers(metrics) == {"b/c": 1.0, "e": 1e308, "g": 1.0}
