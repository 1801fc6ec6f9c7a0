"""Fixtures: a tiny policy with random weights, random screens and requests."""

import io
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
import torch
from PIL import Image

from producer.agents.android.policy.build import build_policy
from producer.algorithms.settings import UpdateSettings
from producer.codecs.codec import Codec
from producer.environments.environment import Screenshot
from producer.policy.learner import Trajectory
from producer.policy.policy import SampleRequest, Turn
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.network import Network
from producer.task import Task
from schemas.actions import Action, Click
from schemas.turn import TakenAction
from tests.support.small_size import SIZE
from tests.support.turns import past_turn, trained_turn
from tests.support.update_settings import NO_OUTCOME

Play = Callable[[int, int], list[Turn]]
"""(episode, turns) -> its turns, sampled."""
SETTINGS = UpdateSettings(
    loss_fn="importance_sampling",
    learning_rate=1e-2,
    num_substeps=1,
    temperature=1.0,
    kl_penalty_coef=0.0,
    seed=0,
)
TEXTS = ("Turn on Wi-Fi", "Open Settings now", "click(1,2)", "home()")


class ClickOnly(Codec):
    """A codec with one action."""

    name = "click-only"

    def encode(self, action: Action, width_px: int, height_px: int) -> str:
        """Not used: policies only parse."""
        raise NotImplementedError

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """`click(x,y)` in percent; anything else is a parse error."""
        try:
            x, y = (
                int(part) for part in answer.removeprefix("click(").removesuffix(")").split(",")
            )
        except ValueError:
            return (
                TakenAction(
                    tool_name="",
                    tool_args={},
                    action=None,
                    error_type="parse",
                    error_message=answer,
                ),
            )
        action = Click(x=x * width_px // 100, y=y * height_px // 100)
        return (TakenAction(tool_name="click", tool_args={"x": x, "y": y}, action=action),)


def make_task(description: str) -> Task:
    return Task("task", "task", description, None, None, 5, None, None)


def make_screen(seed: int, width_px: int = 90, height_px: int = 160) -> Screenshot:
    """Random pixels, different for every seed."""
    pixels = np.random.default_rng(seed).integers(0, 255, (height_px, width_px, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return Screenshot(buffer.getvalue(), width_px, height_px)


def make_request(
    episode: int, screen: Screenshot, history: tuple[Turn, ...] = (), **options: object
) -> SampleRequest:
    """A request of the task `description`, by default `Turn on Wi-Fi`."""
    settings = {"temperature": 1.0, "max_tokens": 6, "seed": episode} | options
    task = make_task(str(settings.pop("description", "Turn on Wi-Fi")))
    return SampleRequest(UUID(int=episode), task, history, screen, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    build_policy(folder, TEXTS, seed=0, size=SIZE)
    return folder


@pytest.fixture
def network(base_folder: Path) -> Network:
    """With an adapter that changes the output, as after some updates."""
    network = load_network(str(base_folder), lora_rank=4, seed=1)
    randomize_adapter(network)
    return network


def randomize_adapter(network: Network, seed: int = 7) -> None:
    """Set the adapter to random weights."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.trainable():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))


@pytest.fixture
def policy(network: Network) -> InProcessPolicy:
    return InProcessPolicy(network, ClickOnly())


@pytest.fixture
def play(policy: InProcessPolicy) -> Play:
    """Samples an episode on its own and returns its turns."""

    def play_episode(episode: int, num_turns: int) -> list[Turn]:
        history: list[Turn] = []
        for turn in range(num_turns):
            screen = make_screen(100 * episode + turn)
            completion = policy.sample(
                [make_request(episode, screen, tuple(history), seed=1000 * episode + turn)]
            )[0]
            history.append(past_turn(screen, completion.text, completion.tokens))
        policy.forget(UUID(int=episode))
        return history

    return play_episode


def trajectory(turns: list[Turn], advantage: float) -> Trajectory:
    return Trajectory(
        make_task("Turn on Wi-Fi"),
        tuple(trained_turn(turn.screenshot, turn.tokens) for turn in turns if turn.tokens),
        advantage,
        NO_OUTCOME,
    )


def weights(network: Network) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in network.trainable()]


def are_equal(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(some, others, strict=True))


@pytest.fixture
def batch(play: Play) -> list[Trajectory]:
    return [
        trajectory(play(episode, 1 + episode % 3), advantage)
        for episode, advantage in enumerate([1.0, -1.0, 0.5, -0.5], start=1)
    ]
