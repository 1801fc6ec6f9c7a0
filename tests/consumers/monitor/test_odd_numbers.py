"""Numbers that an event may state and no page expects: each page is drawn all the same."""

import math

import pytest
from pydantic import JsonValue

from consumers.monitor.layout import duration, rounded
from consumers.monitor.measured import standard_error
from consumers.tables import Eval
from consumers.trackers.measurements import numbers


@pytest.mark.parametrize("seconds", [math.inf, math.nan])
def test_what_is_no_length_of_time_is_a_dash(seconds: float) -> None:
    assert duration(seconds) == "—"
    assert duration(1e18).startswith("277777777777777 h")


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.12345, "0.123"), (7, "7"), (math.inf, "inf"), (10**400, "1.00e+400")],
)
def test_an_integer_larger_than_any_float_is_written(value: float, written: str) -> None:
    assert rounded(value) == written


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
