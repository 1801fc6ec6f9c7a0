"""Failure injection: the simulated phone dies, hangs or does not start when told to."""

import time

import pytest

from producer.agents.android.sim.device.sim import AndroidSim
from producer.environments.environment import EnvironmentFailedError
from producer.task import Task
from schemas.actions import Wait

NO_TASK = Task("none", "none", "Look around.", None, None, 10, None, None)


def test_a_phone_that_dies_fails_in_the_next_action_and_stays_dead() -> None:
    sim = AndroidSim(fail_after_actions=2)
    sim.open(NO_TASK, 0)
    sim.act(Wait())
    sim.act(Wait())
    with pytest.raises(EnvironmentFailedError, match="died after 2 actions"):
        sim.act(Wait())
    with pytest.raises(EnvironmentFailedError, match="not running"):
        sim.shell("settings get global wifi_on")
    sim.close()
    sim.close()


def test_a_phone_that_does_not_start_fails_in_open() -> None:
    with pytest.raises(EnvironmentFailedError, match="did not start"):
        AndroidSim(fail_on_open=True).open(NO_TASK, 0)


def test_a_phone_that_hangs_blocks_for_as_long_as_it_was_told() -> None:
    sim = AndroidSim(hang_after_actions=0, hang_s=0.05)
    sim.open(NO_TASK, 0)
    started = time.monotonic()
    sim.act(Wait())
    assert time.monotonic() - started >= 0.05


def test_a_setup_command_that_fails_fails_the_environment_and_names_the_command() -> None:
    task = Task(
        "broken",
        "broken",
        "x",
        None,
        None,
        5,
        None,
        None,
        setup=("settings put global wifi_on 1", "settngs put a b"),
    )
    with pytest.raises(EnvironmentFailedError, match="settngs put a b"):
        AndroidSim().open(task, 0)


def test_the_provider_names_each_phone_differently_and_only_once_it_is_open() -> None:
    first, second = AndroidSim(), AndroidSim()
    assert first.provider_id == ""
    first.open(NO_TASK, 7)
    second.open(NO_TASK, 7)
    assert first.provider_id.startswith("sim-7-")
    assert first.provider_id != second.provider_id
