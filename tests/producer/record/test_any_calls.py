"""Any sequence of calls raises our errors or is recorded whole: nothing is parked or waits."""

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from producer import record
from schemas.status import MACHINES
from schemas.step import StepCollectionStarted
from tests.support.profiles import examples
from tests.support.reading import installation_at
from tests.support.recorded import folded, png, problems, start_small, statuses

OFTEN_RIGHT = 40
REFUSED = (record.OrderError, ValueError, TypeError)
NUMBERS = (0.0, 1.0, -0.5, math.nan, math.inf, -math.inf, 1e308, -1e100, 10**400, True, None, "1")
TEXTS = ("", "a", "\ud800half", "nul\x00", "é" * 300, "long " * 100_000, None, 3)
TOKENS: Final[tuple[Any, ...]] = (None, [], [1, 2], [1, 2, 3, 4], [-1], [2**31], ["x"], [1.5], "12")
LOGPROBS: Final[tuple[Any, ...]] = (
    None,
    [],
    [-0.5, -1.0],
    [-0.5, None],
    [math.nan, 0.0],
    [1e300, 0.0],
)
PNGS = (None, None, png(1), b"", b"\x89PNG\r\n\x1a\n")
ACTIONS: Final[tuple[Any, ...]] = (
    (),
    [{"type": "click", "x": 1, "y": 2}],
    [{"type": "click", "x": -1, "y": 2}],
    [{"type": "terminate", "status": "success"}, {"tool_name": "t", "tool_args": {"a": math.nan}}],
    [{"tool_name": 3}],
    ["x"],
    "x",
    [{"type": "type", "text": "\ud800"}],
)


class Loop:
    """A loop without any order: each call picks its object among all that were ever made."""

    def __init__(self, training: record.Training) -> None:
        self.training = training
        self.picks: Iterator[int] = iter(())
        """Which of the possible arguments the next call has."""
        self.steps: list[record.Step] = []
        self.evaluations: list[record.Evaluation] = []
        self.groups: list[record.Group] = []
        self.rollouts: list[record.Rollout] = []

    def pick(self, of: Sequence[Any]) -> Any:
        """One of them, the newest mostly."""
        number = next(self.picks, 0)
        return of[-1 - number % len(of)] if number % 3 else of[-1]

    def draw(self, of: Sequence[Any]) -> Any:
        """The first of them mostly, which is right where anything is."""
        number = next(self.picks, 0)
        return of[number % len(of)] if number > OFTEN_RIGHT else of[0]

    def any_or(self, found: Sequence[Any]) -> Any:
        if not found:
            message = "there is none"
            raise record.OrderError(message)
        return self.pick(found)

    def go(self) -> None:
        """What a right loop would call next, deeper and deeper."""
        if self.rollouts and self.rollouts[-1].end is None:
            self.draw((self.turn, self.finish))()
        elif self.groups and self.groups[-1].end is None:
            self.rollout()
        elif any(one.end is None for one in self.steps[-1:]) or any(
            one.end is None for one in self.evaluations[-1:]
        ):
            self.group()
        else:
            self.draw((self.step, self.evaluation))()

    def leave(self) -> None:
        """End what is innermost."""
        if self.rollouts and self.rollouts[-1].end is None:
            self.rollouts[-1].finish(reward=self.draw((1.0, 0.0)))
        elif self.groups and self.groups[-1].end is None:
            self.groups[-1].close()
        else:
            self.close()

    def step(self) -> None:
        number = self.draw((None, None, None, 1, 2, 3, 9, -1, "1"))
        rate = self.draw((None, None, 0.1, math.nan))
        self.steps.append(self.training.step(number, learning_rate=rate))

    def evaluation(self) -> None:
        episodes = self.draw((1, 2, 5, 0))
        temperature = self.draw((0.0, 0.0, 1.0, -1.0, math.nan))
        tasks = self.draw((None, *TEXTS))
        made = self.training.evaluation(num_episodes=episodes, temperature=temperature, tasks=tasks)
        self.evaluations.append(made)

    def group(self) -> None:
        parts: list[record.Step | record.Evaluation] = [*self.evaluations, *self.steps]
        parts.sort(key=lambda part: part.end is None)
        part = self.any_or(parts)
        task = self.draw(("a", "b", record.Task(task_id="t", description="d", max_steps=1), *TEXTS))
        self.groups.append(part.group(task, num_rollouts=self.draw((None, None, 1, 3, 0))))

    def rollout(self) -> None:
        retry_of = self.pick(self.rollouts) if self.rollouts and self.draw((0, 0, 1)) else None
        made = self.any_or(self.groups).rollout(
            retry_of=retry_of,
            policy_version=self.draw((None, None, 0, 1, 7)),
            temperature=self.draw((None, None, 0, math.nan)),
            seed=self.draw((0, 1, 2**63, -1)),
        )
        self.rollouts.append(made)

    def turn(self) -> None:
        self.any_or(self.rollouts).turn(
            completion=self.draw(("x", "y", *TEXTS)),
            text=self.draw((None, *TEXTS)),
            screenshot=self.draw(PNGS),
            screenshot_after=self.draw(PNGS),
            prompt_tokens=self.draw(TOKENS),
            completion_tokens=self.draw(TOKENS),
            completion_logprobs=self.draw(LOGPROBS),
            actions=self.draw(ACTIONS),
            reward=self.draw((0.0, *NUMBERS)),
            done=self.draw((False, False, True)),
            metrics=self.draw((None, {"a": math.nan, "b": {"c": [1, "\ud800", b"x"]}})),
        )

    def plain_turn(self) -> None:
        self.any_or(self.rollouts).turn(completion="x")

    def finish(self) -> None:
        self.any_or(self.rollouts).finish(reward=self.draw((0.5, 1.0, *NUMBERS)))

    def fail(self) -> None:
        reason, boundary = self.draw(TEXTS), self.draw(("policy", "reward", "moon"))
        self.any_or(self.rollouts).fail(reason, boundary)

    def advantages(self) -> None:
        self.any_or(self.groups).advantages(self.draw(([], [0.5], [0.5, None], [math.nan])))

    def drop(self) -> None:
        self.any_or(self.groups).drop(self.draw(("zero_variance", "stale", "other")))

    def close(self) -> None:
        everything = [*self.steps, *self.evaluations, *self.groups]
        self.any_or(everything).close()

    def close_group(self) -> None:
        self.any_or(self.groups).close()

    def update(self) -> None:
        self.any_or(self.steps).update()

    def metrics(self) -> None:
        self.any_or(self.steps).metrics(
            {self.draw(TEXTS): self.draw(NUMBERS)},
            loss=self.draw(NUMBERS),
            kl=self.draw(NUMBERS),
            gradient_norm=self.draw(NUMBERS),
        )


