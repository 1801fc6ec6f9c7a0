"""The summary of a rebuild."""

import json
from collections.abc import Sequence

import pytest

from consumers.commands.rebuild import print_report
from consumers.log.reader import TopicPartition
from consumers.rebuild.rebuild import RebuildReport
from tests.support.ports import free_port


def report(
    changed: dict[str, int], missing: Sequence[str] = (), *, was_empty: bool = False
) -> RebuildReport:
    return RebuildReport(
        events=1234,
        seconds=2.04,
        equal=not changed and not missing,
        changed=sum(changed.values()),
        changed_rows=changed,
        tables={"training": 1, "turn": 1999},
        different=list(changed),
        missing=list(missing),
        was_empty=was_empty,
        schema="cua",
        positions={TopicPartition("cua.rollouts", 0): 1234},
    )


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        ({}, "no row differed: the tables are equal to the log"),
        ({"turn": 1}, "1 row differed and was corrected (turn 1)"),
        ({"step": 2, "turn": 1010}, "1,012 rows differed and were corrected (step 2, turn 1,010)"),
    ],
)
def test_the_outcome_is_stated_also_when_the_database_has_gone_away_since(
    capsys: pytest.CaptureFixture[str], changed: dict[str, int], outcome: str
) -> None:
    url = f"postgresql://me@127.0.0.1:{free_port()}/runs"
    print_report(report(changed), url, check=False, as_json=False)
    assert capsys.readouterr().out == f"1,234 events, 2,000 rows in 2.0 s\n{outcome}\n"


def test_missing_parts_and_empty_tables_are_not_taken_for_equal_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = f"postgresql://me@127.0.0.1:{free_port()}/runs"
    lost = "the index ix_turn of cua.turn is missing"
    print_report(report({}, [lost]), url, check=False, as_json=False)
    print_report(report({}, [lost], was_empty=True), url, check=False, as_json=False)
    summary = "1,234 events, 2,000 rows in 2.0 s"
    assert capsys.readouterr().out.splitlines() == [
        *(
            summary,
            f"found and repaired: {lost}",
            "no row differed: the tables are equal to the log",
        ),
        *(summary, f"found and repaired: {lost}"),
        "the tables were empty; 2,000 rows of the log are in them now",
    ]


def test_a_script_gets_names_and_numbers_by_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(report({"turn": 3}), "", check=False, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["equal"], printed["changed"], printed["different"]) == (False, 3, ["turn"])
    assert printed["tables"] == {"training": 1, "turn": 1999}
