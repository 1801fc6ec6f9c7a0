"""When parked records are tried again: when the code may read or apply other events."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from consumers.fold.projectors.registry import catalogue_hash
from schemas.json_schemas import FOLDER, schema_path
from schemas.status import MACHINES


def test_what_parked_records_are_tried_again_for_is_whatever_an_event_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same, wider, older = (
        Path(shutil.copytree(FOLDER, tmp_path / name)) for name in ("same", "wider", "older")
    )
    assert catalogue_hash(same) == catalogue_hash()
    file = schema_path("cua.group.dropped", 1, wider)
    file.write_text(file.read_text().replace('"zero_variance"', '"zero_variance", "another"'))
    assert catalogue_hash(wider) != catalogue_hash()
    machine = MACHINES["group"]
    monkeypatch.setitem(MACHINES, "group", replace(machine, extra=frozenset({("failed", "x")})))
    assert catalogue_hash(older) != catalogue_hash(same)