NAMES = (
    *("go",) * 12,
    *("leave",) * 9,
    *("step", "group", "rollout", "plain_turn", "finish", "turn", "close", "close_group"),
    *("evaluation", "fail", "advantages", "drop", "update", "metrics"),
)
CALLS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.lists(st.integers(0, 60), max_size=11)), max_size=60
)


@settings(max_examples=examples(quick=40))
@given(calls=CALLS, ending=st.sampled_from(("end", "error", "interrupt")))
def test_any_calls_raise_our_errors_or_are_recorded_whole(
    calls: list[tuple[str, list[int]]], ending: str
) -> None:
    errors: dict[str, BaseException] = {"error": RuntimeError("x"), "interrupt": SystemExit(1)}
    with tempfile.TemporaryDirectory() as home:
        with (
            contextlib.suppress(RuntimeError, SystemExit, record.OrderError),
            start_small(home=home) as training,
        ):
            loop = Loop(training)
            for name, picks in calls:
                loop.picks = iter(picks)
                call: Callable[[], None] = getattr(loop, name)
                with contextlib.suppress(*REFUSED):
                    call()
            if ending in errors:
                raise errors[ending]
        at = installation_at(Path(home))
        assert problems(folded(at)) == []
        for table, found in statuses(at).items():
            assert set(found) <= MACHINES[table].ends, table


def test_the_property_sees_a_wrong_event() -> None:
    """A transition that the emitter was made to miss is found by the fold."""
    with start_small() as training:
        step = training.step()
        step.metrics(loss=0)
        step.close()
        stream = training._recording.stream
        stream._statuses = dict.fromkeys(stream._statuses, "pending")
        stream.emit(StepCollectionStarted(step_id=step.id))
    assert any("step cannot become rollout_collecting" in problem for problem in problems(folded()))
