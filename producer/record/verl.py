"""Records verl's metrics: a logger with the interface of verl's `Tracking` backends.

    tracking = Tracking(project_name, experiment_name, ["console"], config)
    tracking.logger["cua"] = RecordingLogger("Qwen/Qwen3-8B", num_steps=100, training="mine")

verl passes only numbers to its loggers, so steps are recorded without rollouts. Does not import
verl.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from producer.record.opening import HeldOpen, open_training
from producer.record.step import Step, recordable
from producer.record.values import OrderError, count, number_or_none, rate_or_none

LOSSES: Final = ("actor/pg_loss", "actor/loss")
KL: Final = "actor/ppo_kl"
GRADIENT_NORM: Final = "actor/grad_norm"
REWARDS: Final = ("critic/score/mean", "critic/rewards/mean")
LEARNING_RATE: Final = "actor/lr"
"""verl's name of the learning rate, which has its own column here."""


class RecordingLogger:
    """Records what verl logs. The first call of `log` begins the training or resumes it."""

    def __init__(
        self,
        policy: str,
        *,
        num_steps: int,
        training: str | None = None,
        config: Mapping[str, object] | None = None,
        home: str | Path | None = None,
        **settings: Any,  # noqa: ANN401  # of `record.open`
    ) -> None:
        """Arguments as in `record.open`; `config` is verl's."""
        self._start = partial(
            open_training,
            training,
            policy=policy,
            num_steps=num_steps,
            config=config,
            home=home,
            **{"environment": "verl", **settings},
        )
        self._held = HeldOpen(self.finish)
        self._step: Step | None = None
        self._before: dict[str, object] = {}
        """Metrics of step 0, verl's validation before the first step."""

    def log(self, data: Mapping[str, object], step: int, backend: object = None) -> None:
        """Record metrics of a step. Calls for the same step are merged; the next step ends it.

        Leaves out what is no number and what the step records itself (`step.OWN_METRICS`).

        Metrics of step 0 are recorded with the first step, under `before/`. Raises OrderError for
        an earlier step than the last one.
        """
        del backend
        current = count("step", step)
        if current == 0:
            if self._step is not None:
                message = f"step 0 after step {self._step.number}: numbers of steps go up"
                raise OrderError(message)
            self._before |= {f"before/{name}": value for name, value in data.items()}
            return
        if self._step is None or current != self._step.number:
            self._begin(current, data)
        assert self._step is not None  # noqa: S101  # just begun
        self._step.metrics(
            recordable({**self._before, **data}),
            loss=_first(data, LOSSES),
            kl=number_or_none(data.get(KL)),
            gradient_norm=number_or_none(data.get(GRADIENT_NORM)),
            reward_mean=_first(data, REWARDS),
        )
        self._before = {}

    def finish(self, exit_code: int = 0) -> None:
        """End the last step and the training. Idempotent."""
        if exit_code:
            self._step = None
            self._held.close(RuntimeError(f"verl ended with exit code {exit_code}"))
            return
        self._end_step()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, exc: BaseException | None, _traceback: object) -> None:
        """As `finish`; the training fails after an exception."""
        if exc is None:
            self.finish()
        else:
            self._step = None
            self._held.close(exc)

    def _begin(self, step: int, data: Mapping[str, object]) -> None:
        training = self._held.training
        if training is None:
            training = self._held.open(partial(self._start, after_step=step - 1))
        elif self._step is not None and step < self._step.number:
            message = f"step {step} after step {self._step.number}: numbers of steps go up"
            raise OrderError(message)
        self._end_step()
        self._step = training.step(step, learning_rate=rate_or_none(data.get(LEARNING_RATE)))

    def _end_step(self) -> None:
        if self._step is not None and self._step.end is None:
            self._step.close()


def _first(data: Mapping[str, object], names: tuple[str, ...]) -> float | None:
    found = (number_or_none(data[name]) for name in names if name in data)
    return next((value for value in found if value is not None), None)
