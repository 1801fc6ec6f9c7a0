"""A short `make chaos`, so that the long one still works; and its comparison finds one value."""

from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from consumers.log.open import open_reader
from consumers.projection.loop import ProjectionLoop
from tests.chaos.checks import compare_tables, fold_log
from tests.chaos.report import is_good, problems, table
from tests.chaos.run import Options, run
from tests.chaos.schedule import KILLS
from tests.support.logs import logged_events, write_local_log
from tests.support.reading import installation_at


@pytest.mark.services
@pytest.mark.slow
def test_a_disturbed_installation_loses_nothing_and_applies_nothing_twice(tmp_path: Path) -> None:
    said: list[str] = []
    options = Options(seed=1, kills=2, events=1_500, with_kafka=False, folder=tmp_path, mount=False)
    outcome = run(options, said.append)
    assert problems({"local": outcome}) == [], "\n".join(said)
    assert is_good(outcome), "\n".join([*said, table({"local": outcome})])
    assert sum(outcome.hits[kind] for kind in KILLS) == 2
    assert outcome.findings.acknowledged >= 1_500
    assert outcome.findings.applied == outcome.findings.planned


def test_a_single_changed_value_makes_the_hashes_differ(tmp_path: Path, migrated_url: str) -> None:
    installation = installation_at(tmp_path)
    write_local_log(installation.local_log_path, logged_events("run"))
    with closing(open_reader(installation)) as reader:
        ProjectionLoop(reader, migrated_url).run_once()

    ours, theirs, lines = compare_tables(migrated_url, fold_log(installation).reference)
    assert (ours == theirs, lines) == (True, [])

    with (
        closing(psycopg2.connect(migrated_url.replace("+psycopg2", ""))) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "UPDATE cua.turn SET reward = 7 WHERE id = (SELECT id FROM cua.turn LIMIT 1)"
        )
    ours, theirs, lines = compare_tables(migrated_url, fold_log(installation).reference)
    assert ours != theirs
    assert len(lines) == 1
