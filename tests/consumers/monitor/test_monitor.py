"""The monitor over a real PostgreSQL and a real socket: what it shows and what it refuses."""

import io
import socket
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from consumers.database.location import database_engine
from consumers.errors import UnreachableError
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.pages import Pages
from consumers.monitor.server import MonitorServer
from consumers.tables import Environment
from schemas.blobs import blob_path, blob_ref
from schemas.installation import read_installation
from tests.consumers.monitor.conftest import HOSTILE, SCREENSHOT, Monitor, put_blob, serve
from tests.support.postgres import PostgresServer, execute
from tests.support.sample_rows import at, named, training_row

pytestmark = pytest.mark.services


def test_the_first_page_lists_trainings_with_what_they_gained(monitor: Monitor) -> None:
    text = monitor.get("/").text
    assert f'href="/training/{named("demo")}">demo</a>' in text
    assert text.index(">demo<") < text.index(">older<")
    assert ">100.0 %<" in text
    assert "50.0 %" in text
    assert "15.0 s ago" in text, "the heartbeat was 15 s before now"
    assert "2 / 3" in text


def test_a_running_training_without_a_heartbeat_for_a_minute_is_marked(
    migrated_url: str, tmp_path: Path
) -> None:
    engine = create_engine(migrated_url)
    with Session(engine) as session:
        session.add(training_row("lost", "running", last_heartbeat=at(0)))
        session.commit()
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    for now, overdue in ((at(60), False), (at(61), True)):
        page = Pages(lambda: engine, store, lambda moment=now: moment).answer("/")  # type: ignore[misc]  # binds the loop's value
        assert (b"overdue" in page.content) is overdue
    engine.dispose()


def test_only_a_training_that_goes_on_has_a_phase_and_time_that_remains(
    migrated_url: str, tmp_path: Path
) -> None:
    engine = create_engine(migrated_url)
    progress: dict[str, Any] = {"current_phase": "evaluation", "estimated_remaining_time": 90.0}
    with Session(engine) as session:
        session.add_all(
            [
                training_row("going", "running", **progress),
                training_row("gone", "completed", **progress),
            ]
        )
        session.commit()
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    pages = Pages(lambda: engine, store, lambda: at(1))
    for name, phase, remaining in (("going", "evaluation", "1 min 30 s"), ("gone", "—", "—")):
        text = pages.answer(f"/training/{named(name)}").content.decode()
        assert f"<dt>phase</dt><dd>{phase}</dd>" in text
        assert f"<dt>remaining</dt><dd>{remaining}</dd>" in text
    engine.dispose()


def test_a_parked_training_is_shown_as_such(monitor: Monitor) -> None:
    text = monitor.get("/").text
    assert "1 stream is parked" in text
    assert "parked since" in text[text.index(">older<") :]


def test_a_training_shows_its_curve_evaluations_steps_and_history(monitor: Monitor) -> None:
    text = monitor.get(f"/training/{named('demo')}").text
    assert "success 0.5 at step 0" in text
    assert "success 1 at step 2" in text
    assert "reward 0.5 at step 1" in text
    for path in (
        "baseline/" + str(named("baseline")),
        "eval/" + str(named("eval-2-again")),
        "step/" + str(named("step-2-again")),
    ):
        assert f'href="/{path}"' in text
    assert str(named("step-2")) not in text, "a newer generation trained it again"
    assert "± 5.0 %" in text
    assert text.index("2/1") < text.index("1/9") < text.index("1/1"), "history is newest first"


def test_devices_that_were_not_released_are_counted_on_their_trainings_page(
    monitor: Monitor,
) -> None:
    page = f"/training/{named('demo')}"
    assert "not released" not in monitor.get(page).text

    def device(name: str, status: str, second: float | None = None) -> Environment:
        return Environment(
            id=named(name),
            training_id=named("demo"),
            env_type="gbox",
            status=status,
            box_type="android",
            termination_time=None if second is None else at(second),
            config_json={},
            created_at=at(1),
            updated_at=at(2),
        )

    with Session(monitor.engine) as session:
        session.add_all([device("leaked", "error"), device("failed", "error", 2)])
        session.add(device("open", "running"))
        session.commit()
    try:
        text = monitor.get(page).text
        assert '<p class="warning">1 device was not released and may still run.</p>' in text
    finally:
        with Session(monitor.engine) as session:
            session.query(Environment).where(Environment.training_id == named("demo")).delete()
            session.commit()


