"""After a mistake or an outage a user sees one sentence and a documented exit code."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from consumers.database.connection import connected
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas.installation import read_installation
from tests.support.forked_command import run_command
from tests.support.logs import logged_events, write_local_log
from tests.support.postgres import execute

Call = Callable[..., "subprocess.CompletedProcess[str]"]
NOBODY_LISTENS = "127.0.0.1:1"


@pytest.fixture
def call() -> Call:
    """`cua-project` in its own process, without a terminal; keyword arguments are variables."""

    def run(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return run_command("consumers", *arguments, environ={**os.environ, **environ})

    return run


def sentence(done: "subprocess.CompletedProcess[str]", code: int) -> str:
    """stderr, which must be a single line of an error with this exit code."""
    assert (done.returncode, done.stdout) == (code, ""), done
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def test_a_file_in_place_of_cua_home_is_a_usage_error(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for home in (file, file / "below"):
        for command in ("tail", "status", "up", "database"):
            text = sentence(call(command, CUA_HOME=str(home)), 2)
            assert text.startswith(
                f"CUA_HOME: {home} cannot be used: {file} is a file, not a folder;"
            )


def test_a_home_in_which_nothing_can_be_created_names_the_folder(call: Call) -> None:
    text = sentence(call("database", CUA_HOME="/proc/cua"), 2)
    assert text.startswith(
        "CUA_HOME: the embedded database cannot use /proc/cua/database: no folder can be made in"
        " /proc; choose a folder that you can write to"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_home_that_may_not_be_read_is_a_usage_error(call: Call, tmp_path: Path) -> None:
    home = tmp_path / "closed"
    home.mkdir(mode=0o000)
    assert "no permission to read it" in sentence(call("tail", CUA_HOME=str(home)), 2)


def test_a_cursor_file_in_no_folder_is_a_usage_error(call: Call, tmp_path: Path) -> None:
    cursor = tmp_path / "missing" / "cursor.json"
    write_local_log(read_installation(os.environ).local_log_path, logged_events("demo")[:3])
    text = sentence(call("tail", "--cursor", str(cursor)), 2)
    assert text == f"the folder of --cursor {cursor} does not exist; create it first"


def test_a_number_of_records_that_no_log_has_is_a_usage_error(call: Call) -> None:
    assert "--num" in sentence(call("tail", "-n", "9" * 30), 2)


def test_a_cursor_beyond_the_end_of_the_log_is_a_mismatch(call: Call, tmp_path: Path) -> None:
    cursor = tmp_path / "cursor.json"
    write_local_log(read_installation(os.environ).local_log_path, logged_events("demo")[:30])
    assert call("tail", "--cursor", str(cursor)).returncode == 0
    saved = json.loads(cursor.read_text())
    saved["positions"]["cua.training"] = dict.fromkeys(saved["positions"]["cua.training"], 10**9)
    cursor.write_text(json.dumps(saved))
    text = sentence(call("tail", "--cursor", str(cursor)), 4)
    assert text.startswith("the cursor is at offset 1000000000 of cua.training/")
    assert json.loads(cursor.read_text()) == saved


def test_a_training_is_found_by_its_name_in_any_unicode_form(call: Call) -> None:
    write_local_log(read_installation(os.environ).local_log_path, logged_events("caf\u00e9")[:30])
    done = call("tail", "--training", "cafe\u0301", "-n", "1", "--format", "%T")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("cua.")


def test_a_file_that_is_no_cursor_is_not_overwritten(call: Call, tmp_path: Path) -> None:
    cursor = tmp_path / "notes.txt"
    cursor.write_text("my notes")
    text = sentence(call("tail", "--cursor", str(cursor)), 2)
    assert text.startswith(f"{cursor} is not a cursor of `tail`;")
    assert cursor.read_text() == "my notes"


def test_kafka_away_is_one_line_without_its_client_s_own(call: Call) -> None:
    for command in (["tail"], ["tail", "--follow"], ["status"], ["up"]):
        text = sentence(call(*command, KAFKA_BOOTSTRAP_SERVERS=NOBODY_LISTENS), 5)
        assert text.startswith(f"Kafka at {NOBODY_LISTENS} cannot be reached")


def test_postgresql_away_is_named_without_its_password(call: Call) -> None:
    url = f"postgresql://someone:s3cret@{NOBODY_LISTENS}/training"
    for command in (["status"], ["migrate"], ["migrate", "--check"], ["up"]):
        text = sentence(call(*command, DATABASE_URL=url), 5)
        assert text.startswith(
            f"cannot connect to PostgreSQL at postgresql://someone:***@{NOBODY_LISTENS}/training:"
            " Connection refused; start the server, or correct DATABASE_URL"
        )


@pytest.mark.services
def test_a_wrong_password_is_named_as_such(call: Call, database_url: str) -> None:
    user, _, rest = database_url.rpartition("@")
    wrong = f"{user.rpartition(':')[0]}:n0t-it@{rest}"
    text = sentence(call("status", DATABASE_URL=wrong), 5)
    assert ': password authentication failed for user "cua"; correct DATABASE_URL' in text
    assert "n0t-it" not in text


@pytest.mark.services
def test_a_role_without_rights_and_a_read_only_database_are_no_bugs(
    call: Call, migrated_url: str
) -> None:
    user, _, rest = migrated_url.rpartition("@")
    name = f"weak_{rest.rpartition('/')[2]}"
    weak = f"{user.rpartition('//')[0]}//{name}:pw@{rest}"
    execute(migrated_url, f"CREATE ROLE {name} LOGIN PASSWORD 'pw'")
    try:
        for command in (["parked", "list"], ["status"], ["run"], ["migrate"]):
            text = sentence(call(*command, DATABASE_URL=weak), 1)
            assert text.startswith("the database refuses this: permission denied for schema cua")
            assert "GRANT" in text
        checked = call("doctor", DATABASE_URL=weak).stdout
        assert "the database refuses this: permission denied for schema cua" in checked
    finally:
        execute(migrated_url, f"DROP ROLE {name}")
    database = rest.rpartition("/")[2]
    execute(migrated_url, f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    for command in (["run", "--once"], ["verify"]):
        text = sentence(call(*command, DATABASE_URL=migrated_url), 1)
        assert text.startswith("the database refuses this: cannot execute ")
        assert text.endswith(
            "in a read-only transaction; connect to the primary, or, with"
            " default_transaction_read_only = off, let the role and the database write"
        )


@pytest.mark.services
def test_a_trigger_of_the_database_that_refuses_ddl_is_no_bug(
    call: Call, migrated_url: str
) -> None:
    execute(
        migrated_url,
        "CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE"
        " EXCEPTION ''no DDL in working hours''; END'; CREATE EVENT TRIGGER mine ON"
        " ddl_command_start EXECUTE FUNCTION public.no()",
    )
    text = sentence(call("rebuild", DATABASE_URL=migrated_url), 1)
    assert text.startswith("the database refuses this: no DDL in working hours; a trigger or")
    assert "ALTER EVENT TRIGGER name DISABLE" in text


@pytest.mark.parametrize(
    ("variable", "value", "start"),
    [
        ("DATABASE_URL", "s3cret", "the database URL (DATABASE_URL) is malformed"),
        ("DATABASE_URL", "mysql://u:s3cret@h/d", "the database URL (DATABASE_URL) is for mysql"),
        ("POSTGRES_PORT", "many", "POSTGRES_PORT 'many' is not a number"),
    ],
)
def test_a_garbled_database_address_is_a_usage_error(
    call: Call, variable: str, value: str, start: str
) -> None:
    for command in ("status", "monitor"):
        text = sentence(call(command, **{variable: value}), 2)
        assert text.startswith(start)
        assert "s3cret" not in text


@pytest.mark.services
def test_a_port_that_is_taken_is_a_usage_error(call: Call, migrated_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        text = sentence(call("monitor", "--port", port, DATABASE_URL=migrated_url), 2)
    assert text.startswith(f"cannot listen on port {port}: Address already in use; choose another")


@pytest.mark.services
def test_an_unknown_revision_is_not_found_and_the_known_ones_are_listed(
    call: Call, migrated_url: str
) -> None:
    text = sentence(call("migrate", "--to", "nonsense", DATABASE_URL=migrated_url), 3)
    assert text.startswith("cannot migrate to 'nonsense'")
    assert "the revisions are 0001" in text


@pytest.mark.services
def test_a_database_of_a_newer_version_asks_for_that_version(call: Call, migrated_url: str) -> None:

    with (
        connected(migrated_url, "test") as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE cua_ops.alembic_version SET version_num = '9999'")
    text = sentence(call("migrate", DATABASE_URL=migrated_url), 4)
    assert text.startswith("the database is at revision 9999, which this version")
    assert "Install the newer cua-train" in text


@pytest.mark.services
def test_an_empty_database_is_migrated_and_a_foreign_one_is_not_touched(
    call: Call, database_url: str
) -> None:

    with (
        connected(database_url, "test") as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE TABLE public.mine (id int)")
    text = sentence(call("status", DATABASE_URL=database_url), 4)
    assert text.startswith("the database has no tables of ours")
    assert text.endswith("run `cua-project migrate`")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["stauts"], 2, "no such command 'stauts'. Did you mean 'status'?"),
        (["tail", "--flow"], 2, "no such option '--flow'. Did you mean '--follow'?"),
        (
            ["tail", "--topic", "rolouts"],
            2,
            "there is no topic 'cua.rolouts'. Did you mean 'cua.rollouts'?",
        ),
        (["tail", "--topic", "xyz"], 2, "The topics are cua.rollouts, cua.training"),
        (
            ["tail", "--type", "rolout.failed"],
            3,
            "matches 'rolout.failed'. Did you mean 'rollout.failed'?",
        ),
        (
            ["tail", "--training", "dmeo"],
            3,
            "there is no training 'dmeo' in the log. Did you mean 'demo'?",
        ),
        (["tail", "--offset", "yesterday"], 2, "--offset 'yesterday' is not an offset; use start"),
        (["tail", "--format", "%z"], 2, "unknown %z in --format '%z'; use %t"),
        (["tail", "--json", "--format", "%t"], 2, "--json and --format are mutually exclusive"),
        (["tail", "-p", "x"], 2, "'x' is not a valid integer"),
        (["tail", "-p", "99"], 3, "there is no partition 99; the topics have partitions 0 to 11"),
        (
            ["tail", "--stream", "rolout/*"],
            3,
            "no stream matches 'rolout/*'. Did you mean 'rollout/*'?",
        ),
        (["tail", "--stream", "rollout"], 3, "Did you mean 'rollout/*'?"),
        (["tail", "--stream", "rollot/6f"], 3, "Did you mean 'rollout/6f'?"),
        (
            ["tail", "--stream", "xyzzy"],
            3,
            "Streams are training, evaluation, annotation, rollout, environment, scoring, record",
        ),
        (["tail", "--offset", "99999999d"], 2, "--offset '99999999d' is not an offset; use start"),
        (["tail", "--offset", "@9999-12-31:9999d"], 2, "is not an offset; use start"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_right_one(
    call: Call, arguments: list[str], code: int, words: str
) -> None:
    write_local_log(read_installation(os.environ).local_log_path, logged_events("demo")[:30])
    assert words in sentence(call(*arguments), code)


def test_a_name_that_exists_is_no_mistake_and_that_nothing_matches_is_said(call: Call) -> None:
    write_local_log(read_installation(os.environ).local_log_path, logged_events("demo")[:30])
    for arguments, said in (
        (["--training", "demo", "--type", "checkpoint.*"], "'demo' --type 'checkpoint.*'"),
        (["--training", "demo", "--offset", "end"], "'demo'"),
    ):
        done = call("tail", *arguments)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"no record matches --training {said}\n"
    done = call("tail", "--offset", "end")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_mistyped_name_is_said_to_whoever_polls_with_a_cursor_or_follows(
    call: Call, tmp_path: Path
) -> None:
    write_local_log(read_installation(os.environ).local_log_path, logged_events("demo")[:30])
    done = call("tail", "--training", "dmeo", "--cursor", str(tmp_path / "cursor"))
    assert (done.returncode, done.stdout) == (0, "")
    assert "no training 'dmeo' in the log. Did you mean 'demo'" in done.stderr
    words = [sys.executable, "-m", "consumers", "tail", "--follow"]
    for wrong, right in (
        (["--training", "dmeo"], "'demo'"),
        (["--type", "rolout.failed"], "'rollout.failed'"),
        (["--stream", "rolout/*"], "'rollout/*'"),
    ):
        process = subprocess.Popen([*words, *wrong], stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        assert f"Did you mean {right}; waiting for it" in process.stderr.readline()
        process.kill()
        process.communicate()


def test_a_type_of_a_newer_version_is_found_by_its_name(call: Call) -> None:
    log = LocalLog(read_installation(os.environ).local_log_path)
    try:
        created = b"cua.training.created"
        one = next(
            logged_event for logged_event in logged_events("demo") if created in logged_event.value
        )
        value = one.value.replace(created, b"cua.training.dreamt")
        log.append([Record("cua.training", one.subject, value)])
    finally:
        log.close()
    done = call("tail", "--type", "training.dreamt", "--format", "%T")
    assert (done.returncode, done.stdout) == (0, "cua.training.dreamt")


def test_errors_are_json_lines_for_machines_before_or_after_the_command(call: Call) -> None:
    for arguments in (
        ["--log-format", "json", "status"],
        ["status", "--log-format", "json"],
    ):
        done = call(*arguments, POSTGRES_PORT="many")
        assert done.returncode == 2
        line = json.loads(done.stderr)
        assert set(line) == {"time", "level", "logger", "message"}
        assert (line["level"], line["logger"]) == ("error", "consumers.cli")
        assert line["message"].startswith("POSTGRES_PORT 'many'")


@pytest.mark.internal_error
def test_a_bug_of_ours_asks_for_a_report_and_shows_its_traceback_on_request() -> None:
    program = (
        "import sys, consumers.cli as cli\n"
        "def broken(*_, **__): raise RuntimeError('a bug')\n"
        "cli.cli.main = broken\n"
        "cli.main()"
    )

    def run(**environ: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
        )

    plain = run()
    assert plain.returncode == 1
    assert plain.stderr == (
        "error: internal error: RuntimeError: a bug; please report it. CUA_TRACEBACK=1 shows the"
        " traceback\n"
    )
    assert "Traceback" in run(CUA_TRACEBACK="1").stderr


def test_an_argument_that_is_no_utf_8_is_a_usage_error(call: Call, tmp_path: Path) -> None:
    write_local_log(
        read_installation({"CUA_HOME": str(tmp_path)}).local_log_path, logged_events("a")
    )
    text = sentence(call("tail", "--training", "a\udcff", CUA_HOME=str(tmp_path)), 2)
    assert text == "an argument is not valid UTF-8; nothing here has such a name"
