"""REINFORCE on sessions with a database: what made the original unable to learn fails here.

Its log-probs were detached, or the last turn's alone; it decoded greedily; its accumulation never
stepped; and what it resumed restored nothing.
"""

import json
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import torch

from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.tasks import task_of
from producer.algorithms.settings import UpdateSettings
from producer.config import read_config
from producer.policy.compute_settings import PolicySettings
from producer.policy.learner import Trajectory
from producer.policy.policy import SampleRequest, Turn
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.open import open_in_process
from producer.task import Task
from producer.training.run import run
from producer.training.updates import update_settings
from tests.support.forked_process import forked_training
from tests.support.reading import installation_at, of_type, read_all
from tests.support.same_run import bits_of, differences
from tests.support.text_policy import RUN, SEED, SKILLS, build_knowing_policy, known_sessions
from tests.support.turns import past_turn, trained_turn
from tests.support.update_settings import NO_OUTCOME

TIMEOUT_S = 300.0
CONFIG = read_config({"environment": "dbbench"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("knowing")
    build_knowing_policy(folder)
    return folder


def open_policy(folder: Path, dropout: float = 0.0) -> InProcessPolicy:
    settings = PolicySettings(
        str(folder),
        lora_rank=CONFIG.lora_rank,
        lora_alpha=CONFIG.lora_alpha,
        target_modules=CONFIG.target_modules,
        screen_px=None,
        text_format=CONFIG.agent.text_format(CONFIG),
        lora_dropout=dropout,
    )
    return open_in_process(settings)


def tasks() -> list[Task]:
    return [task_of(entry) for entry in generate(6, SEED, SKILLS)]


def session_of(policy: InProcessPolicy, number: int, advantage: float) -> Trajectory:
    """Two sampled turns on entry `number`."""
    task, said = tasks()[number], known_sessions()[number].rounds[0].said
    history: tuple[Turn, ...] = ()
    for text in (None, said):
        request = SampleRequest(
            UUID(int=number), task, history, None, 1.0, 40, 10 * number + len(history), text
        )
        completion = policy.sample([request])[0]
        history = (*history, past_turn(None, completion.text, completion.tokens))
    policy.forget(UUID(int=number))
    turns = tuple(trained_turn(None, turn.tokens) for turn in history if turn.tokens is not None)
    return Trajectory(task, turns, advantage, NO_OUTCOME)


def gradients_by_hand(policy: InProcessPolicy, sessions: list[Trajectory]) -> list[torch.Tensor]:
    """Of -sum of advantage * log p over every turn's tokens, by transformers and autograd."""
    network = policy._network
    loss = torch.zeros(())
    for session in sessions:
        tokens: list[int] = []
        for turn in session.turns:
            prompt, completion = turn.tokens.prompt_tokens, turn.tokens.completion_tokens
            context = torch.tensor([[*tokens, *prompt, *completion]])
            logits = network.adapted(input_ids=context).logits[0]
            begin = len(tokens) + len(prompt)
            logprobs = logits.log_softmax(-1)
            for at, token in enumerate(completion, start=begin):
                loss = loss - session.advantage * logprobs[at - 1, token]
            tokens += [*prompt, *completion]
    return list(torch.autograd.grad(loss, network.trainable(), allow_unused=False))


def settings(**changes: object) -> UpdateSettings:
    given = {"environment": "dbbench", "learning_rate": 1e-2, **changes}
    return update_settings(read_config(given), generation=0, step=1)


def test_the_default_is_the_papers_and_samples_in_training() -> None:
    assert (CONFIG.lora_rank, CONFIG.lora_alpha, CONFIG.lora_dropout) == (16, 32, 0.1)
    assert CONFIG.target_modules == ("attention",)
    assert (CONFIG.group_size, CONFIG.num_substeps) == (1, 1)
    assert (CONFIG.advantage, CONFIG.baseline, CONFIG.loss_fn) == ("reinforce", "none", "reinforce")
    assert (CONFIG.reward, CONFIG.temperature, CONFIG.max_turns) == ("dbbench", 1.0, 3)
    whole = read_config({"environment": "dbbench", "model_name": "Qwen/Qwen2.5-7B-Instruct"})
    assert (whole.learning_rate, whole.group_size, whole.groups_per_batch) == (1e-5, 1, 1)


@pytest.mark.parametrize("num_sessions", [1, 3])
def test_an_update_has_the_gradient_of_every_turn_of_every_session(
    folder: Path, num_sessions: int
) -> None:
    """The first AdamW step moves each weight by the rate against its gradient's sign."""
    policy = open_policy(folder)
    sessions = [
        session_of(policy, number, advantage)
        for number, advantage in zip(range(num_sessions), (1.0, -0.1, -0.3), strict=False)
    ]
    expected = gradients_by_hand(policy, sessions)
    before = [parameter.detach().clone() for parameter in policy._network.trainable()]
    result = policy.update(sessions, settings())
    norm = torch.sqrt(sum((item.square().sum() for item in expected), torch.zeros(())))
    assert result.gradient_norm == pytest.approx(norm.item(), rel=1e-4)
    assert norm > 0.01
    assert policy.version == 1
    num_moved = 0
    for old, new, gradient in zip(before, policy._network.trainable(), expected, strict=True):
        clear = gradient.abs() > 1e-4 * norm
        moved = (new.detach() - old)[clear]
        assert torch.allclose(moved, -1e-2 * gradient[clear].sign(), atol=1e-4)
        num_moved += int(clear.sum())
    assert num_moved > 100


def test_the_same_session_without_its_first_turn_has_another_gradient(folder: Path) -> None:
    policy = open_policy(folder)
    session = session_of(policy, 0, 1.0)
    every = gradients_by_hand(policy, [session])
    assert len(session.turns) == 2
    first = Trajectory(session.task, session.turns[:1], 1.0, NO_OUTCOME)
    alone = gradients_by_hand(policy, [first])
    difference = sum(float((one - other).norm()) for one, other in zip(every, alone, strict=True))
    assert difference > 0.01


def test_sessions_of_one_prompt_are_sampled_differently(folder: Path) -> None:
    policy = open_policy(folder)
    task = tasks()[0]
    requests = [
        SampleRequest(UUID(int=number), task, (), None, CONFIG.temperature, 40, number)
        for number in range(24)
    ]
    assert len({item.text for item in policy.sample(requests)}) > 2


def test_dropout_changes_the_update_by_its_seed_alone_and_never_what_is_sampled(
    folder: Path,
) -> None:
    def updated(dropout: float, step_seed: int) -> list[torch.Tensor]:
        policy = open_policy(folder, dropout)
        sessions = [session_of(policy, number, 1.0) for number in range(3)]
        for _ in range(2):  # B is 0 before the first
            policy.update(sessions, settings(seed=step_seed))
        again = session_of(policy, 0, 1.0)
        recorded = again.turns[0].tokens.completion_logprobs
        assert recorded == session_of(policy, 0, 1.0).turns[0].tokens.completion_logprobs
        return [parameter.detach().clone() for parameter in policy._network.trainable()]

    def same(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
        return all(torch.equal(one, other) for one, other in zip(some, others, strict=True))

    assert same(updated(0.1, 0), updated(0.1, 0))
    assert not same(updated(0.1, 0), updated(0.1, 1))
    assert not same(updated(0.1, 0), updated(0.0, 0))


def train(home: Path, **changes: object) -> None:
    """To its end, in this process."""
    run(read_config({**RUN, **changes}), installation=installation_at(home))


def read(home: Path) -> list[dict[str, Any]]:
    return [json.loads(record.value) for record in read_all(installation_at(home))]


def kill_once_trained(home: Path, after: int, **changes: object) -> None:
    """SIGKILL after so many finished steps, in the midst of the next."""
    deadline_s = time.monotonic() + TIMEOUT_S
    with forked_training(home, {**RUN, **changes}, {"acting_s": 0.3}) as process:
        while time.monotonic() < deadline_s and process.is_running():
            process.halt()
            try:
                events = read(home)
            except (OSError, ValueError):
                events = []  # the log is being made
            if len(of_type(events, "step.finished")) >= after:
                return
            process.go_on()
            time.sleep(0.1)
    pytest.fail(f"the process ended before step {after}")


def samples_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        sample for chosen in of_type(events, "step.samples_chosen") for sample in chosen["samples"]
    ]


def test_without_a_baseline_the_advantage_is_the_reward(folder: Path, tmp_path: Path) -> None:
    train(tmp_path, model_name=str(folder), baseline="none", num_steps=2)
    samples = samples_of(read(tmp_path))
    assert [sample["advantage"] for sample in samples] == [sample["reward"] for sample in samples]


def test_a_killed_training_goes_on_with_the_bits_of_an_undisturbed_one(
    folder: Path, tmp_path: Path
) -> None:
    changes = {"model_name": str(folder), "baseline": "moving", "num_steps": 4}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(whole, **changes)
    kill_once_trained(killed, 2, **changes)
    train(killed, **changes)
    assert differences(bits_of(whole, "small"), bits_of(killed, "small")) == []
    events = read(whole)
    finished = of_type(events, "step.finished")
    # Three sessions a step make one optimiser step: accumulation steps.
    assert [item["policy_version"] for item in finished] == [1, 2, 3, 4]
    assert {item["num_trajectories"] for item in finished} == {3}
    rewards = {
        event["data"]["reward"] for event in events if event["type"] == "cua.rollout.finished"
    }
    assert rewards <= {1.0, -0.1, -0.3}
    assert 1.0 in rewards
    averages = [0.0]
    for step in finished:
        assert step["metrics"]["optim/baseline"] == pytest.approx(averages[-1])
        averages.append(0.9 * averages[-1] + 0.1 * step["reward_mean"])
    steps = [event["data"]["step_id"] for event in events if event["type"] == "cua.step.finished"]
    by_step = dict(zip(steps, averages, strict=False))
    for chosen in of_type(events, "step.samples_chosen"):
        for item in chosen["samples"]:
            assert item["advantage"] == pytest.approx(item["reward"] - by_step[chosen["step_id"]])
