"""Rules that every Learner keeps: the scripted oracle, and transformers + peft in process."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.oracles import NoisyOracle
from producer.algorithms.settings import UpdateSettings
from producer.policy.learner import Learner
from producer.policy.policy import SampleRequest
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network

from .conftest import ClickOnly, make_request, make_screen

SETTINGS = UpdateSettings(
    loss_fn="importance_sampling",
    learning_rate=1e-3,
    num_substeps=1,
    temperature=1.0,
    kl_penalty_coef=0.0,
    seed=0,
)
TASK = next(task for task in demo_tasks() if task.task_id == "train_01_open_settings")
Open = Callable[[], Learner]


@pytest.fixture(params=["oracle", "in_process"])
def open_learner(request: pytest.FixtureRequest, base_folder: Path) -> Open:
    """Opens the learner anew, as another process would."""

    def oracle() -> Learner:
        learner = NoisyOracle(noise=0.3, seed=0)
        for episode in (1, 2, 3):
            device = AndroidSim()
            device.open(TASK, seed=episode)
            learner.attach(UUID(int=episode), device)
        return learner

    def in_process() -> Learner:
        return InProcessPolicy(load_network(str(base_folder), lora_rank=4, seed=1), ClickOnly())

    return oracle if request.param == "oracle" else in_process


def requests() -> list[SampleRequest]:
    return [replace(make_request(n, make_screen(n)), task=TASK) for n in (1, 2, 3)]


def test_there_is_one_completion_per_request_in_order(open_learner: Open) -> None:
    together = open_learner().sample(requests())
    alone = [open_learner().sample([request])[0] for request in requests()]
    assert [item.text for item in together] == [item.text for item in alone]
    assert all(item.actions for item in together)


def test_no_requests_give_no_completions(open_learner: Open) -> None:
    assert open_learner().sample([]) == []


def test_the_same_request_and_seed_give_the_same_completion(open_learner: Open) -> None:
    learner = open_learner()
    first = learner.sample(requests())
    for request in requests():
        learner.forget(request.episode)
    assert open_learner().sample(requests()) == first


def test_forgetting_an_unknown_episode_changes_nothing(open_learner: Open) -> None:
    learner = open_learner()
    learner.forget(UUID(int=99))
    assert len(learner.sample(requests())) == 3


def test_every_update_raises_the_version_by_one_an_empty_one_too(open_learner: Open) -> None:
    learner = open_learner()
    assert learner.version == 0
    result = learner.update([], SETTINGS)
    assert (learner.version, result.num_tokens) == (1, 0)
    learner.update([], SETTINGS)
    assert learner.version == 2


def test_a_saved_state_restores_version_and_behaviour(open_learner: Open, tmp_path: Path) -> None:
    learner = open_learner()
    learner.update([], SETTINGS)
    learner.save_state(tmp_path)
    restored = open_learner()
    restored.load_state(tmp_path)
    assert restored.version == 1
    assert restored.sample(requests()) == open_learner().sample(requests())


def test_a_checkpoint_creates_its_folder_and_is_named_by_a_sha256(
    open_learner: Open, tmp_path: Path
) -> None:
    folder = tmp_path / "step-000001"
    digest = open_learner().save_checkpoint(folder)
    assert folder.is_dir()
    assert len(bytes.fromhex(digest)) == 32
    assert open_learner().save_checkpoint(tmp_path / "again") == digest
