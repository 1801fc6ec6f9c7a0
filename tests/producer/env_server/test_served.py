"""`cua-train env serve`, by OpenEnv's own client."""

import base64
import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openenv.core import GenericEnvClient
from PIL import Image

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.oracles import oracle_action
from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.tasks import task_of
from producer.agents.text_to_sql.environment import TextToSqlEnvironment
from producer.config import read_config
from producer.env_server.app import make_app
from producer.env_server.environment import ServedEnvironment, TypedAction
from producer.task import Task
from schemas.actions import Terminate
from schemas.entry import EntryContent
from tests.support.cua_train import CuaTrain
from tests.support.env_servers import served_here

WIFI = next(task for task in demo_tasks() if task.task_id == "train_02_enable_wifi")


@contextmanager
def session(url: str) -> Iterator[Any]:
    with GenericEnvClient(base_url=url).sync() as client:
        yield client


def test_a_phone_is_reset_used_and_judged(phone_server: str) -> None:
    sim = AndroidSim()
    sim.open(WIFI, seed=7)
    with session(phone_server) as client:
        result = client.reset(seed=7, task_id=WIFI.task_id, prompt="a column of a data set")
        assert result.observation["text"] == WIFI.description
        assert (result.reward, result.done) == (None, False)
        png = base64.b64decode(result.observation["screenshot"])
        assert png == sim.screenshot().png
        assert Image.open(io.BytesIO(png)).size == (360, 640)
        assert (result.observation["width"], result.observation["height"]) == (360, 640)
        turns = 0
        while not result.done:
            action = oracle_action(WIFI, sim)[1]
            result = client.step(action.model_dump(mode="json"))
            turns += 1
            if not isinstance(action, Terminate):
                sim.perform(action)
        assert result.reward == 1.0
        state = client.state()
        assert (state["task_id"], state["turn"], state["seed"]) == (WIFI.task_id, turns, 7)
        after = client.step({"type": "wait"})
        assert (after.reward, after.done) == (1.0, True)
        assert "reset" in after.observation["error"]
        assert client.reset(seed=7, task_id=WIFI.task_id).done is False
    sim.close()


def test_the_same_seed_is_the_same_task_and_the_same_screen(phone_server: str) -> None:
    with session(phone_server) as one, session(phone_server) as other:
        first, second = one.reset(seed=5), other.reset(seed=5)
        assert first.observation == second.observation
        assert one.state()["task_id"] == other.state()["task_id"]


def test_a_mistake_of_the_agent_is_said_and_costs_a_turn(phone_server: str) -> None:
    with session(phone_server) as client:
        before = client.reset(seed=1, task_id=WIFI.task_id).observation["screenshot"]
        for action, said in (
            ({"type": "click", "x": 360, "y": 0}, "not on the screen"),
            ({"type": "clack"}, "does not match any of the expected tags"),
            ({"type": "click"}, "Field required"),
            ({"type": "execute_sql", "sql": "SELECT 1"}, "executes no SQL"),
        ):
            result = client.step(action)
            assert said in result.observation["error"], result.observation["error"]
            assert result.observation["screenshot"] == before
        assert client.state()["turn"] == 4


def test_an_episode_ends_unsolved_after_its_turns(phone_server: str) -> None:
    with session(phone_server) as client:
        client.reset(seed=1, task_id=WIFI.task_id)
        results = [client.step({"type": "wait", "duration_s": 0}) for _ in range(WIFI.max_steps)]
    assert [result.done for result in results] == [False] * (WIFI.max_steps - 1) + [True]
    assert [result.reward for result in results[-2:]] == [None, 0.0]


def test_an_unknown_task_is_named_with_the_one_that_was_meant(phone_server: str) -> None:
    with session(phone_server) as client, pytest.raises(RuntimeError, match="'train_02_enable_w"):
        client.reset(task_id="train_02_enable_wfi")


def test_it_answers_over_http_too(phone_server: str) -> None:
    url = phone_server.replace("ws://", "http://")
    assert httpx2.get(f"{url}/health").json() == {"status": "healthy"}
    kinds = httpx2.get(f"{url}/schema").json()["action"]["discriminator"]["mapping"]
    assert {"click", "type", "terminate"} <= set(kinds)
    reset = httpx2.post(f"{url}/reset", json={"seed": 3, "task_id": WIFI.task_id}).json()
    assert reset["observation"]["text"] == WIFI.description
    # Each request over HTTP has an environment of its own, as OpenEnv has it.
    step = httpx2.post(f"{url}/step", json={"action": {"type": "wait"}}).json()
    assert "call reset first" in step["observation"]["error"]
    assert httpx2.get(f"{url}/state").json()["task_id"] is None
    unknown = httpx2.post(f"{url}/reset", json={"task_id": "nothing"})
    assert (unknown.status_code, unknown.json()["detail"]) == (
        422,
        "no task 'nothing' is served.",
    )


def test_a_session_with_a_database_ends_with_its_answer_and_there_are_so_many_at_once() -> None:
    config = read_config({"environment": "dbbench", "model_name": "oracle"})
    (gold,) = generate(1, 0, ["select"])
    task = task_of(gold)
    with served_here(make_app(config, [task], 1)) as url, session(url) as client:
        assert client.reset(task_id=task.task_id).observation["text"] == task.description
        failed = client.step({"type": "execute_sql", "sql": "SELECT nothing FROM nowhere"})
        assert failed.observation["text"].startswith("Error: ")
        assert failed.observation["screenshot"] is None
        client.step({"type": "execute_sql", "sql": gold.sql})
        answer = str([tuple(row) for row in gold.answer_direct or ()])
        ended = client.step({"type": "answer", "text": answer})
        assert (ended.reward, ended.done) == (1.0, True)
        with pytest.raises(RuntimeError, match="CAPACITY_REACHED"), session(url) as other:
            other.reset()


def test_a_question_is_answered_with_one_query(tmp_path: Path) -> None:
    path = tmp_path / "people.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE people (name TEXT); INSERT INTO people VALUES ('A')")
    count = "SELECT COUNT(*) FROM people"
    entry = EntryContent(
        kind="text_to_sql", entry_id="0", instruction="How many?", database="people", sql=count
    )
    task = Task("0", "0", "How many?", None, None, 1, None, None, entry=entry)
    served = ServedEnvironment(
        "text_to_sql", lambda: TextToSqlEnvironment(lambda _entry: path), [task], 9
    )
    for sql, reward in ((count, 1.0), ("SELECT 7", 0.0)):
        served.reset()
        ended = served.step(TypedAction.model_validate({"type": "answer", "text": sql}))
        assert (ended.done, ended.reward) == (True, reward)
    served.close()


def test_what_cannot_be_served_is_said_at_once(cua_train: CuaTrain) -> None:
    without_tasks = cua_train("env", "serve", "--environment", "text_to_sql", expected=2).stderr
    assert without_tasks.startswith(
        "error: --tasks: environment text_to_sql has no default tasks; give some, for example"
    )
    unknown = '{"source_type": "ids", "task_ids": ["nothing"]}'
    assert "'nothing'" in cua_train("env", "serve", "--tasks", unknown, expected=2).stderr
