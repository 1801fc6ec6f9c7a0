"""The summary of a rebuild that has swapped the tables."""

import pytest

from consumers.commands.rebuild import print_report
from consumers.log.reader import TopicPartition
from consumers.rebuild.rebuild import RebuildReport
from tests.support.ports import free_port


def test_a_database_that_goes_away_after_the_swap_is_no_failure_of_the_rebuild(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = RebuildReport(
        events=1234,
        seconds=2.04,
        equal=True,
        swapped=True,
        tables={"training": 1, "turn": 1999},
        different=[],
        schema="cua",
        positions={TopicPartition("cua.rollouts", 0): 1234},
    )
    url = f"postgresql://me@127.0.0.1:{free_port()}/runs"
    print_report(report, url, check=False, as_json=False)
    assert capsys.readouterr().out == (
        "1,234 events, 2,000 rows in 2.0 s\n"
        "the new tables are live; they are equal to the replaced ones\n"
    )
