"""A file is read by a table: what is honoured, named or refused."""

from pathlib import Path
from typing import Any

import pytest

from producer.errors import UsageError
from producer.foreign_files.reading import (
    Noted,
    Reading,
    count,
    flattened,
    number,
    one_of,
    only,
    same,
    without_effect,
)
from producer.foreign_files.verl_trainer import resolved

TABLE = {
    "model.path": same("model_name"),
    "model.name": same("model_name"),
    "model.settings": same("settings"),
    "optim.style": one_of("schedule", {"flat": "constant", "auto": None}),
    "optim.lowest": same("lowest", number, when="cosine", default=0.5),
    "optim.cycles": only(1, instead="use 1"),
    "optim.dtype": same("dtype", lambda _: Noted("float32", "float32 is used")),
    **without_effect({"server.": {"there is none": "port host"}, "": {"one device": "ray."}}),
}


def read(fields: dict[str, Any], **unmet: str) -> Reading:
    reading = Reading()
    reading.read(flattened(fields, TABLE), TABLE, unmet or {"cosine": "no cosine"})
    return reading


def test_a_field_with_a_row_is_whole_and_any_other_section_is_its_fields() -> None:
    fields = {"model": {"settings": {"a": 1}, "new": {"b": 2}}, "empty": {}}
    assert flattened(fields, TABLE) == {"model.settings": {"a": 1}, "model.new.b": 2, "empty": {}}


def test_known_fields_are_ours_and_the_others_are_named_with_the_reason() -> None:
    reading = read(
        {
            "model": {"path": "m", "colour": "red"},
            "optim": {"style": "flat", "lowest": 0.1, "dtype": "float16"},
            "server": {"port": 1, "host": None},
            "ray": {"cpus": {"each": 2}},
        }
    )
    assert reading.given == {"model_name": "m", "schedule": "constant", "dtype": "float32"}
    assert reading.names["model_name"] == "model.path"
    assert reading.unknown == ["model.colour"]
    assert reading.without_effect == {
        "optim.lowest": "no cosine",
        "optim.dtype": "float32 is used",
        "server.port": "there is none",
        "ray.cpus.each": "one device",
    }
    assert reading.unknown_line() == ["unknown fields, ignored: model.colour"]


def test_a_default_is_taken_where_its_condition_holds() -> None:
    assert read({}).given == {}
    assert read({}, other="").given == {"lowest": 0.5}
    assert read({"optim": {"lowest": "1e-1"}}, other="").given == {"lowest": 0.1}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": 3}, "model: 3 cannot be honoured; use an object of fields"),
        ({"model": {"path": "a", "name": "b"}}, "model.name: contradicts model.path; give one of"),
        ({"optim": {"style": "x"}}, "optim.style: 'x' cannot be honoured; use one of flat, auto"),
        ({"optim": {"style": ["x"]}}, "optim.style: ['x'] cannot be honoured"),
        ({"optim": {"cycles": 2}}, "optim.cycles: 2 cannot be honoured: use 1"),
    ],
)
def test_what_cannot_be_honoured_is_a_problem_with_the_fields_name(
    fields: dict[str, Any], problem: str
) -> None:
    (refusal,) = read(fields).problems
    assert refusal.startswith(problem)


def test_two_names_of_one_field_may_agree_and_a_value_may_mean_nothing() -> None:
    reading = read({"model": {"path": "a", "name": "a"}, "optim": {"style": "auto", "cycles": 1}})
    assert (reading.given, reading.problems) == ({"model_name": "a"}, [])


def test_where_a_flag_wins_the_files_values_are_no_problem() -> None:
    fields = {"model": {"path": "a", "name": "b"}, "optim": {"style": "x", "cycles": 2}}
    reading = Reading(overridden=frozenset({"model_name", "schedule"}))
    reading.read(flattened(fields, TABLE), TABLE, {"cosine": "no cosine"})
    assert reading.problems == ["optim.cycles: 2 cannot be honoured: use 1"]


def test_no_problem_shows_a_key() -> None:
    fields = {"optim": {"style": {"api_key": "sk-K3Y"}, "cycles": [{"password": "sk-K3Y"}]}}
    problems = read(fields).problems
    assert len(problems) == 2
    assert "K3Y" not in str(problems)


@pytest.mark.parametrize(("value", "wanted"), [(3, 3), (3.0, 3), ("3", 3)])
def test_a_count_is_a_whole_number_above_0(value: object, wanted: int) -> None:
    assert count(value) == wanted


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "x", [1], None, float("nan"), float("inf")])
def test_what_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not an integer of at least 1"):
        count(value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"a": {"b": ["${q.r}"]}}, r"x.yaml: a.b\[0\]: there is no field 'q.r' to take"),
        ({"a": 1, "b": "${a.c}"}, "x.yaml: b: Error trying to access a.c"),
        ({"a": {"x": "${b}"}, "b": "${a}"}, "x.yaml: a.x: refers to itself"),
        ({"a": "${b"}, "x.yaml: a: no viable alternative"),
        ({"a": "${unknown:1}"}, "x.yaml: a: Unsupported interpolation type unknown"),
        ({"a": {None: 1}}, "x.yaml: a: Incompatible key type 'NoneType'"),
        ({"a": {(1, 2): 3}}, "x.yaml: Incompatible key type 'tuple'"),
    ],
)
def test_what_omegaconf_refuses_names_file_and_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolved(fields, Path("x.yaml"))


def test_deep_nesting_is_no_traceback() -> None:
    fields: dict[str, Any] = {}
    for _ in range(900):
        fields = {"a": fields}
    with pytest.raises(UsageError, match=r"x\.yaml: nested too deeply"):
        resolved(fields, Path("x.yaml"))


def test_no_file_takes_in_the_environment_which_would_be_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    with pytest.raises(UsageError) as refused:
        resolved({"a": {"b": "${oc.env:SECRET}"}}, Path("f.yaml"))
    assert "f.yaml: a.b: Unsupported interpolation type oc.env" in str(refused.value)
    assert "s3cret" not in str(refused.value)
