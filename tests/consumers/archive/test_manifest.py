"""An archive's manifest is as `archive` wrote it, or it is refused by name."""

import json
from pathlib import Path

import pytest

from consumers.archive.manifest import Manifest, read_manifest, write_manifest
from consumers.archive.reader import ArchivedLogReader
from consumers.archive.write import archive, check_archive
from consumers.errors import MismatchError
from tests.consumers.archive.test_archive import by_partition, opened, read_all
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import write_local_log


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"log_id": 1}', '{"format": 9, "log_id": "x"}', "\x00"],
)
def test_a_damaged_manifest_is_an_error_that_names_it(tmp_path: Path, log: Path, text: str) -> None:
    folder = tmp_path / "archive"
    with opened(log) as reader:
        archive(reader, folder)
    (folder / "manifest.json").write_text(text)

    with pytest.raises(MismatchError, match=r"manifest|format 9"):
        read_manifest(folder)


def test_an_archive_of_an_empty_log_goes_on_with_the_log(
    tmp_path: Path, events: list[LoggedEvent]
) -> None:
    path, folder = tmp_path / "log.sqlite3", tmp_path / "archive"
    with opened(path) as reader:
        assert archive(reader, folder).events == 0
    assert check_archive(folder).files == ()

    write_local_log(path, events)

    with opened(path) as reader:
        whole = read_all(reader)
        found = read_all(ArchivedLogReader(reader, folder))
        assert by_partition(found) == by_partition(whole)
        report = archive(reader, folder)
        assert (report.events, report.log_id) == (len(events), reader.log_id)
    assert check_archive(folder).log_id == report.log_id


def test_a_manifest_with_a_hole_between_two_files_is_damaged(
    tmp_path: Path, events: list[LoggedEvent]
) -> None:
    path, folder = tmp_path / "log.sqlite3", tmp_path / "archive"
    for part in (events[:60], events[60:120], events[120:]):
        write_local_log(path, part)
        with opened(path) as reader:
            archive(reader, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    files_by_partition: dict[tuple[str, int], list[dict[str, object]]] = {}
    for file in manifest["files"]:
        files_by_partition.setdefault((file["topic"], file["partition"]), []).append(file)
    middle = next(files[1] for files in files_by_partition.values() if len(files) == 3)
    manifest["files"].remove(middle)
    write_manifest(folder, Manifest.model_validate(manifest))

    with pytest.raises(MismatchError, match="begins at offset"):
        read_manifest(folder)
