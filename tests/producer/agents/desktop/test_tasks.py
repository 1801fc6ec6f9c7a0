"""Tasks of the desktop: sources, what seeds make of them, and that their oracles solve them."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import JsonValue

from producer.agents import AGENTS
from producer.agents.desktop.environment import DesktopEnvironment
from producer.agents.desktop.oracle_policy import DesktopOracle
from producer.agents.desktop.tasks import DRAWS, HELD_OUT, desktop_task, goal_of
from producer.environments.environment import Screenshot
from producer.errors import UsageError
from producer.policy.policy import SampleRequest
from producer.tasks.sources import load_tasks
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import Action, Terminate
from tests.support.cua_train import CuaTrain, cua_train
from tests.support.desktop import needs_desktop
from tests.support.scripted import picture

__all__ = ["cua_train"]
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


def next_action(oracle: DesktopOracle, name: str, seed: int) -> Action:
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
    oracle, desktop = DesktopOracle(noise=0, seed=0), DesktopEnvironment()
    oracle.attach(EPISODE, desktop)
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


@needs_desktop
def test_a_run_with_the_oracle_solves_the_tasks(
    cua_train: CuaTrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUA_HOME", str(tmp_path))
    tasks = {"source_type": "desktop", "names": ["write-note", "make-folder"]}
    size = {"--num-steps": 1, "--group-size": 2, "--groups-per-batch": 1, "--eval-episodes": 1}
    done = cua_train(
        *("run", "--environment", "desktop", "--model-name", "oracle", "--oracle-noise", "0"),
        *(word for name, value in size.items() for word in (name, str(value))),
        *("--no-monitor", "--tasks", json.dumps(tasks)),
    )
    assert "step 1/1: reward 1.000, success 1.000" in done.stderr