def test_a_steps_rollouts_are_coloured_by_reward(monitor: Monitor) -> None:
    text = monitor.get(f"/step/{named('step-1')}").text
    assert f'href="/rollout/{named("rollout-0")}" class="square r0"' in text
    assert f'href="/rollout/{named("rollout-1")}" class="square r10"' in text
    assert "wifi: Wi-Fi on" in text


def test_an_evaluation_lists_its_episodes_by_task(monitor: Monitor) -> None:
    assert "1 / 1" in monitor.get(f"/eval/{named('eval-2-again')}").text
    assert "0 / 1" in monitor.get(f"/baseline/{named('baseline')}").text


def test_a_click_is_drawn_at_its_place_on_the_screenshot(monitor: Monitor) -> None:
    text = monitor.get(f"/rollout/{named('rollout-1')}").text
    digest = blob_ref(SCREENSHOT).rpartition(":")[2]
    assert f'<image href="/blob/{digest}"' in text
    assert 'viewBox="0 0 320 640"' in text
    assert '<circle cx="31" cy="52" r="12.8" class="mark"' in text
    assert "click(x=31, y=52, button=&quot;left&quot;)" in text
    assert "Turn Wi-Fi on." in text


def test_both_verdicts_are_shown_with_their_ranks_the_highest_first(monitor: Monitor) -> None:
    text = monitor.get(f"/rollout/{named('rollout-1')}").text
    verdicts = text[text.index(">Validation<") : text.index(">Status history<")]
    assert verdicts.index(">passed<") < verdicts.index(">failed<")


def test_what_a_policy_or_a_run_name_says_stays_text(monitor: Monitor) -> None:
    paths = [
        "/",
        f"/training/{named(HOSTILE)}",
        f"/rollout/{named('rollout-1')}",
        f"/step/{named('step-1')}",
    ]
    for path in paths:
        text = monitor.get(path).text
        assert "<script" not in text, path
        assert "<img" not in text, path
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in monitor.get(paths[2]).text


def test_every_answer_forbids_scripts_frames_and_foreign_content(monitor: Monitor) -> None:
    for path in (
        "/",
        "/style.css",
        f"/blob/{blob_ref(SCREENSHOT)[12:]}",
        "/nothing",
        f"/rollout/{named('rollout-1')}",
    ):
        headers = monitor.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "python" not in headers["server"].lower()


def test_a_page_needs_no_inline_style_or_script(monitor: Monitor) -> None:
    for path in ("/", f"/training/{named('demo')}", f"/rollout/{named('rollout-1')}"):
        text = monitor.get(path).text
        assert " style=" not in text
        assert " onclick=" not in text


def test_a_screenshot_is_served_by_its_hash_as_png(monitor: Monitor) -> None:
    reply = monitor.get(f"/blob/{blob_ref(SCREENSHOT)[12:]}")
    assert (reply.code, reply.headers["content-type"], reply.content) == (
        200,
        "image/png",
        SCREENSHOT,
    )


def test_no_path_leaves_the_store(monitor: Monitor) -> None:
    (monitor.home / "secret").write_bytes(SCREENSHOT)
    tries = (
        "../secret",
        "..%2f..%2fsecret",
        "../" * 8 + "etc/passwd",
        "a" * 63,
        "A" * 64,
        "0" * 64 + "/",
        "0" * 64 + "%00",
        "sha256/../../secret",
    )
    for name in tries:
        assert monitor.get(f"/blob/{name}").code == 404, name
    assert monitor.get("//etc/passwd").code == 404
    assert monitor.get("/style.css/../../pages.py").code == 404


def test_a_blob_that_is_no_screenshot_or_is_damaged_is_not_served(monitor: Monitor) -> None:
    page = put_blob(monitor.home, b"<script>alert(1)</script>")
    assert monitor.get(f"/blob/{page[12:]}").code == 404
    damaged = monitor.home / "blobs" / blob_path("blob:sha256:" + "1" * 64)
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(SCREENSHOT)
    assert monitor.get("/blob/" + "1" * 64).code == 404


def test_a_missing_screenshot_leaves_the_page_whole(monitor: Monitor) -> None:
    path = monitor.home / "blobs" / blob_path(blob_ref(SCREENSHOT))
    content = path.read_bytes()
    path.unlink()
    try:
        store = ScreenshotStore(read_installation({"CUA_HOME": str(monitor.home)}))
        page = Pages(lambda: monitor.engine, store, lambda: at(35)).answer(
            f"/rollout/{named('rollout-1')}"
        )
        assert page.code == 200
        assert b"Screenshot not available." in page.content
    finally:
        path.write_bytes(content)


