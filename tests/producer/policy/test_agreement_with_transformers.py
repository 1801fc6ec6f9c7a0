"""Plain transformers and peft reproduce our numbers from folder, adapter and recorded turns."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from PIL import Image
from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

from producer.algorithms.settings import UpdateSettings
from producer.policy.learner import Trajectory
from producer.policy.policy import Turn
from producer.policy.torch_policy.forward import Segment, pad_segments
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from tests.support.rounding import EPS, rounding_of_forward
from tests.support.turns import trained_turn
from tests.support.update_settings import NO_OUTCOME

from .conftest import make_screen, make_task

Play = Callable[[int, int], list[Turn]]


def plain_logprobs(folder: Path, adapter: Path, turns: list[Turn]) -> list[float]:
    """Of all completion tokens, by one standard forward pass over the whole dialogue."""
    processor = AutoProcessor.from_pretrained(folder)
    network = PeftModel.from_pretrained(
        Qwen3VLForConditionalGeneration.from_pretrained(folder), adapter
    ).eval()
    tokens: list[int] = []
    sampled_at: list[int] = []
    for turn in turns:
        assert turn.tokens is not None
        tokens += turn.tokens.prompt_tokens
        sampled_at += range(len(tokens), len(tokens) + len(turn.tokens.completion_tokens))
        tokens += turn.tokens.completion_tokens
    pixels = processor.image_processor(
        images=[Image.open(io.BytesIO(turn.screenshot.png)) for turn in turns if turn.screenshot],
        return_tensors="pt",
    )
    input_ids = torch.tensor([tokens])
    is_image = (input_ids == network.base_model.model.config.image_token_id).int()
    with torch.no_grad():
        logits = network(input_ids=input_ids, mm_token_type_ids=is_image, **pixels).logits[0]
    logprobs = torch.log_softmax(logits, dim=-1)
    return [float(logprobs[at - 1, tokens[at]]) for at in sampled_at]


@pytest.fixture
def adapter(policy: InProcessPolicy, tmp_path: Path) -> Path:
    policy.save_checkpoint(tmp_path)
    return tmp_path


def test_sampled_logprobs_of_every_turn_are_those_of_plain_transformers(
    base_folder: Path, adapter: Path, network: Network, play: Play
) -> None:
    turns = play(3, 4)
    ours = [
        logprob
        for turn in turns
        if turn.tokens is not None
        for logprob in turn.tokens.completion_logprobs
    ]
    bound = rounding_of_forward(network.base, max(map(abs, ours)))
    assert ours == pytest.approx(plain_logprobs(base_folder, adapter, turns), rel=0, abs=bound)


def test_the_loss_of_one_substep_is_that_of_plain_transformers(
    base_folder: Path, adapter: Path, network: Network, policy: InProcessPolicy, play: Play
) -> None:
    episodes = [play(episode, 1 + episode % 3) for episode in range(1, 6)]
    advantages = [0.5, -1.0, 0.25, 1.5, -0.75]
    trajectories = [
        Trajectory(
            make_task("Turn on Wi-Fi"),
            tuple(trained_turn(turn.screenshot, turn.tokens) for turn in turns if turn.tokens),
            advantage,
            NO_OUTCOME,
        )
        for turns, advantage in zip(episodes, advantages, strict=True)
    ]
    settings = UpdateSettings(
        loss_fn="importance_sampling",
        learning_rate=1e-3,
        num_substeps=1,
        temperature=1.0,
        kl_penalty_coef=0.0,
        seed=0,
    )
    result = policy.update(trajectories, settings)
    expected, of_loss, num_tokens, largest = 0.0, 0.0, 0, 0.0
    for turns, advantage in zip(episodes, advantages, strict=True):
        old = [
            logprob
            for turn in turns
            if turn.tokens is not None
            for logprob in turn.tokens.completion_logprobs
        ]
        new = plain_logprobs(base_folder, adapter, turns)
        expected -= sum(
            float(torch.tensor(n - o).exp()) * advantage for n, o in zip(new, old, strict=True)
        )
        largest = max(largest, *map(abs, new))
        num_tokens += len(new)
        of_loss += len(new) * abs(advantage)
    # The ratio exp(new - old) is 1 up to the rounding of its log-probs, and the loss sums it times
    # the advantage.
    of_logprob = rounding_of_forward(network.base, largest)
    assert result.loss == pytest.approx(
        expected, rel=0, abs=of_loss * (of_logprob + num_tokens * EPS)
    )
    assert result.kl_sample_train_v1 == pytest.approx(0.0, abs=of_logprob)


def test_positions_of_text_and_images_are_those_of_qwen(network: Network) -> None:
    encoder = ScreenEncoder(network.base.model.visual, network.processor)
    # 6 x 10 and 10 x 6 patches: a portrait and a landscape screen in one dialogue.
    screens = encoder.encode([make_screen(1), make_screen(2, width_px=160, height_px=90)])
    image = network.image_token
    assert image is not None
    tokens = [2, 9, *[image] * 60, 3, 2, *[image] * 60, 4, 5]
    ours = pad_segments([Segment(tokens, screens)], network).positions_3BT
    grids = torch.tensor([[1, screen.grid.rows, screen.grid.columns] for screen in screens])
    input_ids = torch.tensor([tokens])
    theirs, _ = network.base.model.get_rope_index(
        input_ids, input_ids.eq(image).int(), image_grid_thw=grids
    )
    assert ours.tolist() == theirs.tolist()


def test_the_built_folder_loads_without_our_code_and_renders_the_recorded_prompt(
    base_folder: Path, play: Play
) -> None:
    turn = play(1, 1)[0]
    assert turn.screenshot is not None
    processor = AutoProcessor.from_pretrained(base_folder)
    content = [
        {"type": "text", "text": "Turn on Wi-Fi"},
        {"type": "image", "image": Image.open(io.BytesIO(turn.screenshot.png))},
    ]
    inputs = processor.apply_chat_template(
        [{"role": "user", "content": content}],
        tokenize=True,
        add_generation_prompt=True,
        return_dict=True,
    )
    assert turn.tokens is not None
    assert list(inputs["input_ids"][0]) == list(turn.tokens.prompt_tokens)
