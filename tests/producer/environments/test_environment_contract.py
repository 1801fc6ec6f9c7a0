"""The contract of Environment, kept by every implementation.

A new environment is added to ENVIRONMENTS; one that needs a service skips itself where the service
is missing.
"""

import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from producer.agents.android.shell_judge import JudgedByShell
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.dbbench.environment import DbBenchEnvironment
from producer.agents.text_to_sql.environment import TextToSqlEnvironment
from producer.environments.environment import (
    ActionRefusedError,
    Environment,
    EnvironmentFailedError,
    Observation,
    Screenshot,
    TextObservation,
)
from producer.environments.wrapper import BlankedEnvironment
from producer.task import Task
from schemas.actions import Answer, Click, ExecuteSql, Swipe, SystemButton, Terminate, Wait
from schemas.entry import Column, EntryContent, TableInfo

DEVICES: dict[str, Callable[[], Environment]] = {
    "android_sim": AndroidSim,
    "blanked": lambda: BlankedEnvironment(AndroidSim()),
}
DATABASES: dict[str, Callable[[], Environment]] = {
    "dbbench": DbBenchEnvironment,
}
"""Environments that answer in words."""
QUESTIONS: dict[str, Callable[[Path], Environment]] = {
    "text_to_sql": lambda path: TextToSqlEnvironment(lambda _entry: path),
}
"""Environments of one turn, whose answer is judged beside a database's file."""
ENVIRONMENTS = DEVICES | DATABASES
WIFI_OFF = Task(
    "wifi",
    "Wi-Fi",
    "Turn Wi-Fi on.",
    None,
    None,
    5,
    None,
    None,
    setup=("settings put global wifi_on 0",),
)
WIFI = "settings get global wifi_on"


def shell(environment: Environment, command: str) -> str:
    device = environment.inner if isinstance(environment, BlankedEnvironment) else environment
    assert isinstance(device, JudgedByShell)
    return device.shell(command)


PEOPLE = Task(
    "people",
    "People",
    "How many people are there?",
    None,
    None,
    3,
    None,
    None,
    entry=EntryContent(
        kind="dbbench",
        entry_id="0",
        instruction="How many people are there?",
        table_info=TableInfo(
            name="people", columns=(Column(name="name", type="TEXT"),), rows=(("Ann",), ("Bo",))
        ),
        answer_direct=((2,),),
        sql="SELECT COUNT(*) FROM people",
    ),
)
COUNT = ExecuteSql(sql="SELECT COUNT(*) FROM people")


@pytest.fixture(params=list(DEVICES.values()), ids=list(DEVICES))
def environment(request: pytest.FixtureRequest) -> Iterator[Environment]:
    made: Environment = request.param()
    yield made
    made.close()


@pytest.fixture(params=list(DATABASES.values()), ids=list(DATABASES))
def database(request: pytest.FixtureRequest) -> Iterator[Environment]:
    made: Environment = request.param()
    yield made
    made.close()


def assert_is_a_picture(shown: Observation) -> Screenshot:
    assert isinstance(shown, Screenshot)
    image = Image.open(io.BytesIO(shown.png))
    assert (image.format, image.mode) == ("PNG", "RGB")
    assert image.size == (shown.width_px, shown.height_px)
    return shown


def test_it_names_its_kind_before_it_is_open(environment: Environment) -> None:
    assert environment.env_type
    assert environment.box_type in {"android", "linux"}


def test_a_database_names_its_kind_before_it_is_open(database: Environment) -> None:
    assert database.env_type
    assert database.box_type == "database"
    assert not database.provider_id


def test_a_database_says_in_words_what_came_of_an_action(database: Environment) -> None:
    assert isinstance(database.open(PEOPLE, seed=1), TextObservation)
    assert database.provider_id
    answered = database.act(COUNT)
    assert isinstance(answered, TextObservation)
    assert answered == TextObservation("[(2,)]")


def test_a_database_that_is_opened_again_is_a_fresh_one(database: Environment) -> None:
    database.open(PEOPLE, seed=1)
    first = database.provider_id
    database.act(ExecuteSql(sql="DELETE FROM people"))
    database.open(PEOPLE, seed=1)
    assert database.provider_id != first
    assert database.act(COUNT) == TextObservation("[(2,)]")


