"""What must not change a bit of a sample: the number of cores."""

from uuid import UUID

import pytest

from producer.policy.policy import SampledTokens, Turn
from producer.policy.torch_policy.in_process import InProcessPolicy
from tests.producer.policy.conftest import make_request, make_screen
from tests.support.turns import past_turn

NUM_EPISODES = 23
NUM_TURNS = 2


def two_turns(policy: InProcessPolicy) -> list[SampledTokens]:
    """Of episodes whose prompts differ, from a policy that remembers nothing."""
    histories: list[tuple[Turn, ...]] = [()] * NUM_EPISODES
    for turn in range(NUM_TURNS):
        screens = [make_screen(100 * turn + episode) for episode in range(NUM_EPISODES)]
        requests = [
            make_request(episode, screen, history, seed=1000 * episode + turn)
            for episode, (screen, history) in enumerate(zip(screens, histories, strict=True))
        ]
        histories = [
            (*history, past_turn(screen, completion.text, completion.tokens))
            for history, screen, completion in zip(
                histories, screens, policy.sample(requests), strict=True
            )
        ]
    for episode in range(NUM_EPISODES):
        policy.forget(UUID(int=episode))
    return [turn.tokens for history in histories for turn in history if turn.tokens is not None]


def test_the_number_of_cores_changes_no_bit_of_a_sample(
    policy: InProcessPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled = {}
    for num_cores in (1, 2, 3, 16):
        monkeypatch.setattr(
            "os.sched_getaffinity", lambda _pid, num=num_cores: set(range(num)), raising=False
        )
        sampled[num_cores] = two_turns(policy)
    assert len(sampled[1]) == NUM_EPISODES * NUM_TURNS
    assert all(tokens == sampled[1] for tokens in sampled.values())
