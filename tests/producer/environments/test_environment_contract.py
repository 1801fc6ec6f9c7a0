"""The contract of Environment, kept by every implementation.

A new environment is added to ENVIRONMENTS; one that needs a service skips itself where the service
is missing.
"""

import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from PIL import Image

from producer.agents.adb.environment import AdbEnvironment
from producer.agents.adb.server import AdbServer
from producer.agents.android.shell_judge import JudgedByShell
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.dbbench.environment import DbBenchEnvironment
from producer.agents.desktop.environment import DesktopEnvironment
from producer.agents.gbox.environment import GboxEnvironment
from producer.agents.gbox.service import GboxService
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.openenv.environment import OpenEnvEnvironment
from producer.agents.openenv.mappings import MAPPINGS
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
from schemas.actions import (
    Answer,
    Click,
    ExecuteSql,
    KeyPress,
    Swipe,
    SystemButton,
    Terminate,
    Wait,
)
from schemas.entry import Column, EntryContent, TableInfo
from tests.support.adb_server import FakeAdbServer
from tests.support.chromium import needs_chromium
from tests.support.device_states import DESKTOPS_STATE, PHONES_STATE, WIFI_OFF, State
from tests.support.gbox_server import KEY, FakeGbox


@cache
def adb() -> FakeAdbServer:
    return FakeAdbServer()


def phone_of_adb() -> AdbEnvironment:
    adb().reset("first", "second")
    return AdbEnvironment(AdbServer(adb().address), ("first", "second"))


@cache
def gbox() -> FakeGbox:
    return FakeGbox()


@cache
def gbox_service() -> GboxService:
    return GboxService(KEY, base_url=gbox().url)


@pytest.fixture(scope="module", autouse=True)
def servers() -> Iterator[None]:
    """Ends those that were used."""
    yield
    if adb.cache_info().currsize:
        adb().close()
    if gbox.cache_info().currsize:
        gbox_service().disconnect()
        gbox().close()


DEVICES: dict[str, Callable[[], Environment]] = {
    "android_sim": AndroidSim,
    "blanked": lambda: BlankedEnvironment(AndroidSim()),
    "adb": phone_of_adb,
    "gbox": lambda: GboxEnvironment(gbox_service(), "android", training="t", lifetime_s=60.0),
}
DESKTOPS: dict[str, Callable[[], Environment]] = {
    "desktop": DesktopEnvironment,
}
"""Devices whose shell is a computer's."""
SERVED: dict[str, Callable[[str], Environment]] = {
    "openenv": lambda url: OpenEnvEnvironment([url], MAPPINGS["computer"], (360, 640), 60.0)
}
"""Devices on a server, which have no shell for us."""
DATABASES: dict[str, Callable[[], Environment]] = {"dbbench": DbBenchEnvironment}
"""Environments that answer in words."""
QUESTIONS: dict[str, Callable[[Path], Environment]] = {
    "text_to_sql": lambda path: TextToSqlEnvironment(lambda _entry: path)
}
"""Environments of one turn, whose answer is judged beside a database's file."""
PAGES: dict[str, Callable[[], Environment]] = {"miniwob": MiniWobEnvironment}
"""Web pages that judge themselves."""
ENVIRONMENTS = DEVICES | DESKTOPS | DATABASES | PAGES


def state_of(environment: Environment) -> State:
    return DESKTOPS_STATE if isinstance(environment, DesktopEnvironment) else PHONES_STATE


def shell(environment: Environment, command: str) -> str:
    device = environment.inner if isinstance(environment, BlankedEnvironment) else environment
    assert isinstance(device, JudgedByShell | DesktopEnvironment)
    return device.shell(command)


def made_device(request: pytest.FixtureRequest) -> Environment:
    name = request.param
    if name in SERVED:
        return SERVED[name](request.getfixturevalue("phone_server"))
    if name in DESKTOPS:
        request.getfixturevalue("desktop_programs")
    return (DEVICES | DESKTOPS)[name]()


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


def each_of(makers: dict[str, Callable[[], Environment]]) -> Callable[..., Iterator[Environment]]:
    """A fixture of every implementation, closed afterwards."""

    @pytest.fixture(params=list(makers.values()), ids=list(makers))
    def made(request: pytest.FixtureRequest) -> Iterator[Environment]:
        environment: Environment = request.param()
        yield environment
        environment.close()

    return made


database, page = each_of(DATABASES), each_of(PAGES)


@pytest.fixture(params=[*DEVICES, *DESKTOPS])
def environment(request: pytest.FixtureRequest) -> Iterator[Environment]:
    made = made_device(request)
    yield made
    made.close()


