"""A rollout engine with a scripted policy, and what its worker threads left."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from producer.emit import Emitter
from producer.environments.environment import Environment
from producer.policy.policy import SampleRequest
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.plan import RolloutPlan, RolloutResult
from schemas.actions import Action
from tests.support.scripted import (
    SETTINGS,
    ScriptedPolicy,
    plan,
)


def join_worker(plan: RolloutPlan) -> None:
    for thread in threading.enumerate():
        if thread.name == plan.name:
            thread.join(10.0)
            assert not thread.is_alive()


def make_engine(
    emitter: Emitter,
    decide: Callable[[SampleRequest], Action | None],
    make: Callable[[RolloutPlan], Environment],
    *,
    max_concurrent: int = 8,
    turn_time_s: float = 30.0,
    check_stop: Callable[[], None] = lambda: None,
    has_tokens: bool = False,
) -> tuple[RolloutEngine, ScriptedPolicy]:
    policy = ScriptedPolicy(decide, has_tokens=has_tokens)
    engine = RolloutEngine(
        policy=policy,
        make_environment=make,
        settings=SETTINGS.model_copy(update={"max_turn_time_seconds": turn_time_s}),
        max_concurrent=max_concurrent,
        emitter=emitter,
        clock=lambda: datetime.now(UTC),
        on_begin=lambda _plan: None,
        check_stop=check_stop,
    )
    return engine, policy


def run_one(
    emitter: Emitter,
    decide: Callable[[SampleRequest], Action | None],
    environment: Environment,
    *,
    has_tokens: bool = False,
) -> RolloutResult:
    engine, _ = make_engine(emitter, decide, lambda _plan: environment, has_tokens=has_tokens)
    engine.submit(plan(0))
    (result,) = engine.run()
    return result
