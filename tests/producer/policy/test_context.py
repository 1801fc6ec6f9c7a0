"""The context is re-anchored in blocks: bounded prompts, few sequences, the same log-probs."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from producer.errors import UsageError
from producer.policy.learner import Trajectory
from producer.policy.policy import SampledTokens, Turn
from producer.policy.prompts import anchor_of, next_anchor
from producer.policy.sequences import TokenSequence, join_turns
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.logprobs import completion_logprobs
from producer.policy.torch_policy.network import Network
from tests.producer.policy.conftest import ClickOnly, make_request, make_screen, make_task
from tests.support.rounding import rounding_of_forward
from tests.support.turns import past_turn, trained_turn
from tests.support.update_settings import NO_OUTCOME

from .conftest import SETTINGS

NUM_TURNS = 11
OpenPolicy = Callable[[int | None], InProcessPolicy]


@pytest.fixture
def open_policy(network: Network) -> OpenPolicy:
    return lambda recent: InProcessPolicy(network, ClickOnly(), max_recent_turns=recent)


def play(policy: InProcessPolicy, *, forgets: bool = False, limit: int = NUM_TURNS) -> list[Turn]:
    history: list[Turn] = []
    for turn in range(limit):
        if forgets:
            policy.forget(UUID(int=1))
        screen = make_screen(turn)
        (completion,) = policy.sample([make_request(1, screen, tuple(history), seed=turn)])
        history.append(past_turn(screen, completion.text, completion.tokens))
    return history


def tokens_of(turns: list[Turn]) -> list[SampledTokens]:
    return [turn.tokens for turn in turns if turn.tokens is not None]


def sequences_of(turns: list[Turn]) -> list[TokenSequence]:
    return join_turns((turn.screenshot, turn.tokens) for turn in turns if turn.tokens is not None)


def test_the_anchor_moves_by_n_when_2n_past_turns_would_be_shown() -> None:
    anchor, shown = 0, []
    for num_turns in range(12):
        anchor = next_anchor(anchor, num_turns, 3)
        shown.append(num_turns - anchor)
    assert shown == [0, 1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5]
    assert [next_anchor(0, num_turns, None) for num_turns in (0, 7, 99)] == [0, 0, 0]


def test_turns_between_two_anchors_are_one_sequence_and_prompts_are_bounded(
    open_policy: OpenPolicy,
) -> None:
    turns = play(open_policy(2))
    tokens = tokens_of(turns)
    # With N = 2 at most three past turns are shown: turns 5, 7, 9 and 11 begin anew with two.
    assert [token.prompt_extends for token in tokens] == [
        *(None, 1, 2, 3),
        *(None, 5),
        *(None, 7),
        *(None, 9),
        None,
    ]
    assert [token.num_prompt_images for token in tokens] == [1, 2, 3, 4, 3, 4, 3, 4, 3, 4, 3]
    assert [anchor_of(turns[: turn + 1]) for turn in range(NUM_TURNS)] == [
        *(0, 0, 0, 0, 2, 2, 4, 4, 6, 6, 8),
    ]
    assert len(sequences_of(turns)) == 5
    assert len(sequences_of(play(open_policy(None)))) == 1


def test_every_prompt_begins_with_the_instruction_and_shows_the_turns_since_the_anchor(
    open_policy: OpenPolicy, network: Network
) -> None:
    policy = open_policy(2)
    turns = play(policy, limit=6)
    renderer = policy._episodes._renderer
    grid = policy._encoder.encode([turns[0].screen])[0].grid
    third, fourth, fifth = tokens_of(turns)[2:5]
    expected = renderer.first_turn("Turn on Wi-Fi", grid)
    for shown in (third, fourth):
        expected += shown.completion_tokens
        expected += renderer.next_turn(grid, stopped=shown.stop_reason == "stop")
    assert list(fifth.prompt_tokens) == expected
    assert fifth.prompt_tokens.count(network.image_token) == 3 * grid.num_tokens


def test_recorded_log_probs_are_those_of_the_training_sequences(
    open_policy: OpenPolicy, network: Network
) -> None:
    policy = open_policy(2)
    sequences = sequences_of(play(policy))
    for sequence in sequences:
        again = completion_logprobs(network, policy._encoder, [sequence], 1.0).tolist()
        bound = rounding_of_forward(network.base, max(map(abs, again)))
        assert sequence.sampled_logprobs == pytest.approx(again, rel=0, abs=bound)


def test_a_forgotten_episode_is_re_anchored_where_its_records_say(open_policy: OpenPolicy) -> None:
    kept, rebuilt = play(open_policy(2)), play(open_policy(2), forgets=True)
    for one, other in zip(tokens_of(kept), tokens_of(rebuilt), strict=True):
        assert replace(one, completion_logprobs=()) == replace(other, completion_logprobs=())


def test_episodes_with_the_same_past_share_a_prompt_kept_or_rebuilt(
    open_policy: OpenPolicy,
) -> None:
    policy = open_policy(2)
    history = tuple(play(policy, limit=5))
    policy.forget(UUID(int=1))
    requests = [make_request(episode, make_screen(9), history) for episode in (1, 2)]
    encoded = policy._encoder.encode([requests[0].screen])[0]
    first = policy._episodes.prompt(requests[0], encoded)
    policy.sample(requests[:1])
    second = policy._episodes.prompt(requests[1], encoded)
    assert first.digest == second.digest
    assert first.num_images == 4


def test_each_completion_token_is_trained_once(open_policy: OpenPolicy) -> None:
    policy = open_policy(2)
    turns = play(policy)
    trajectory = Trajectory(
        make_task("Turn on Wi-Fi"),
        tuple(trained_turn(turn.screenshot, turn.tokens) for turn in turns if turn.tokens),
        advantage=1.0,
        outcome=NO_OUTCOME,
    )
    result = policy.update([trajectory], SETTINGS)
    assert result.num_tokens == sum(len(token.completion_tokens) for token in tokens_of(turns))
    assert abs(result.kl_sample_train_v1) < 1e-5


def test_a_prompt_that_would_be_too_long_drops_half_of_its_turns(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 60 tokens of a screen, 10 of the instruction and marks in the first turn, 6 of a completion.
    monkeypatch.setattr(
        network.base.config.get_text_config(), "max_position_embeddings", 70 + 3 * 72 + 6
    )
    policy = InProcessPolicy(network, ClickOnly())
    turns = play(policy)
    whole = 0
    for token in tokens_of(turns):
        whole = len(token.prompt_tokens) + (whole if token.prompt_extends else 0)
        assert whole + 6 <= 70 + 3 * 72 + 6
        whole += len(token.completion_tokens)
    begins = [token.num_prompt_images for token in tokens_of(turns) if token.prompt_extends is None]
    assert begins[0] == 1
    assert len(begins) > 1
    assert len(begins) <= NUM_TURNS // 2
    assert set(begins[1:]) <= {2, 3}


def test_a_screen_that_alone_is_too_long_is_refused_with_the_arithmetic(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network.base.config.get_text_config(), "max_position_embeddings", 75)
    policy = InProcessPolicy(network, ClickOnly())
    with pytest.raises(UsageError, match=r"takes 75 tokens, but instruction and screen have 70"):
        policy.sample([make_request(1, make_screen(1))])
