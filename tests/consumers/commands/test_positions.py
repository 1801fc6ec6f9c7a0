"""`cua-project positions`, for people and for a trainer."""

import json
import os
import subprocess
import sys

import pytest
from sqlalchemy import make_url

from consumers.database.connection import connected
from schemas.ids import training_id
from schemas.installation import read_installation
from tests.reference_fold.histories import Shape
from tests.support.forked_command import run_command
from tests.support.logs import logged_events, write_local_log

SMALL = Shape(steps=1, groups=1, group_size=1, turns=2, has_trouble=False)


def project(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_command("consumers", *arguments)


@pytest.mark.services
def test_a_training_is_found_by_its_name_as_by_its_id(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    events = logged_events("a", shape=SMALL)
    write_local_log(read_installation(os.environ).local_log_path, events)
    assert project("run", "--once").returncode == 0

    by_name = project("positions", "--training", "a", "--json")
    by_id = project("positions", "--training-id", str(training_id("a")), "--json")
    assert by_name.stdout == by_id.stdout == answered(str(training_id("a"))).stdout
    report = json.loads(by_name.stdout)
    assert sum(item["indexed"][1] for item in report["partitions"]) == len(events)
    assert all(item["indexed"][0] == 0 for item in report["partitions"])
    # Everything in this log is the training's.
    for item in report["partitions"]:
        assert item["found"] == ([item["indexed"]] if item["indexed"][1] else [])
    text = project("positions", "--training", "nobody").stdout.splitlines()
    assert " ".join(text[0].split()) == "partition indexed from next offset offsets to look at"
    assert {line.split()[-1] for line in text[1:]} == {"none"}


def test_it_makes_no_database_and_takes_one_name() -> None:
    missing = project("positions")
    assert missing.returncode == 3
    assert missing.stderr.startswith("error: there is no database yet; `cua-project up`")
    assert not read_installation(os.environ).database_dir.exists()
    both = project("positions", "--training", "a", "--training-id", str(training_id("a")))
    assert both.returncode == 2


@pytest.mark.services
@pytest.mark.parametrize(
    ("damage", "code", "says"),
    [
        ("DROP TABLE cua.training_block", 4, "the table cua.training_block is missing; `cua-proj"),
        ("ALTER TABLE cua.reader_position DROP indexed_from", 4, "cua-project rebuild"),
        ("DROP SCHEMA cua, cua_ops CASCADE", 3, "no tables of this version; run `cua-project mig"),
        ("UPDATE cua_ops.alembic_version SET version_num = '9999'", 4, "Install"),
    ],
)
def test_tables_that_cannot_be_read_are_named_with_what_mends_them(
    damage: str, code: int, says: str, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute(damage)
        if "9999" in damage:
            cursor.execute("DROP TABLE cua.training_block")
        connection.commit()
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    done = project("positions")
    assert (done.returncode, done.stdout) == (code, "")
    (line,) = done.stderr.splitlines()
    assert says in line


@pytest.mark.services
@pytest.mark.parametrize("is_url", [True, False])
def test_a_trainer_does_not_wait_for_sqlalchemy(
    is_url: bool, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes longer to import than everything else that the answer needs."""
    if is_url:
        monkeypatch.setenv("DATABASE_URL", migrated_url)
    else:
        parsed = make_url(migrated_url)
        for name, value in {
            "HOST": parsed.host,
            "PORT": str(parsed.port),
            "DB": parsed.database,
            "USER": parsed.username,
            "PASSWORD": str(parsed.password),
        }.items():
            monkeypatch.setenv(f"POSTGRES_{name}", str(value))
    code = (
        "import sys; from consumers.projection.places_answer import main; main();"
        " print(sorted({'sqlalchemy', 'pydantic', 'click', 'filelock'} & set(sys.modules)))"
    )
    own = str(training_id("a"))
    done = subprocess.run(
        [sys.executable, "-c", code, own], capture_output=True, text=True, check=False, timeout=60
    )
    answer, imported = done.stdout.splitlines()
    assert imported == "[]"
    assert json.loads(answer) == {"log_id": None, "epoch": 0, "sequence": 0, "partitions": []}


@pytest.mark.parametrize(
    ("url", "code", "reason"),
    [
        ("mysql://u@h/d", 2, "the database URL (DATABASE_URL) is for mysql; only PostgreSQL"),
        ("postgresql://u:secret@127.0.0.1:1/d", 5, "cannot connect to PostgreSQL at postgresql://"),
    ],
)
def test_without_an_answer_the_last_line_says_why(
    url: str, code: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    done = answered(str(training_id("a")))
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.splitlines()[-1].startswith(reason)
    assert "secret" not in done.stderr


def answered(training: str) -> "subprocess.CompletedProcess[str]":
    """What a trainer is answered."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "consumers.projection.places_answer", training],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
