"""`cua-project doctor` names what is wrong with a machine, and what to do."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient

from consumers.database.connection import connected
from consumers.doctor import machine, services
from consumers.tables import OUTDATED, PROJECTION_VERSION
from schemas.installation import read_installation
from tests.support.command import Call, call
from tests.support.kafka import KafkaService
from tests.support.postgres import execute

__all__ = ["call"]
pytestmark = pytest.mark.services


def checks(call: Call, code: int) -> dict[str, dict[str, Any]]:
    """The worst finding of each check."""
    done = call("doctor", "--json")
    assert done.code == code, done
    assert done.json["ok"] is (code == 0)
    rank = {"ok": 0, "warning": 1, "failed": 2}
    found: dict[str, dict[str, Any]] = {}
    for item in done.json["checks"]:
        if rank[item["level"]] >= rank[found.get(item["check"], item)["level"]]:
            found[item["check"]] = item
    return found


def test_a_machine_that_is_well(call: Call) -> None:
    found = checks(call, 0)
    assert {name for name, one in found.items() if one["level"] == "failed"} == set()
    assert found["tables"]["level"] == "ok"
    assert {"home", "disk of CUA_HOME", "packages", "gpu", "locks", "log", "database"} <= set(found)
    assert "PostgreSQL" in call("doctor").out


def test_servers_that_are_away_fail_without_hiding_the_rest(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:s3cret@127.0.0.1:1/x")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("CUA_BLOBS", "nosuch://x")
    found = checks(call, 1)
    for name in ("log", "database", "blobs"):
        assert (found[name]["level"], bool(found[name]["advice"])) == ("failed", True)
    assert found["disk of CUA_HOME"]["level"] == "ok"
    assert "s3cret" not in call("doctor").out + call("doctor").err


def test_tables_that_are_not_this_versions(call: Call, database_url: str) -> None:
    url = os.environ["DATABASE_URL"]
    execute(url, "ALTER TABLE cua.turn DROP COLUMN reward")
    found = checks(call, 1)
    assert "reward" in found["tables"]["message"]
    execute(url, "UPDATE cua_ops.alembic_version SET version_num = '9999'")
    assert "9999" in checks(call, 1)["tables"]["message"]
    os.environ["DATABASE_URL"] = database_url
    assert checks(call, 0)["tables"]["level"] == "warning"
    with connected(database_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace('cua')")
        assert cursor.fetchone() == (None,), "the doctor changes nothing"


def shifted(seconds: float) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("version", "problem", "advice"),
    [
        (OUTDATED, "their rows are not those of this version", "run `cua-project rebuild`"),
        (
            PROJECTION_VERSION + 1,
            "the tables were filled by a newer version of cua-train (projection version"
            f" {PROJECTION_VERSION + 1}, this one's is {PROJECTION_VERSION})",
            "nothing was changed. Install that version",
        ),
    ],
)
def test_rows_of_another_version_are_named(
    migrated_url: str, version: int, problem: str, advice: str
) -> None:
    execute(
        migrated_url,
        "INSERT INTO cua.projection (one, build_id, version, catalogue_hash) VALUES (1,"
        f" gen_random_uuid(), {version}, 'x')",
    )
    found = services.look_at_database(
        {"DATABASE_URL": migrated_url}, read_installation(os.environ), shifted(0)
    )
    (one,) = (finding for finding in found if finding.check == "tables")
    assert (one.level, one.message, one.advice) == ("failed", problem, advice)


def test_a_clock_that_differs_from_the_databases_is_named(migrated_url: str) -> None:
    installation = read_installation(os.environ)
    environ = {"DATABASE_URL": migrated_url}
    for seconds, level in ((0, "ok"), (10, "warning"), (-10, "warning"), (600, "failed")):
        found = services.look_at_database(environ, installation, shifted(seconds))
        (one,) = (finding for finding in found if finding.check == "database clock")
        assert one.level == level


def test_a_stopped_process_that_holds_a_lock_is_named_with_what_to_do() -> None:
    installation = read_installation(os.environ)
    lock = installation.runs_dir / "mine" / "lock"
    lock.parent.mkdir(parents=True)
    program = (
        "import sys, time; from filelock import FileLock; lock = FileLock(sys.argv[1]);"
        " lock.acquire();"
        " print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(lock)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert [
            look_at_stopped_holder.level
            for look_at_stopped_holder in machine.look_at_stopped_holders(installation)
        ] == ["ok"]
        holder.send_signal(signal.SIGSTOP)
        os.waitpid(holder.pid, os.WUNTRACED)
        (one,) = machine.look_at_stopped_holders(installation)
        assert one.level == "warning"
        assert f"{lock} is held by process {holder.pid}, which is stopped" in one.message
        assert f"kill -CONT {holder.pid}" in str(one.advice)
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize(("free", "level"), [(10**10, "ok"), (10**9, "warning"), (10**8, "failed")])
def test_little_room_is_a_warning_and_almost_none_fails(free: int, level: str) -> None:
    installation = read_installation(os.environ)
    assert [item.level for item in machine.look_at_disk(installation, lambda _: free)] == [level]


@pytest.mark.parametrize(
    ("script", "level", "words"),
    [
        ("echo 'NVIDIA H100, 81559 MiB, 570.1'", "ok", "NVIDIA H100"),
        ("echo 'driver mismatch' >&2; exit 9", "warning", "driver mismatch"),
    ],
)
def test_the_gpu_is_what_nvidia_smi_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, level: str, words: str
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("nvidia-smi") == str(program)
    (one,) = machine.look_at_gpu()
    assert (one.level, words in one.message) == (level, True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_topics_that_lose_events_are_named_with_the_command_that_mends_them(
    call: Call, kafka: KafkaService, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"doctor{uuid4().hex[:8]}."
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    monkeypatch.setenv("CUA_TOPIC_PREFIX", prefix)
    assert "the first trainer makes them" in checks(call, 0)["topics"]["message"]
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    try:
        wrong = {"retention.ms": "1000", "max.message.bytes": "2000"}
        for name, configs in (("training", wrong), ("rollouts", {"cleanup.policy": "compact"})):
            admin.create_topics(
                {prefix + name: {"num_partitions": 3, "replication_factor": 1, "configs": configs}},
                wait_for_metadata=True,
            )
            if name == "training":
                found = checks(call, 1)["topics"]
                assert f"{prefix}rollouts does not exist, others of the prefix do" in str(found)
                without = f"has no topic {prefix}rollouts, but has others with the prefix"
                assert call("tail").err.count(without) == 1
    finally:
        admin.close()
    done = call("doctor", "--json")
    topics = [item for item in done.json["checks"] if item["check"] == "topics"]
    text = "\n".join(f"{topic['level']} {topic['message']} {topic['advice']}" for topic in topics)
    assert done.code == 1
    for words in (
        f"warning {prefix}training has 3 partitions",
        f"warning {prefix}training deletes records (retention.ms=1000)",
        "--add-config retention.ms=-1",
        f"warning {prefix}training takes records up to 2.0 kB",
        f"failed {prefix}rollouts is compacted",
        f"warning {prefix}rollouts has the producers' times",
    ):
        assert words in text
