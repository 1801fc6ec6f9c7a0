"""What a turn records of its prompt, and what the whole prompt is read back as."""

from uuid import UUID

import pytest

from producer.policy.policy import SampledTokens, SampleRequest
from producer.rollouts.events import token_record, total_prompt_images
from schemas.blobs import blob_ref
from schemas.turn import Sampling, TurnTaken
from schemas.wire import decode
from tests.support.paths import GOLDEN_EVENTS
from tests.support.scripted import WIFI, picture
from tests.support.turns import past_turn

EPISODE = UUID("6f1d7f0a-6b0c-5d0e-9d57-3c1f0a2e4b61")


def sampled(extends: int | None, num_images: int) -> SampledTokens:
    return SampledTokens(extends, (5, 6), num_images, (7,), (-0.25,), "length")


def request(turn: int) -> SampleRequest:
    """Turn t shows picture t."""
    history = tuple(past_turn(picture(past), "click", None) for past in range(1, turn))
    return SampleRequest(EPISODE, WIFI, history, picture(turn), 0.5, 12, 1 << 62)


@pytest.mark.parametrize(
    ("turn", "extends", "num_images", "shades"),
    [
        (1, None, 1, [1]),
        (3, 2, 3, [3]),
        (4, 1, 4, [2, 3, 4]),
        (5, None, 5, [1, 2, 3, 4, 5]),
        (5, None, 2, [4, 5]),
        (5, 4, 2, [5]),
        (3, None, 0, []),
    ],
)
def test_a_turn_records_the_images_that_follow_the_prompt_it_extends(
    turn: int, extends: int | None, num_images: int, shades: list[int]
) -> None:
    record = token_record(request(turn), sampled(extends, num_images))
    assert record.prompt_images == tuple(blob_ref(picture(shade).png) for shade in shades)


def test_a_turn_records_how_it_was_sampled() -> None:
    record = token_record(request(2), sampled(1, 2))
    assert record.sampling == Sampling(temperature=0.5, max_tokens=12, seed=1 << 62)
    assert (record.prompt_extends, record.stop_reason) == (1, "length")


def turn_taken(turn: int, extends: int | None, num_images: int) -> TurnTaken:
    golden = decode((GOLDEN_EVENTS / "cua.rollout.turn_taken.v2.json").read_bytes()).payload
    assert isinstance(golden, TurnTaken)
    assert golden.tokens is not None
    tokens = golden.tokens.model_copy(
        update={
            "prompt_extends": extends,
            "prompt_images": golden.tokens.prompt_images * num_images,
        }
    )
    return golden.model_copy(update={"turn": turn, "tokens": tokens})


def test_the_images_of_a_whole_prompt_are_summed_over_the_turns_it_extends() -> None:
    turns = [
        turn_taken(1, None, 1),
        turn_taken(2, 1, 1),
        turn_taken(3, 2, 1),
        turn_taken(4, None, 2),
        turn_taken(6, 4, 2),
    ]
    assert total_prompt_images(turns) == {1: 1, 2: 2, 3: 3, 4: 2, 6: 4}


def test_turns_without_tokens_have_no_prompt() -> None:
    scripted = turn_taken(1, None, 1).model_copy(update={"tokens": None})
    assert total_prompt_images([scripted]) == {}


def test_a_prompt_that_extends_a_missing_turn_is_an_error() -> None:
    with pytest.raises(KeyError):
        total_prompt_images([turn_taken(2, 1, 1)])
