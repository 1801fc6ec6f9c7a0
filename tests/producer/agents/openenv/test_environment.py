"""Episodes on OpenEnv servers of others, in this process unless they die."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from socket import create_connection
from time import monotonic, sleep

import pytest

from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.tasks import task_of
from producer.agents.dbbench.environment import DbBenchEnvironment
from producer.agents.openenv.agent import OpenEnvAgent
from producer.agents.openenv.environment import OpenEnvEnvironment
from producer.agents.openenv.mappings import MAPPINGS
from producer.config import read_config
from producer.env_server.app import make_app
from producer.environments.environment import EnvironmentFailedError, Screenshot, TextObservation
from producer.task import Task
from producer.tasks.sources import load_tasks
from producer.validators.verdict import NO_EVIDENCE, Evidence
from schemas.actions import Action, Answer, Click, ExecuteSql, Terminate, Type
from schemas.turn import TakenAction
from tests.support.env_servers import served_here
from tests.support.foreign_env import PICTURE, RELEASED, browser_app, echo_app
from tests.support.paths import ROOT
from tests.support.ports import free_port

(OWN,) = load_tasks({"source_type": "openenv"})
(NAMED,) = load_tasks({"source_type": "openenv_ids", "task_ids": ["maze"]})


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    with served_here(echo_app()) as url:
        yield url


def opened(
    *urls: str, task: Task = OWN, screen_px: tuple[int, int] | None = None, timeout_s: float = 10.0
) -> OpenEnvEnvironment:
    environment = OpenEnvEnvironment(urls, MAPPINGS["text"], screen_px, timeout_s)
    environment.open(task, 2**31 + 4)
    return environment


def said(*actions: Action) -> Evidence:
    calls = tuple(TakenAction(tool_name=one.type, tool_args={}, action=one) for one in actions)
    return Evidence((), calls, len(calls))


def test_a_server_gets_the_seed_and_the_tasks_id_and_answers_in_words(echo: str) -> None:
    environment = OpenEnvEnvironment([echo], MAPPINGS["text"], None, 10.0)
    assert not environment.provider_id
    assert environment.open(OWN, 2**31 + 4) == TextObservation("task any, seed 4")
    first = environment.provider_id
    assert environment.open(NAMED, 4) == TextObservation("task maze, seed 4")
    assert environment.provider_id not in {"", first}
    assert environment.act(Type(text="hello")) == TextObservation("hello")
    environment.close()
    environment.close()


@pytest.mark.parametrize(("word", "is_solved", "reward"), [("win", True, 0.5), ("lose", False, -1)])
def test_the_server_ends_and_rewards_the_episode(
    echo: str, word: str, is_solved: bool, reward: float
) -> None:
    environment = opened(echo)
    assert environment.act(Type(text=word)).is_over
    verdict = environment.judge(OWN, NO_EVIDENCE)
    assert (verdict.success, verdict.details["reward"]) == (is_solved, reward)
    environment.close()


def test_an_episode_that_the_agent_ends_is_judged_by_the_last_reward(echo: str) -> None:
    environment = opened(echo)
    environment.act(Type(text="hello"))
    assert environment.judge(OWN, said(Terminate())).success is False
    environment.close()


def test_the_agents_answer_is_sent_before_the_verdict(echo: str) -> None:
    environment = opened(echo)
    assert environment.judge(OWN, said(Answer(text="win"), Terminate())).success is True
    environment.close()


def test_an_end_without_a_reward_is_no_verdict(echo: str) -> None:
    environment = opened(echo)
    environment.act(Type(text="stop"))
    with pytest.raises(EnvironmentFailedError, match="without a reward"):
        environment.judge(OWN, NO_EVIDENCE)
    environment.close()


def test_a_picture_of_numbers_is_a_screenshot_with_words() -> None:
    with served_here(echo_app(pictures=True)) as url:
        environment = opened(url, screen_px=(2, 3))
        shown = environment.act(Type(text="hello"))
        environment.close()
    assert isinstance(shown, Screenshot)
    assert (shown.width_px, shown.height_px, shown.text) == (2, 3, "hello")
    from io import BytesIO

    from PIL import Image

    pixels = Image.open(BytesIO(shown.png))
    assert [pixels.getpixel((x, y)) for y in range(3) for x in range(2)] == [
        tuple(pixel) for row in PICTURE for pixel in row
    ]


def test_a_browsers_goal_is_said_once_and_its_errors_leave_the_screen() -> None:
    with served_here(browser_app()) as url:
        environment = OpenEnvEnvironment([url], MAPPINGS["browsergym"], (2, 3), 10.0)
        first = environment.open(NAMED, 0)
        failed = environment.act(Click(x=2, y=2))
        last = environment.act(Click(x=1, y=1))
        assert [shown.text for shown in (first, failed, last)] == [
            "Do maze.",
            "no such thing",
            None,
        ]
        assert isinstance(first, Screenshot)
        assert isinstance(failed, Screenshot)
        assert first.png == failed.png
        assert last.is_over
        assert environment.judge(OWN, NO_EVIDENCE).success
        environment.close()


def test_an_episode_is_on_the_first_server_that_has_room() -> None:
    with served_here(echo_app(1)) as one, served_here(echo_app(1)) as other:
        first, second = opened(one, other), opened(one, other)
        with pytest.raises(EnvironmentFailedError, match="CAPACITY_REACHED"):
            opened(one, other, timeout_s=3.0)
        first.close()
        opened(one, other).close()
        second.close()


def test_a_server_that_is_gone_is_passed_over(echo: str) -> None:
    for _ in range(5):
        opened("ws://127.0.0.1:9", echo).close()


def test_what_a_server_cannot_do_fails_the_attempt(echo: str) -> None:
    environment = opened(echo)
    with pytest.raises(EnvironmentFailedError, match=f"{echo}: .*EXECUTION_ERROR"):
        environment.act(Type(text="fail"))
    environment.close()
    with pytest.raises(EnvironmentFailedError, match="not open"):
        environment.act(Type(text="hello"))


def test_a_server_that_hangs_fails_the_attempt_after_its_time(echo: str) -> None:
    environment = opened(echo, timeout_s=3.0)
    with pytest.raises(EnvironmentFailedError, match="did not answer within 3 s"):
        environment.act(Type(text="hang"))
    RELEASED.set()
    environment.close()


def test_a_server_that_dies_fails_the_attempt() -> None:
    port = free_port()
    command = [sys.executable, "-m", "tests.support.foreign_env", str(port)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        until_s = monotonic() + 120
        while True:
            try:
                create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert monotonic() < until_s
                sleep(0.05)
        environment = opened(f"ws://127.0.0.1:{port}")
        with pytest.raises(EnvironmentFailedError, match=f"ws://127.0.0.1:{port}"):
            environment.act(Type(text="die"))
        environment.close()
        assert process.wait(60) == 1


def test_a_database_of_ours_is_the_same_over_the_wire() -> None:
    (entry,) = generate(1, 0, ["select"])
    config = read_config({"environment": "dbbench", "model_name": "oracle"})
    with served_here(make_app(config, [task_of(entry)], 1)) as url:
        environment = OpenEnvEnvironment([url], MAPPINGS["computer"], None, 10.0)
        assert environment.open(OWN, 0) == TextObservation(task_of(entry).description)
        local = DbBenchEnvironment()
        local.open(task_of(entry), 0)
        for sql in (str(entry.sql), "SELECT nothing FROM nowhere"):
            assert environment.act(ExecuteSql(sql=sql)) == local.act(ExecuteSql(sql=sql))
        answer = Answer(text=str([tuple(row) for row in entry.answer_direct or ()]))
        assert environment.judge(OWN, said(answer, Terminate())).success
        environment.close()
        local.close()


def test_a_task_of_the_servers_is_judged_by_it_and_can_be_recorded() -> None:
    assert (OWN.task_id, OWN.validation_type, OWN.validation_config) == (
        "openenv",
        "environment",
        {},
    )
    assert NAMED.validation_config == {"task_id": "maze"}
    assert replace(NAMED, task_id="openenv").description == OWN.description
    assert OpenEnvAgent().default_tasks(0) == {"tasks": {"source_type": "openenv"}}
