from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.errors import UsageError
from consumers.tail.offsets import END, START, Bound, OffsetSpec, parse_duration, parse_offset

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def at(time: datetime) -> Bound:
    return Bound("time", time=time)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("start", OffsetSpec(START, None)),
        ("end", OffsetSpec(END, None)),
        ("17", OffsetSpec(Bound("at", 17), None)),
        ("+5", OffsetSpec(Bound("after_start", 5), None)),
        ("-5", OffsetSpec(Bound("before_end", 5), None)),
        ("3:7", OffsetSpec(Bound("at", 3), Bound("at", 7))),
        ("3:", OffsetSpec(Bound("at", 3), None)),
        (":7", OffsetSpec(START, Bound("at", 7))),
        (":end", OffsetSpec(START, END)),
        ("-9:-2", OffsetSpec(Bound("before_end", 9), Bound("before_end", 2))),
        ("10m", OffsetSpec(at(NOW - timedelta(minutes=10)), None)),
        ("1h30m", OffsetSpec(at(NOW - timedelta(hours=1, minutes=30)), None)),
        ("@2026-11-21", OffsetSpec(at(datetime(2026, 11, 21, tzinfo=UTC)), None)),
        (
            "@2026-11-21T03:14:15Z",
            OffsetSpec(at(datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)), None),
        ),
        (
            "@2026-11-21T03:14:15.5Z",
            OffsetSpec(at(datetime(2026, 11, 21, 3, 14, 15, 500_000, tzinfo=UTC)), None),
        ),
        (
            "@2026-11-21T05:14:15+02:00",
            OffsetSpec(at(datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)), None),
        ),
        ("@1795230855", OffsetSpec(at(datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)), None)),
        (
            "@1795230855926",
            OffsetSpec(at(datetime(2026, 11, 21, 3, 14, 15, 926_000, tzinfo=UTC)), None),
        ),
        ("@-10m", OffsetSpec(at(NOW - timedelta(minutes=10)), None)),
        ("@-2h:-1h", OffsetSpec(at(NOW - timedelta(hours=2)), at(NOW - timedelta(hours=1)))),
        ("@-2h:30m", OffsetSpec(at(NOW - timedelta(hours=2)), at(NOW - timedelta(minutes=90)))),
        ("@-2h:", OffsetSpec(at(NOW - timedelta(hours=2)), None)),
        ("@-2h:end", OffsetSpec(at(NOW - timedelta(hours=2)), END)),
        ("@:2026-11-21", OffsetSpec(START, at(datetime(2026, 11, 21, tzinfo=UTC)))),
        (
            "@2026-11-21T03:14:15Z:2026-11-21T04:00:00Z",
            OffsetSpec(
                at(datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)),
                at(datetime(2026, 11, 21, 4, tzinfo=UTC)),
            ),
        ),
        (
            "@2026-11-21T03:14:15Z:1m",
            OffsetSpec(
                *(at(datetime(2026, 11, 21, 3, minute, 15, tzinfo=UTC)) for minute in (14, 15))
            ),
        ),
    ],
)
def test_the_grammar_is_rpks(text: str, spec: OffsetSpec) -> None:
    assert parse_offset(text, NOW) == spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "x",
        "1:2:3",
        "3:x",
        "--5",
        "+",
        "@12",
        "@2026-13-01",
        "10 m",
        "@x:y",
        "5.5",
        "٣",
        "@start",
    ],
)
def test_what_is_no_offset_is_a_usage_error_that_shows_what_is_one(text: str) -> None:
    with pytest.raises(UsageError, match="is not an offset; use start, end, N"):
        parse_offset(text, NOW)


@given(st.text(alphabet="0123456789:+-@mshdTZ.endstar ", max_size=30))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    try:
        spec = parse_offset(text, NOW)
    except UsageError:
        return
    assert spec.start.kind


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_range_of_offsets_comes_back_as_it_was_written(first: int, length: int) -> None:
    assert parse_offset(f"{first}:{first + length}", NOW) == OffsetSpec(
        Bound("at", first), Bound("at", first + length)
    )


@given(
    st.integers(0, 400),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 59),
    st.integers(0, 999),
)
def test_a_duration_is_the_sum_of_its_parts(
    days: int, hours: int, minutes: int, seconds: int, milliseconds: int
) -> None:
    expected = timedelta(
        days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
    )
    assert parse_duration(f"{days}d{hours}h{minutes}m{seconds}s{milliseconds}ms") == expected


def test_a_range_that_ends_before_it_begins_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--offset '5:2' ends before it begins"):
        parse_offset("5:2", NOW)
    assert parse_offset("5:5", NOW) == OffsetSpec(Bound("at", 5), Bound("at", 5))