@pytest.fixture(params=[*DEVICES, *DESKTOPS, *SERVED])
def screened(request: pytest.FixtureRequest) -> Iterator[Environment]:
    """With a shell or without one."""
    made = made_device(request)
    yield made
    made.close()


def assert_is_a_picture(shown: Observation) -> Screenshot:
    assert isinstance(shown, Screenshot)
    image = Image.open(io.BytesIO(shown.png))
    assert (image.format, image.mode) == ("PNG", "RGB")
    assert image.size == (shown.width_px, shown.height_px)
    return shown


def test_it_names_its_kind_before_it_is_open(screened: Environment) -> None:
    assert screened.env_type
    assert screened.box_type in {"android", "linux"}
    assert not screened.provider_id


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
    task, read, set_up, _ = state_of(environment)
    assert_is_a_picture(environment.open(task, seed=1))
    assert environment.provider_id
    assert shell(environment, read).strip() == set_up


def test_open_again_is_a_fresh_device(environment: Environment) -> None:
    task, read, set_up, change = state_of(environment)
    environment.open(task, seed=1)
    first = environment.provider_id
    shell(environment, change)
    assert shell(environment, read).strip() != set_up
    environment.open(task, seed=1)
    assert environment.provider_id != first
    assert shell(environment, read).strip() == set_up


def test_an_action_shows_the_screen_of_the_same_size_after_it(screened: Environment) -> None:
    shown = assert_is_a_picture(screened.open(state_of(screened).task, seed=1))
    for action in (
        Wait(duration_s=0),
        Swipe(x=100, y=500, to_x=100, to_y=100),
        KeyPress(keys=("home",)),
    ):
        after = assert_is_a_picture(screened.act(action))
        assert (after.width_px, after.height_px) == (shown.width_px, shown.height_px)


def test_an_action_that_is_impossible_is_refused_and_the_device_goes_on(
    screened: Environment,
) -> None:
    shown = assert_is_a_picture(screened.open(state_of(screened).task, seed=1))
    with pytest.raises(ActionRefusedError):
        screened.act(Click(x=shown.width_px, y=0))
    assert_is_a_picture(screened.act(Wait(duration_s=0)))


def test_a_device_that_is_opened_again_is_another_and_works_only_while_it_is_open(
    screened: Environment,
) -> None:
    with pytest.raises(EnvironmentFailedError):
        screened.act(Wait(duration_s=0))
    screened.open(state_of(screened).task, seed=1)
    first = screened.provider_id
    screened.open(state_of(screened).task, seed=1)
    assert screened.provider_id not in {"", first}
    screened.close()
    screened.close()
    with pytest.raises(EnvironmentFailedError):
        screened.act(Wait(duration_s=0))


def test_a_shell_works_only_while_the_device_is_open(environment: Environment) -> None:
    with pytest.raises(EnvironmentFailedError):
        shell(environment, state_of(environment).read)
    environment.open(state_of(environment).task, seed=1)
    environment.close()
    with pytest.raises(EnvironmentFailedError):
        shell(environment, state_of(environment).read)


BUTTON = Task(
    "click-test-2", "Click", "Do as it says.", None, None, 5, None, None, judge="environment"
)


@needs_chromium
def test_a_page_shows_a_screen_with_words_and_is_fresh_each_time(page: Environment) -> None:
    assert page.env_type
    assert (page.box_type, page.provider_id) == ("linux", "")
    shown = assert_is_a_picture(page.open(BUTTON, seed=1))
    assert shown.text
    first = page.provider_id
    for action in (Wait(duration_s=0), Swipe(x=10, y=90, to_x=20, to_y=80), Click(x=1, y=1)):
        after = assert_is_a_picture(page.act(action))
        assert (after.width_px, after.height_px) == (shown.width_px, shown.height_px)
    assert page.open(BUTTON, seed=1) == shown
    assert page.provider_id != first


@needs_chromium
def test_what_a_page_cannot_do_is_refused_and_it_works_only_while_it_is_open(
    page: Environment,
) -> None:
    with pytest.raises(EnvironmentFailedError):
        page.act(Wait())
    shown = assert_is_a_picture(page.open(BUTTON, seed=1))
    for action in (Click(x=shown.width_px, y=0), SystemButton(button="home"), COUNT):
        with pytest.raises(ActionRefusedError):
            page.act(action)
    assert_is_a_picture(page.act(Wait(duration_s=0)))
    page.close()
    page.close()
    with pytest.raises(EnvironmentFailedError):
        page.act(Wait())


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
