"""Episodes that an earlier process left under way are played again and go on where they stood."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from producer.emit import Emitter
from producer.policy.policy import Completion, SampledTokens, SampleRequest, Turn
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.plan import RolloutResult
from schemas.actions import Action, Click, Terminate
from schemas.arrays import decode_int32
from schemas.turn import TurnTaken
from tests.producer.rollouts.conftest import ROLLOUT, payloads_of
from tests.support.scripted import (
    SETTINGS,
    Devices,
    ScriptedEnvironment,
    ScriptedPolicy,
    picture,
    plan,
)
from tests.support.turns import past_turn, recorded_turn


class Repeating(ScriptedPolicy):
    """Tokens depend on who shares the batch, as a network's last bits do."""

    repeats_batches = True

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        completions = super().sample(requests)
        return [
            replace(
                completion,
                tokens=replace(completion.tokens, completion_logprobs=(-float(len(requests)),)),
            )
            for completion in completions
            if completion.tokens is not None
        ]


def by_seed(request: SampleRequest) -> Action:
    """1 to 4 turns."""
    return Terminate() if request.seed % 3 == 0 else Click(x=1, y=1)


def make_engine(
    emitter: Emitter, policy: ScriptedPolicy, *, is_simulated: bool = True
) -> RolloutEngine:
    return RolloutEngine(
        policy=policy,
        make_environment=lambda _plan: ScriptedEnvironment(Devices(), is_simulated=is_simulated),
        settings=SETTINGS,
        max_concurrent=3,
        emitter=emitter,
        clock=lambda: datetime.now(UTC),
        on_begin=lambda _plan: None,
        check_stop=lambda: None,
    )


def recorded(result: RolloutResult, num_turns: int) -> tuple[Turn, ...]:
    turns = []
    for turn, taken in enumerate(result.turns[:num_turns]):
        assert taken.screenshot is not None
        action = by_seed(_request(result, turn))
        completion = ScriptedPolicy(by_seed)._completion(action, taken.tokens)
        turns.append(recorded_turn(taken.screenshot, completion, 3))
    return tuple(turns)


def _request(result: RolloutResult, turn: int) -> SampleRequest:
    from producer.rollouts.requests import sample_request

    history = [past_turn(item.screenshot, "", item.tokens) for item in result.turns[:turn]]
    screenshot = result.turns[turn].screenshot
    assert screenshot is not None
    return sample_request(result.plan, history, screenshot, 12)


def tokens_of(results: Sequence[RolloutResult]) -> dict[int, list[SampledTokens]]:
    return {result.plan.env_index: [turn.tokens for turn in result.turns] for result in results}


def test_with_the_finished_in_their_places_the_rest_sees_the_batches_of_an_undisturbed_run(
    emitter: Emitter,
) -> None:
    """Seven episodes, three at once; log-probs tell how many shared the batch."""
    undisturbed = Repeating(by_seed, has_tokens=True)
    engine = make_engine(emitter, undisturbed)
    for index in range(7):
        engine.submit(plan(index))
    whole = {item.plan.env_index: item for item in engine.run()}
    sizes = [len(batch) for batch in undisturbed.batches]
    assert len(set(sizes)) > 1

    again = Repeating(by_seed, has_tokens=True)
    engine = make_engine(emitter, again)
    for index in range(7):
        if index in {0, 3}:
            result = whole[index]
            engine.submit_finished(plan(index, attempt=1), recorded(result, result.num_turns))
        else:
            turns = recorded(whole[index], 1 if index == 1 else 0)
            engine.submit(replace(plan(index, attempt=1), recorded=turns))
    results = list(engine.run())
    assert sorted(result.plan.env_index for result in results) == [1, 2, 4, 5, 6]
    assert [len(batch) for batch in again.batches] == sizes
    expected = tokens_of(list(whole.values()))
    assert all(tokens == expected[index] for index, tokens in tokens_of(results).items())


def test_recorded_turns_are_not_sampled_again_where_that_is_of_no_use(emitter: Emitter) -> None:
    policy = ScriptedPolicy(lambda _request: Terminate(), has_tokens=True)
    engine = make_engine(emitter, policy)
    tokens = SampledTokens(None, (1, 7), 1, (8,), (-0.5,), "stop")
    click = policy._completion(Click(x=5, y=6), tokens)
    turn = recorded_turn(picture(7), click, policy.version)
    engine.submit(replace(plan(0), recorded=(turn,)))
    engine.submit_finished(plan(1), (turn,))
    (result,) = engine.run()
    assert result.num_turns == 2
    assert len(policy.batches) == 1
    taken = [payload for payload in payloads_of(emitter, ROLLOUT) if isinstance(payload, TurnTaken)]
    assert [item.metrics.get("replayed") for item in taken] == [True, None]
    assert taken[0].actions[0].action == Click(x=5, y=6)
    assert taken[0].tokens is not None
    assert decode_int32(taken[0].tokens.completion_tokens) == [8]


@pytest.mark.parametrize(
    ("turn_version", "shade", "is_simulated"),
    [(3, 8, True), (2, 7, True), (3, 7, False)],
    ids=["other-screen", "other-weights", "real-device"],
)
def test_what_cannot_be_played_again_begins_anew_with_its_seed(
    emitter: Emitter, turn_version: int, shade: int, *, is_simulated: bool
) -> None:
    """The device's first screen has shade 7 and the policy version 3."""
    policy = ScriptedPolicy(lambda _request: Terminate(), has_tokens=True)
    engine = make_engine(emitter, policy, is_simulated=is_simulated)
    click = ScriptedPolicy(by_seed)._completion(Click(x=5, y=6), None)
    engine.submit(replace(plan(0), recorded=(recorded_turn(picture(shade), click, turn_version),)))
    (result,) = engine.run()
    assert result.num_turns == 1
    taken = [payload for payload in payloads_of(emitter, ROLLOUT) if isinstance(payload, TurnTaken)]
    assert "replayed" not in taken[0].metrics
    assert taken[0].actions[0].action == Terminate()
