"""Pages of SQL agents: the projected log of two hand-written trainings, over a real socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.database.location import database_engine
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.pages import Pages
from consumers.projection.loop import ProjectionLoop
from schemas import ids
from schemas.installation import read_installation
from tests.consumers.monitor.conftest import Monitor, serve
from tests.reference_fold.histories import Shape, history
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import PostgresServer
from tests.support.sample_rows import at
from tests.support.sql_runs import dbbench_run, text_to_sql_run

pytestmark = pytest.mark.services

IN_TURN, QUESTIONS = ids.training_id("dbbench-in-turn"), ids.training_id("text-to-sql")


@pytest.fixture(scope="module")
def monitor(
    postgres: PostgresServer, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Monitor]:
    home: Path = tmp_path_factory.mktemp("home")
    name = postgres.create(migrated_template)
    log = MemoryLog()
    for item in [*dbbench_run(), *text_to_sql_run(), *history("phone", 1, Shape(steps=1))]:
        log.append(item.subject, item.value)
    ProjectionLoop(MemoryReader(log), postgres.url(name)).run_once()
    engine = database_engine(postgres.url(name))
    store = ScreenshotStore(read_installation({"CUA_HOME": str(home)}))
    yield from serve(Pages(lambda: engine, store, lambda: at(35)), home, engine)
    engine.dispose()
    postgres.drop(name)


def rollout(monitor: Monitor, name: str) -> str:
    reply = monitor.get(f"/rollout/{ids.rollout_id(name)}")
    assert reply.code == 200
    return reply.text


def test_the_list_of_trainings_says_what_each_agent_works_with(monitor: Monitor) -> None:
    text = monitor.get("/").text
    for name, environment in (
        ("dbbench-in-turn", "dbbench"),
        ("text-to-sql", "text_to_sql"),
        ("attempt 2", "android"),
    ):
        row = text[text.index(f">{name}<") :]
        assert row[: row.index("</td>")].endswith(
            f'<span class="faint"> rl · {environment}</span></span>'
        )


def test_a_session_is_shown_in_words_with_coloured_sql_and_its_entry(monitor: Monitor) -> None:
    text = rollout(monitor, "dbbench-in-turn/g0/eval-1/group-0/env-1/attempt-0")
    # It came to something although it had no round left: two things, both shown.
    assert '<span class="status task_limit_reached">task_limit_reached</span>' in text
    assert '<span class="good">correct</span>' in text
    first, second = text.split('<section class="turn words"')[1:]
    assert "<pre>Who won in 2001? Answer with the name.</pre>" in first
    assert (
        '<pre class="sql"><b>SELECT</b> <span class="name">`who`</span> <b>FROM</b> wins'
        ' <b>WHERE</b> year = <span class="number">2001</span>' in first
    )
    assert "<pre>[(&#x27;Ann&#x27;, 2001)]</pre>" in second, "what the database answered"
    assert "Screenshot not available" not in text
    assert "<svg" not in text
    entry = text[text.index("<aside") : text.index("</aside>")]
    assert "Entry select_0001" in entry
    assert '<span class="skill">where_single_condition</span>' in entry
    assert "table wins" in entry
    assert "<th>who TEXT</th><th>year INT</th>" in entry
    assert '<span class="faint">NULL</span>' in entry


def test_sql_that_was_refused_says_why_and_a_turn_without_an_action_says_so(
    monitor: Monitor,
) -> None:
    text = rollout(monitor, "dbbench-in-turn/g0/step-1/group-1/env-0/attempt-0")
    assert "runtime error: no such column" in text
    assert "no action was found in it" in text
    assert '<span class="bad">incorrect</span>' in text
    assert "a table of the hash <code>9b1d7c0e5f</code>" in text


def test_a_completions_steps_are_coloured_by_both_scorers(monitor: Monitor) -> None:
    text = rollout(monitor, "text-to-sql/g0/step-1/group-0/env-1/attempt-0")
    table = text[text.index("Steps by score") : text.index("the steps together")]
    assert "<th>monte_carlo</th><th>policies/prm</th>" in table
    # Scores 0.8125 0.125 0 and 0.9375 0.25 0.125 on a scale of eleven shades.
    shades = [part.split('"')[0] for part in table.split('class="score ')[1:]]
    assert shades == ["r8", "r9", "r1", "r2", "r0", "r1"]
    together = text[text.index("the steps together") :]
    assert ">0.0293<" in together, "0.9375 x 0.25 x 0.125"
    assert ">0.438<" in together
    assert '<span class="bad">incorrect</span>' in text
    assert "california_schools" in text[text.index("<aside") :]


def test_completions_without_sql_and_with_an_error_are_told_apart(monitor: Monitor) -> None:
    no_sql = rollout(monitor, "text-to-sql/g0/step-1/group-1/env-1/attempt-0")
    assert '<span class="bad">no_sql</span>' in no_sql
    assert "none was found" in no_sql
    assert "Nobody scored its steps." in no_sql
    error = rollout(monitor, "text-to-sql/g0/step-1/group-1/env-0/attempt-0")
    assert '<span class="bad">error</span>' in error
    assert "syntax error" in error


def test_a_training_shows_success_by_skill_as_curves_and_by_step(monitor: Monitor) -> None:
    text = monitor.get(f"/training/{IN_TURN}").text
    assert "All entries: success by step" in text
    assert "success 0.25 at step 1" in text, "insert after step 1"
    table = text[text.index("<th>skill</th>") : text.index("Skills trained in turn")]
    rows = [row.split("</tr>")[0] for row in table.split("<tr>")[1:]]
    assert [row.split("</td>")[0] for row in rows] == [
        "<td>all",
        "<td>group_by_single_column",
        "<td>insert",
        "<td>select",
    ]
    assert [part.split("<")[0] for part in rows[3].split('">')[1::2]] == [
        "25.0 %",
        "100.0 %",
        "75.0 %",
        "50.0 %",
    ]
    assert "Success by skill" not in monitor.get(f"/training/{QUESTIONS}").text


def test_the_heat_map_has_forgetting_and_backward_transfer(monitor: Monitor) -> None:
    text = monitor.get(f"/training/{IN_TURN}").text
    part = text[text.index("Skills trained in turn") : text.index("<h2>Sessions")]
    # Worked out in tests/consumers/queries/test_sql_agents.py.
    assert "<dt>average forgetting</dt><dd>+37.5 %</dd>" in part
    assert "<dt>average backward transfer</dt><dd>-37.5 %</dd>" in part
    assert "<td>forgetting</td><td>+50.0 %</td><td>+25.0 %</td><td>—</td>" in part
    assert part.count("<strong>") == 3, "where a stage trained the skill"


def test_a_training_counts_how_sessions_ended_apart_from_what_they_came_to(
    monitor: Monitor,
) -> None:
    text = monitor.get(f"/training/{IN_TURN}").text
    part = text[text.index("<h2>Sessions") : text.index("<h2>Steps")]
    rows = [row for row in part.split("<tr>") if "status " in row]
    numbers = [[cell.split("</td>")[0] for cell in row.split("<td>")[2:]] for row in rows]
    # Columns: correct, incorrect. Rows: agent_validation_failed, completed, task_limit_reached.
    assert numbers == [["0", "28"], ["23", "0"], ["6", "0"]]


def test_an_evaluation_shows_its_own_success_by_skill(monitor: Monitor) -> None:
    text = monitor.get(f"/eval/{ids.eval_id(IN_TURN, 0, 2)}").text
    part = text[text.index("Success by skill") :]
    assert "<td>select</td><td>3 / 4</td>" in part


def test_what_an_agent_or_a_data_set_says_stays_text_under_the_strict_policy(
    monitor: Monitor,
) -> None:
    pages = [f"/training/{IN_TURN}", f"/eval/{ids.eval_id(IN_TURN, 0, 2)}"]
    for run in (dbbench_run(), text_to_sql_run()):
        subjects = {item.subject for item in run if item.subject.startswith("rollout/")}
        pages += [f"/{subject}" for subject in sorted(subjects)]
    seen = 0
    for path in pages:
        reply = monitor.get(path)
        assert reply.code == 200
        assert "<script" not in reply.text, path
        assert "<img" not in reply.text, path
        assert "style=" not in reply.text, path
        assert "unsafe" not in reply.headers["content-security-policy"]
        seen += "&lt;script&gt;alert(1)" in reply.text
    assert seen > 30
