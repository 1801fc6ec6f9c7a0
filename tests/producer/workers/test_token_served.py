"""Prompts of a served policy, as their tokens are recorded."""

from producer.environments.environment import TextObservation
from producer.policy.policy import Completion, SampledTokens, Turn
from producer.workers.token_served import tokens_so_far


def turn(extends: int | None, prompt: tuple[int, ...], completion: tuple[int, ...]) -> Turn:
    sampled = SampledTokens(extends, prompt, 0, completion, (-0.5,) * len(completion), "stop")
    return Turn(TextObservation(None), Completion("said", (), sampled))


def test_the_tokens_so_far_are_the_last_prompt_with_what_it_extends_and_its_completion() -> None:
    assert tokens_so_far([]) == ()
    first, second = turn(None, (1, 2), (3,)), turn(1, (4,), (5, 6))
    assert tokens_so_far([first]) == (1, 2, 3)
    assert tokens_so_far([first, second]) == (1, 2, 3, 4, 5, 6)
    anew = turn(None, (1, 4), (7,))
    assert tokens_so_far([first, second, anew]) == (1, 4, 7)
