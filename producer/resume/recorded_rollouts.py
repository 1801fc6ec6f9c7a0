"""Rebuilds rollouts from events: finished ones as results, others as turns to replay."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from producer.environments.environment import (
    Observation,
    Screenshot,
    TextObservation,
)
from producer.errors import NotFoundError
from producer.log.stream_history import StreamHistory
from producer.policy.policy import Completion, SampledTokens, Turn
from producer.rollouts.events import total_prompt_images
from producer.rollouts.plan import (
    GroupPlace,
    GroupPlan,
    Recalled,
    RolloutPlan,
    RolloutResult,
    RolloutSource,
    scored_steps,
)
from schemas import ids
from schemas.arrays import decode_float32, decode_int32
from schemas.catalogue import stream_kind
from schemas.rollout import RolloutCreated, RolloutFailed, RolloutFinished
from schemas.turn import TakenAction, TokenRecord, TurnTaken


def recorded_plan(created: RolloutCreated, group: GroupPlan, source: RolloutSource) -> RolloutPlan:
    """The plan of a recorded rollout."""
    return RolloutPlan(
        name=created.rollout_id,
        id=ids.rollout_id(created.rollout_id),
        source=source,
        group_id=created.group_id,
        group_num=created.group_num,
        env_index=created.env_index,
        attempt=created.attempt,
        stated=group.stated,
        max_turns=created.max_turns,
        temperature=created.temperature,
        seed=created.seed,
        sampling_seed=0,
    )


def turns_taken(history: StreamHistory) -> list[TurnTaken]:
    """The rollout's turns, in order."""
    return [event.payload for event in history.events if isinstance(event.payload, TurnTaken)]


def recorded_turns(
    taken: Sequence[TurnTaken], instruction: str, read_blob: Callable[[str], bytes]
) -> tuple[Turn, ...] | None:
    """The turns as a policy would have to take them again; None if a screenshot is gone.

    `instruction`: the task's, with which the first turn's text begins.
    """
    num_images = total_prompt_images(taken)
    try:
        return tuple(
            Turn(
                _observation(turn, instruction, read_blob),
                Completion(
                    text=turn.model_response,
                    actions=tuple(_as_sampled(action) for action in turn.actions),
                    tokens=_tokens(turn.tokens, num_images[turn.turn]) if turn.tokens else None,
                    policy_version=turn.policy_version,
                ),
            )
            for turn in taken
        )
    except NotFoundError:
        return None


def recorded_result(
    plan: RolloutPlan,
    history: StreamHistory,
    finished: RolloutFinished,
    read_blob: Callable[[str], bytes],
) -> RolloutResult | None:
    """The recorded result; None if a screenshot for training is gone, so that it must run again."""
    taken = turns_taken(history)
    is_trained = plan.source.type == "step"
    trained = [turn for turn in taken if is_trained and turn.tokens]
    turns = recorded_turns(trained, plan.task.description, read_blob)
    if turns is None:
        return None
    return RolloutResult(
        plan,
        finished,
        policy_version=taken[0].policy_version if taken else 0,
        turn_seconds=turn_seconds(taken),
        turns=turns,
        responses=tuple(turn.model_response for turn in taken),
        words=tuple(turn.text for turn in taken[1:]),
        scored_steps=scored_steps(event.payload for event in history.events),
    )


def turn_seconds(taken: Iterable[TurnTaken]) -> float:
    """Sum of the turns' durations."""
    return sum((turn.ended_at - turn.started_at).total_seconds() for turn in taken)


def _as_sampled(action: TakenAction) -> TakenAction:
    """The action as sampled, before the device refused it."""
    if action.error_type != "runtime":
        return action
    return action.model_copy(update={"error_type": None, "error_message": None})


def _observation(
    turn: TurnTaken, instruction: str, read_blob: Callable[[str], bytes]
) -> Observation:
    text = turn.text
    if text is not None and turn.turn == 1:
        text = None if text == instruction else text.removeprefix(f"{instruction}\n\n")
    if turn.screenshot_before is None:
        return TextObservation(text)
    png = read_blob(turn.screenshot_before)
    width_px, height_px = turn.screenshot_width_px, turn.screenshot_height_px
    if width_px is None or height_px is None:
        # Events of version 1 have no size; read it from the PNG's IHDR chunk.
        width_px, height_px = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    return Screenshot(png, width_px, height_px, text)


