"""The contract of Environment, kept by every implementation.

A new environment is added to ENVIRONMENTS; one that needs a service skips itself where the service
is missing.
"""

import io
from collections.abc import Callable, Iterator

import pytest
from PIL import Image

from producer.environments.android_sim import AndroidSim
from producer.environments.blanked import BlankedEnvironment
from producer.environments.environment import (
    ActionRefusedError,
    Environment,
    EnvironmentFailedError,
    Observation,
    Screenshot,
)
from producer.task import Task
from schemas.actions import Click, Swipe, SystemButton, Wait

ENVIRONMENTS: dict[str, Callable[[], Environment]] = {
    "android_sim": AndroidSim,
    "blanked": lambda: BlankedEnvironment(AndroidSim()),
}
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


@pytest.fixture(params=list(ENVIRONMENTS.values()), ids=list(ENVIRONMENTS))
def environment(request: pytest.FixtureRequest) -> Iterator[Environment]:
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


def test_open_does_the_tasks_setup_shows_the_screen_and_names_the_device(
    environment: Environment,
) -> None:
    assert_is_a_picture(environment.open(WIFI_OFF, seed=1))
    assert environment.provider_id
    assert environment.shell(WIFI).strip() == "0"


def test_open_again_is_a_fresh_device(environment: Environment) -> None:
    environment.open(WIFI_OFF, seed=1)
    first = environment.provider_id
    environment.shell("settings put global airplane_mode_on 1")
    environment.open(WIFI_OFF, seed=1)
    assert environment.provider_id != first
    assert environment.shell("settings get global airplane_mode_on").strip() == "0"


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
        environment.shell(WIFI)
    environment.open(WIFI_OFF, seed=1)
    environment.close()
    environment.close()
    with pytest.raises(EnvironmentFailedError):
        environment.act(Wait())
    with pytest.raises(EnvironmentFailedError):
        environment.shell(WIFI)
