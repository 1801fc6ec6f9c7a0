"""Policies for environments without screens: what the environment says goes in, text comes out."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal
from uuid import UUID

import pytest
import torch

from producer.algorithms.settings import GaeSettings, UpdateSettings
from producer.errors import UsageError
from producer.policy.compute_settings import PolicySettings
from producer.policy.learner import RolloutOutcome, Trajectory
from producer.policy.policy import SampleRequest, Turn
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.open import open_in_process
from producer.policy.torch_policy.placement import choose_placement
from tests.support.checkpoints import write_checkpoint
from tests.support.turns import past_turn, trained_turn
from tests.support.update_settings import NO_OUTCOME, changed

from .conftest import ClickOnly, make_screen, make_task, randomize_adapter
from .test_architectures import plain

SYSTEM = "Answer with one query."
ANSWERS = ("2 rows: a, b", "1 row: <b> &amp; c", "")
Play = Callable[[InProcessPolicy, int], list[tuple[SampleRequest, Turn]]]


@pytest.fixture(scope="module", params=["qwen2", "qwen3", "llama", "qwen3_vl"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    write_checkpoint(folder, request.param, tied=request.param == "llama")
    return folder


@pytest.fixture
def policy(folder: Path) -> InProcessPolicy:
    network = load_network(str(folder), lora_rank=4, seed=1)
    randomize_adapter(network)
    return InProcessPolicy(network, ClickOnly(), SYSTEM)


def request(episode: int, history: tuple[Turn, ...]) -> SampleRequest:
    return SampleRequest(
        episode=UUID(int=episode),
        task=make_task(f"How many orders are there? ({episode % 2})"),
        history=history,
        screenshot=None,
        temperature=1.0,
        max_tokens=4,
        seed=100 * episode + len(history),
        text=ANSWERS[len(history)] or None,
    )


def play(
    policy: InProcessPolicy, episode: int, num_turns: int = 3, *, forgetting: bool = False
) -> list[Turn]:
    history: list[Turn] = []
    for _ in range(num_turns):
        asked = request(episode, tuple(history))
        completion = policy.sample([asked])[0]
        history.append(past_turn(None, completion.text, completion.tokens))
        if forgetting:
            policy.forget(asked.episode)
    policy.forget(UUID(int=episode))
    return history


def test_a_given_prefix_is_continued_and_belongs_to_the_answer(policy: InProcessPolicy) -> None:
    plain, prefixed = (replace(request(3, ()), prefix=prefix) for prefix in ("", "SELECT name"))
    whole, continued = policy.sample([plain])[0], policy.sample([prefixed])[0]
    assert whole.tokens is not None
    assert continued.tokens is not None
    tokenizer = policy._network.tokenizer
    given = tokenizer.encode("SELECT name", add_special_tokens=False)
    assert continued.tokens.prompt_tokens == (*whole.tokens.prompt_tokens, *given)
    sampled = tokenizer.decode(continued.tokens.completion_tokens, skip_special_tokens=True)
    assert continued.text == f"SELECT name{sampled}"


def test_a_token_starts_where_the_text_before_it_ends(policy: InProcessPolicy) -> None:
    text = "SELECT name FROM orders"
    tokens = policy._network.tokenizer.encode(text, add_special_tokens=False)
    starts = policy.token_starts(tokens)
    pieces = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    assert "".join(pieces) == text
    assert [policy._network.tokenizer.decode([token]) for token in tokens] == pieces


def test_the_whole_dialogue_is_what_the_chat_template_renders(policy: InProcessPolicy) -> None:
    turns = play(policy, 1)
    tokenizer = policy._network.tokenizer
    tokens: list[int] = []
    expected = [{"role": "system", "content": SYSTEM}]
    for turn, answer in zip(turns, ANSWERS, strict=True):
        assert turn.tokens is not None
        said = answer if turn is not turns[0] else f"How many orders are there? (1)\n\n{answer}"
        expected.append({"role": "user", "content": said})
        prompt = tokenizer.apply_chat_template(expected, tokenize=False, add_generation_prompt=True)
        tokens += turn.tokens.prompt_tokens
        assert turn.tokens.num_prompt_images == 0
        ours = tokenizer.decode(tokens)
        assert ours == prompt
        tokens += turn.tokens.completion_tokens
        ended = turn.tokens.stop_reason == "stop"
        written = tokenizer.decode(turn.tokens.completion_tokens)
        expected.append(
            {
                "role": "assistant",
                "content": written.removesuffix("<|im_end|>") if ended else written,
            }
        )


def test_sampled_log_probs_of_every_turn_are_those_of_plain_peft(
    folder: Path, policy: InProcessPolicy, tmp_path: Path
) -> None:
    from peft import PeftModel

    turns = play(policy, 3)
    policy.save_checkpoint(tmp_path)
    theirs = PeftModel.from_pretrained(plain(folder), tmp_path).eval()
    tokens: list[int] = []
    ours: list[float] = []
    sampled_at: list[int] = []
    for turn in turns:
        assert turn.tokens is not None
        tokens += turn.tokens.prompt_tokens
        sampled_at += range(len(tokens), len(tokens) + len(turn.tokens.completion_tokens))
        tokens += turn.tokens.completion_tokens
        ours += turn.tokens.completion_logprobs
    with torch.no_grad():
        logprobs = torch.log_softmax(theirs(input_ids=torch.tensor([tokens])).logits[0], dim=-1)
    expected = [float(logprobs[at - 1, tokens[at]]) for at in sampled_at]
    assert ours == pytest.approx(expected, rel=0, abs=2e-4)


def test_a_dialogue_goes_on_the_same_without_its_cache(policy: InProcessPolicy) -> None:
    kept, rebuilt = play(policy, 5), play(policy, 5, forgetting=True)
    for one, two in zip(kept, rebuilt, strict=True):
        assert one.tokens is not None
        assert two.tokens is not None
        assert one.tokens.prompt_tokens == two.tokens.prompt_tokens
        assert one.tokens.completion_tokens == two.tokens.completion_tokens
        assert one.tokens.completion_logprobs == pytest.approx(
            two.tokens.completion_logprobs, abs=2e-4
        )


def test_a_batch_of_dialogues_is_each_on_its_own(policy: InProcessPolicy) -> None:
    alone = [play(policy, episode, 1)[0].completion.text for episode in (1, 2, 3)]
    together = policy.sample([request(episode, ()) for episode in (1, 2, 3)])
    assert [item.text for item in together] == alone


def test_an_update_trains_on_dialogues_without_screens(policy: InProcessPolicy) -> None:
    trajectories = [
        Trajectory(
            make_task("any"),
            tuple(
                trained_turn(turn.screenshot, turn.tokens)
                for turn in play(policy, episode)
                if turn.tokens
            ),
            advantage,
            NO_OUTCOME,
        )
        for episode, advantage in ((1, 1.0), (2, -1.0))
    ]
    settings = UpdateSettings(learning_rate=1e-3, seed=0)
    result = policy.update(trajectories, settings)
    assert result.num_tokens == sum(
        len(turn.tokens.completion_tokens)
        for trajectory in trajectories
        for turn in trajectory.turns
    )
    assert result.kl_sample_train_v1 == pytest.approx(0.0, abs=1e-4)
    assert result.gradient_norm > 0


def test_a_policy_without_screens_is_refused_where_the_environment_shows_one(
    tmp_path: Path,
) -> None:
    write_checkpoint(tmp_path, "qwen3")
    settings = PolicySettings(str(tmp_path), lora_rank=2, renderer_name="recipe")
    open_in_process(replace(settings, screen_px=None))
    with pytest.raises(UsageError, match="sees no screens"):
        open_in_process(settings)


def test_a_text_with_the_image_placeholder_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "qwen3_vl")
    policy = InProcessPolicy(load_network(str(tmp_path), 2, 0), ClickOnly())
    injected = replace(request(1, ()), text="see <|image_pad|> here")
    with pytest.raises(UsageError, match="1 image placeholders for 0 screens"):
        policy.sample([injected])
    with pytest.raises(UsageError, match="2 image placeholders for 1 screens"):
        policy.sample([replace(injected, screenshot=make_screen(1))])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model_type", ["qwen2", "qwen3", "llama"])
def test_one_turn_without_screens_is_trained_by_each_token_s_own_advantage_or_reward(
    tmp_path: Path, model_type: str, dtype: Literal["float32", "bfloat16"]
) -> None:
    """An update of one trajectory, as per-session training does."""
    write_checkpoint(tmp_path, model_type)
    network = load_network(str(tmp_path), 4, 1, None, choose_placement("cpu", dtype))
    policy = InProcessPolicy(network, ClickOnly(), SYSTEM)
    turn = play(policy, 1, 1)[0]
    assert turn.tokens is not None
    count = len(turn.tokens.completion_tokens)
    one = Trajectory(make_task("any"), (trained_turn(None, turn.tokens),), 0.0, NO_OUTCOME)
    settings = UpdateSettings(loss_fn="ppo", learning_rate=1e-2, seed=0)

    def likelihood() -> float:
        still = changed(settings, learning_rate=0.0)
        return -policy.update([replace(one, advantage=1.0)], still).kl_sample_train_v1

    before = likelihood()
    first = replace(one, advantage=((1.0,) + (0.0,) * (count - 1),))
    result = policy.update([first], settings)
    # On policy the loss is minus the sum of the advantages, up to bfloat16's rounding.
    assert result.loss == pytest.approx(-1.0, abs=0.1)
    assert result.gradient_norm > 0
    whole = replace(one, advantage=((1.0,) * count,))
    for _ in range(3):
        policy.update([whole], settings)
    assert likelihood() > before
    rewarded = replace(one, outcome=RolloutOutcome(0, 1.0, is_right=True))
    with_values = changed(settings, learned_advantage=GaeSettings())
    result = policy.update([rewarded], with_values)
    assert result.learned is not None
    head = policy._learned[GaeSettings]
    assert {weight.dtype for weight in head.joint_parameters} == {torch.float32}
    assert policy.update([rewarded], with_values).learned != result.learned