def test_what_does_not_exist_is_404(monitor: Monitor) -> None:
    for path in (
        f"/training/{named('nobody')}",
        "/training/demo",
        "/training/",
        "/favicon.ico",
        f"/task/{named('task')}",
        f"/eval/{named('x')}",
    ):
        assert monitor.get(path).code == 404, path


def test_only_reading_is_served(monitor: Monitor) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert monitor.get("/", method=method).code == 405
    head = monitor.get("/", method="HEAD")
    assert (head.code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 0


def test_a_request_that_was_made_to_another_name_is_refused(monitor: Monitor) -> None:
    for host in (
        "evil.example",
        f"evil.example:{monitor.server.server_port}",
        "",
        "127.0.0.1.evil.example",
        "localhost@evil.example:80",
    ):
        assert monitor.get("/", host=host).code == 421, host
    for host in ("localhost", f"127.0.0.1:{monitor.server.server_port}", "LOCALHOST:9999"):
        assert monitor.get("/", host=host).code == 200, host


def test_only_loopback_listens(monitor: Monitor) -> None:
    assert monitor.server.server_address[0] == "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(
                ("192.0.2.1", 9)
            )  # sends nothing: asks which of our addresses would be used
        except OSError:
            pytest.skip("this machine has no address but loopback")
        own = probe.getsockname()[0]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((own, monitor.server.server_port), timeout=5)


def unreachable() -> None:
    message = "expected PostgreSQL, found nothing"
    raise UnreachableError(message)


def test_without_a_database_the_page_says_so(tmp_path: Path) -> None:
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    page = Pages(unreachable, store, lambda: at(0)).answer("/")  # type: ignore[arg-type]  # it never returns
    assert page.code == 503
    assert b"expected PostgreSQL, found nothing" in page.content


def test_without_tables_the_page_says_what_makes_them(database_url: str, tmp_path: Path) -> None:
    engine = database_engine(database_url)
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    page = Pages(lambda: engine, store, lambda: at(0)).answer("/")
    assert page.code == 503
    assert b"cua-project run" in page.content
    engine.dispose()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "UPDATE cua_ops.alembic_version SET version_num = '0005';"
            " DROP TABLE cua.annotation CASCADE",
            "is at revision 0005, of a version of cua-train before 0.1.0",
        ),
        ("DROP TABLE cua.annotation CASCADE", "the table cua.annotation is missing"),
        ("DROP SCHEMA cua CASCADE", "the schema cua is missing"),
    ],
)
def test_tables_that_cannot_be_read_are_explained(
    migrated_url: str, tmp_path: Path, statement: str, says: str
) -> None:
    execute(migrated_url, statement)
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    pages = Pages(lambda: database_engine(migrated_url), store, lambda: at(0))

    page = pages.answer("/")

    assert page.code == 503
    assert says in page.content.decode()
    assert "There are no tables yet" not in page.content.decode()


def test_a_database_that_was_restarted_is_found_again(
    postgres: PostgresServer, migrated_template: str, tmp_path: Path
) -> None:
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    name = postgres.create(migrated_template)
    gone, here = (
        database_engine(postgres.url("dropped_meanwhile")),
        database_engine(postgres.url(name)),
    )
    engines = iter([gone, here])
    pages = Pages(lambda: next(engines), store, lambda: at(0))
    assert pages.answer("/").code == 200
    here.dispose()
    postgres.drop(name)


def test_two_monitors_do_not_share_a_port(monitor: Monitor) -> None:
    with pytest.raises(OSError, match="in use"):
        MonitorServer(monitor.server.server_port, monitor.server.pages)


def test_a_page_that_fails_is_one_failed_page(
    monitor: Monitor, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> datetime:
        message = "no clock"
        raise ValueError(message)

    store = ScreenshotStore(read_installation({"CUA_HOME": str(monitor.home)}))
    for broken_monitor in serve(
        Pages(lambda: monitor.engine, store, broken), monitor.home, monitor.engine
    ):
        assert broken_monitor.get("/").code == 500
        assert broken_monitor.get(f"/step/{named('step-1')}").code == 200
    assert "no clock" in caplog.text


def test_png_is_what_the_test_thinks() -> None:
    from PIL import Image

    assert Image.open(io.BytesIO(SCREENSHOT)).size == (320, 640)