def _tokens(tokens: TokenRecord, num_images: int) -> SampledTokens:
    return SampledTokens(
        prompt_extends=tokens.prompt_extends,
        prompt_tokens=tuple(decode_int32(tokens.prompt_tokens)),
        num_prompt_images=num_images,
        completion_tokens=tuple(decode_int32(tokens.completion_tokens)),
        completion_logprobs=tuple(decode_float32(tokens.completion_logprobs)),
        stop_reason=tokens.stop_reason,
    )


def recall(
    streams: Mapping[str, StreamHistory],
    source: RolloutSource,
    groups: Iterable[GroupPlan],
    read_blob: Callable[[str], bytes],
    *,
    with_turns: bool = False,
) -> Recalled:
    """Results of the source's finished rollouts, and the attempts at every place so far.

    Includes the turns of unfinished rollouts and, if `with_turns`, of finished ones.
    """
    plans = {group.id: group for group in groups}
    recalling = _Recalling(source, with_turns=with_turns, read_blob=read_blob)
    for subject, rollout in streams.items():
        if stream_kind(subject) != "rollout" or not rollout.events:
            continue
        created = rollout.events[0].payload
        if isinstance(created, RolloutCreated) and created.group_id in plans:
            recalling.add(created, rollout, plans[created.group_id])
    return recalling.recalled()


@dataclass(slots=True)
class _Recalling:
    """Collects a source's rollouts, one attempt after another in any order."""

    source: RolloutSource
    with_turns: bool
    read_blob: Callable[[str], bytes]
    results: dict[GroupPlace, RolloutResult] = field(default_factory=dict)
    next_attempt: dict[GroupPlace, int] = field(default_factory=dict)
    last_failed: dict[GroupPlace, int] = field(default_factory=dict)
    num_failed: Counter[GroupPlace] = field(default_factory=Counter)
    errors: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    turns: dict[GroupPlace, tuple[Turn, ...]] = field(default_factory=dict)
    under_way: dict[GroupPlace, list[tuple[int, list[TurnTaken]]]] = field(default_factory=dict)
    """(attempt, its turns) of attempts that their process did not finish."""
    instructions: dict[GroupPlace, str] = field(default_factory=dict)
    """Instructions of the tasks of those places."""

    def add(self, created: RolloutCreated, rollout: StreamHistory, group: GroupPlan) -> None:
        """Add one attempt."""
        place = (created.group_num, created.env_index)
        self.next_attempt[place] = max(self.next_attempt.get(place, 0), created.attempt + 1)
        end = rollout.events[-1].payload
        if isinstance(end, RolloutFailed):
            self.num_failed[place] += 1
            self.errors[created.group_num].append(end.error_type)
            self.last_failed[place] = max(self.last_failed.get(place, 0), created.attempt)
        elif isinstance(end, RolloutFinished):
            if not rollout.is_dropped:
                self._finish(place, recorded_plan(created, group, self.source), rollout, end)
        else:
            self.under_way.setdefault(place, []).append((created.attempt, turns_taken(rollout)))
            self.instructions[place] = group.stated.task.description

    def _finish(
        self, place: GroupPlace, plan: RolloutPlan, rollout: StreamHistory, end: RolloutFinished
    ) -> None:
        result = recorded_result(plan, rollout, end, self.read_blob)
        if result is None:
            return
        self.results[place] = result
        if not self.with_turns:
            return
        turns = recorded_turns(turns_taken(rollout), plan.task.description, self.read_blob)
        if turns:
            self.turns[place] = turns

    def recalled(self) -> Recalled:
        """The collected data. The longest unfinished attempt counts, as all had the same seeds."""
        for place, attempts in self.under_way.items():
            same_seeds = [
                taken
                for attempt, taken in attempts
                if attempt > self.last_failed.get(place, -1) and place not in self.results
            ]
            longest = max(same_seeds, key=len, default=[])
            turns = recorded_turns(longest, self.instructions[place], self.read_blob)
            if turns:
                self.turns[place] = turns
        return Recalled(self.results, self.next_attempt, self.num_failed, self.errors, self.turns)
