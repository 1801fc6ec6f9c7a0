"""An export of one training reads where that training is, and writes what reading all would."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from uuid import UUID

import pyarrow.parquet as pq

from consumers.export.export import export
from consumers.tail.trainings import unknown_training_message
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas.catalogue import topic_of
from schemas.ids import training_id
from schemas.local_index import BLOCK_OFFSETS
from tests.reference_fold.histories import LoggedEvent, Shape, history, interleaved
from tests.support.counting_reader import CountingReader
from tests.support.reading import installation_at

NAMES = ("anna", "bert", "carl")
SMALL = Shape(steps=1, groups=2, group_size=2, turns=2)
LARGE = Shape(steps=4, groups=4, group_size=4, turns=4)


def log_of(folder: Path, made: Sequence[LoggedEvent], *, is_indexed: bool) -> Path:
    path = installation_at(folder).local_log_path
    with closing(LocalLog(path, is_indexed=is_indexed)) as log:
        log.append(
            [Record(topic_of(item.subject, "cua."), item.subject, item.value) for item in made]
        )
    return path


def exported(folder: Path, out: Path, trainings: Sequence[UUID]) -> tuple[list[object], int]:
    """What is in the data set, and the rows that were read."""
    installation = installation_at(folder)
    reader = CountingReader(installation.local_log_path, topic_prefix="cua.")
    with closing(reader):
        export(reader, installation, out, trainings=trainings, with_images=False)
    tables = [pq.read_table(file).to_pylist() for file in sorted(out.rglob("*.parquet"))]
    return [row for table in tables for row in table], reader.num_records


def test_it_writes_the_same_from_a_log_with_and_without_an_index(tmp_path: Path) -> None:
    histories = [history(name, number, SMALL) for number, name in enumerate(NAMES)]
    made = list(interleaved(histories, Random(1)))
    # No event, in the training's own stream and in one of its rollouts.
    made[len(made) // 3] = made[len(made) // 3]._replace(value=b"garbage")
    made.append(LoggedEvent(f"training/{training_id('anna')}", b"\xff"))
    for number, names in enumerate((["anna"], ["anna", "carl"], ["nobody"], [])):
        found = []
        for is_indexed in (True, False):
            home = tmp_path / str(is_indexed)
            if not home.exists():
                log_of(home, made, is_indexed=is_indexed)
            chosen = [training_id(name) for name in names]
            found.append(exported(home, tmp_path / f"out-{number}-{is_indexed}", chosen)[0])
        assert found[0] == found[1]
        assert bool(found[0]) == (names != ["nobody"])


def test_a_rollout_ends_at_a_record_that_cannot_be_read_as_in_an_export_of_everything(
    tmp_path: Path,
) -> None:
    made = list(history("anna", 1, SMALL))
    rollout = next(item.subject for item in made if item.subject.startswith("rollout/"))
    _, second, *_ = [number for number, item in enumerate(made) if item.subject == rollout]
    made.insert(second, LoggedEvent(rollout, b"garbage"))
    log_of(tmp_path / "home", made, is_indexed=True)

    of_anna, _ = exported(tmp_path / "home", tmp_path / "anna", [training_id("anna")])
    of_all, _ = exported(tmp_path / "home", tmp_path / "all", [])

    assert of_anna == of_all != []


def test_what_it_reads_does_not_grow_with_other_trainings(tmp_path: Path) -> None:
    numbers = []
    for rounds in (2, 8):
        home = tmp_path / str(rounds)
        others = [
            event for number in range(rounds) for event in history(f"o-{number}", number, LARGE)
        ]
        log_of(home, [*history("anna", 1, SMALL), *others], is_indexed=True)
        rows, num_read = exported(home, tmp_path / f"out-{rounds}", [training_id("anna")])
        assert rows
        numbers.append(num_read)
    # The log is four times as long; the last block of each partition is fuller.
    assert 0 < numbers[1] < numbers[0] * 1.5, numbers


def test_a_mistyped_training_is_suggested_from_where_trainings_begin(tmp_path: Path) -> None:
    histories = [history(name, number, LARGE) for number, name in enumerate(NAMES)]
    made = list(interleaved(histories, Random(1)))
    numbers = []
    for is_indexed in (True, False):
        path = log_of(tmp_path / str(is_indexed), made, is_indexed=is_indexed)
        reader = CountingReader(path, topic_prefix="cua.")
        with closing(reader):
            message = unknown_training_message(reader, "cua.training", "brt")
            assert message == "there is no training 'brt' in the log. Did you mean 'bert'?"
            numbers.append(reader.num_records)
            assert unknown_training_message(reader, "cua.training", "carl") is None
    assert numbers[1] == sum(topic_of(item.subject, "cua.") == "cua.training" for item in made)
    assert 0 < numbers[0] <= len(NAMES) * BLOCK_OFFSETS < numbers[1]
