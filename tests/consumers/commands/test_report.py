"""`cua-project report`: where it writes, and what it refuses."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from tests.support.forked_command import run_command
from tests.support.sample_rows import write_sample

pytestmark = pytest.mark.services
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def call(migrated_url: str) -> Call:
    engine = create_engine(migrated_url)
    with Session(engine) as session:
        write_sample(session)
    engine.dispose()
    environ = {**os.environ, "DATABASE_URL": migrated_url}
    return lambda *arguments: run_command("consumers", *arguments, environ=environ)


def test_an_unknown_training_is_not_found(call: Call, tmp_path: Path) -> None:
    done = call("report", "dmeo", "--output", str(tmp_path / "report.html"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "Did you mean 'demo'?" in done.stderr
    assert not (tmp_path / "report.html").exists()


def test_a_report_replaces_a_file_only_where_it_may(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    done = call("report", "demo", "--output", str(path), "--json")
    content = path.read_bytes()
    assert json.loads(done.stdout) == {
        "output": str(path),
        "size_bytes": len(content),
        "num_rollouts": 1,
    }
    assert content.startswith(b"<!doctype html>")
    path.write_text("mine")
    refused = call("report", "demo", "--output", str(path))
    assert (refused.returncode, path.read_text()) == (2, "mine")
    assert "exists; name another file, or give --overwrite" in refused.stderr
    assert call("report", "demo", "--output", str(path), "--overwrite").returncode == 0
    assert path.read_bytes().startswith(b"<!doctype html>")
    assert [each.name for each in tmp_path.glob("*report*")] == ["report.html"], "nothing is left"


def test_a_report_that_cannot_be_written_says_so(call: Call, tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    for path, says in (
        (tmp_path / "missing" / "report.html", "No such file or directory; name another file"),
        (tmp_path / "folder.html", "is a folder; name a file"),
        (tmp_path / "report.pdf", "would hold HTML; name a file that ends in .html"),
    ):
        done = call("report", "demo", "--output", str(path), "--overwrite")
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr
