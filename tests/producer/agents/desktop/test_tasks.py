"""Tasks of the desktop: sources, what seeds make of them, and that their oracles solve them."""

from uuid import UUID

import pytest
from pydantic import JsonValue

from producer.agents import AGENTS
from producer.agents.desktop.tasks import DRAWS, HELD_OUT, desktop_task, goal_of
from producer.config import RunConfig
from producer.environments.environment import Screenshot
from producer.errors import UsageError
from producer.policy.learner import Learner
from producer.policy.policy import SampleRequest
from producer.tasks.sources import load_tasks
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import Action, Terminate
from tests.support.desktop import needs_desktop
from tests.support.scripted import picture

EPISODE = UUID(int=1)
SEEDS = range(50)


def names(source: JsonValue) -> list[str]:
    return [task.task_id for task in load_tasks(source)]


def test_by_default_a_run_trains_on_seven_tasks_and_is_evaluated_on_three_others() -> None:
    defaults = AGENTS["desktop"].default_tasks(seed=0)
    train, held_out = names(defaults["tasks"]), names(defaults["eval_tasks"])
    assert (len(train), {*held_out}) == (7, {*HELD_OUT})
    assert {*train} | {*held_out} == {*DRAWS}
    assert not {*train} & {*held_out}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"names": ["write-nte"]}, "no task is called 'write-nte'. Did you mean 'write-note'"),
        ({"names": ["write-note"], "split": "train"}, "give names or a split, not both"),
        ({"split": "dev"}, 'split: unknown value "dev". Use one of train, held_out'),
    ],
)
def test_a_mistake_in_a_source_is_named(source: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_tasks({"source_type": "desktop", **source})


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_varies_what_a_task_asks_for_and_the_same_seed_does_not(name: str) -> None:
    asked = [goal_of(name, seed).instruction for seed in SEEDS]
    assert asked == [goal_of(name, seed).instruction for seed in SEEDS]
    assert len({*asked}) >= (2 if name.startswith("set-") else 20 if name != "delete-file" else 5)


def next_action(oracle: Learner, name: str, seed: int) -> Action:
    shown = Screenshot(picture(0).png, 800, 600)
    request = SampleRequest(EPISODE, desktop_task(name), (), shown, 0.0, 10, seed)
    (completion,) = oracle.sample([request])
    (call,) = completion.actions
    assert call.action is not None
    return call.action


@needs_desktop
@pytest.mark.parametrize("name", DRAWS)
def test_the_oracle_solves_the_task_with_mouse_and_keys_and_doing_nothing_does_not(
    name: str,
) -> None:
    task = desktop_task(name)
    settings = RunConfig(environment="desktop", oracle_noise=0)
    oracle, make_environment = AGENTS["desktop"].open_oracle(settings)
    desktop = make_environment(EPISODE)
    try:
        assert desktop.open(task, 2).text == goal_of(name, 2).instruction
        assert not desktop.judge(task, NO_EVIDENCE).success
        for turn in range(task.max_steps):
            action = next_action(oracle, name, turn)
            if action == Terminate():
                break
            desktop.act(action)
        verdict = desktop.judge(task, NO_EVIDENCE)
        assert verdict.success, verdict
    finally:
        desktop.close()