def test_what_a_database_cannot_do_is_refused_and_it_goes_on(database: Environment) -> None:
    database.open(PEOPLE, seed=1)
    with pytest.raises(ActionRefusedError):
        database.act(Click(x=0, y=0))
    assert database.act(COUNT) == TextObservation("[(2,)]")


def test_a_database_works_only_while_it_is_open(database: Environment) -> None:
    with pytest.raises(EnvironmentFailedError):
        database.act(COUNT)
    database.open(PEOPLE, seed=1)
    database.close()
    database.close()
    with pytest.raises(EnvironmentFailedError):
        database.act(COUNT)


def test_open_does_the_tasks_setup_shows_the_screen_and_names_the_device(
    environment: Environment,
) -> None:
    assert_is_a_picture(environment.open(WIFI_OFF, seed=1))
    assert environment.provider_id
    assert shell(environment, WIFI).strip() == "0"


def test_open_again_is_a_fresh_device(environment: Environment) -> None:
    environment.open(WIFI_OFF, seed=1)
    first = environment.provider_id
    shell(environment, "settings put global airplane_mode_on 1")
    environment.open(WIFI_OFF, seed=1)
    assert environment.provider_id != first
    assert shell(environment, "settings get global airplane_mode_on").strip() == "0"


def test_an_action_shows_the_screen_of_the_same_size_after_it(environment: Environment) -> None:
    shown = assert_is_a_picture(environment.open(WIFI_OFF, seed=1))
    for action in (
        Wait(duration_s=0),
        Swipe(x=100, y=500, to_x=100, to_y=100),
        SystemButton(button="home"),
    ):
        after = assert_is_a_picture(environment.act(action))
        assert (after.width_px, after.height_px) == (shown.width_px, shown.height_px)


def test_an_action_that_is_impossible_is_refused_and_the_device_goes_on(
    environment: Environment,
) -> None:
    shown = assert_is_a_picture(environment.open(WIFI_OFF, seed=1))
    with pytest.raises(ActionRefusedError):
        environment.act(Click(x=shown.width_px, y=0))
    assert_is_a_picture(environment.act(Wait(duration_s=0)))


def test_nothing_works_before_open_or_after_close_and_close_is_idempotent(
    environment: Environment,
) -> None:
    with pytest.raises(EnvironmentFailedError):
        shell(environment, WIFI)
    environment.open(WIFI_OFF, seed=1)
    environment.close()
    environment.close()
    with pytest.raises(EnvironmentFailedError):
        environment.act(Wait())
    with pytest.raises(EnvironmentFailedError):
        shell(environment, WIFI)


ASKED = replace(
    PEOPLE,
    entry=EntryContent(
        kind="text_to_sql",
        entry_id="0",
        instruction="How many people are there?",
        database="people",
        sql=COUNT.sql,
    ),
)


@pytest.fixture(params=list(QUESTIONS.values()), ids=list(QUESTIONS))
def question(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    path = tmp_path / "people.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE people (name TEXT); INSERT INTO people VALUES ('A')")
    made: Environment = request.param(path)
    yield made
    made.close()


def test_a_question_is_opened_answered_and_closed_twice(question: Environment) -> None:
    assert (question.env_type, question.box_type) == ("text_to_sql", "database")
    assert not question.provider_id
    assert question.open(ASKED, seed=1) == TextObservation(None)
    assert question.provider_id
    for action in (Answer(text=COUNT.sql), Terminate()):
        assert question.act(action) == TextObservation(None)
    question.close()
    question.close()


def test_a_question_executes_nothing_but_its_answer(question: Environment) -> None:
    question.open(ASKED, seed=1)
    for action in (COUNT, Click(x=0, y=0)):
        with pytest.raises(ActionRefusedError):
            question.act(action)


def test_a_question_that_is_none_is_refused(question: Environment) -> None:
    for task in (PEOPLE, WIFI_OFF):
        with pytest.raises(EnvironmentFailedError):
            question.open(task, seed=1)
