"""From a configuration to a learner.

The only place that decides which policy runs; torch is imported here, when one needs it.
"""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from producer.config import DEMO_POLICY, ORACLE_POLICY, RunConfig
from producer.environments.android_sim.device.sim import AndroidSim
from producer.environments.blanked import BlankedEnvironment
from producer.environments.environment import Environment
from producer.errors import UsageError
from producer.policy.learner import Learner
from producer.rollouts.engine import EnvironmentFactory
from producer.rollouts.plan import RolloutPlan

OnProgress = Callable[[str, int, int, float | None], None]
"""(policy, optimiser steps done, in all, loss) of the warm-up; no loss while demonstrations are
drawn."""


def open_policy(
    config: RunConfig, policies_dir: Path, on_progress: OnProgress
) -> tuple[Learner, EnvironmentFactory]:
    """The learner, and what makes its environments. UsageError when the policy cannot be had."""
    if config.model_name == ORACLE_POLICY:
        return _open_oracle(config)
    try:
        import torch
    except ImportError:
        message = (
            f"policy {config.model_name!r} needs torch; install cua-train[train], or use"
            f" --model-name {ORACLE_POLICY}"
        )
        raise UsageError(message) from None
    from producer.policy.torch_policy.memory import keep_freed_memory
    from producer.policy.torch_policy.open import open_in_process

    if config.model_name == DEMO_POLICY:
        # Its matrices are so small that threads only wait for each other (tests.bench.threads):
        # with the other core busy a hundred screens took 20 CPU-seconds with two threads and 0.4
        # with one. Whole passes go side by side instead
        # (producer.policy.torch_policy.cpu_parallel).
        torch.set_num_threads(1)
        keep_freed_memory()

    folder = (
        _warm_demo_policy(policies_dir, on_progress)
        if config.model_name == DEMO_POLICY
        else config.model_name
    )
    learner = open_in_process(
        folder,
        lora_rank=config.lora_rank,
        renderer_name=config.renderer_name,
        seed=config.seed,
        adapter=config.load_checkpoint_path,
    )
    return learner, lambda _plan: _ablated(config, AndroidSim())


def _warm_demo_policy(policies_dir: Path, on_progress: OnProgress) -> str:
    from producer.demo_policy.warm_up import ensure_demo_policy

    return str(ensure_demo_policy(policies_dir, on_progress))


def _open_oracle(config: RunConfig) -> tuple[Learner, EnvironmentFactory]:
    from producer.policy.oracle import NoisyOracle
    from producer.policy.scripted import ScriptedLearner

    devices: dict[UUID, AndroidSim] = {}

    def make(plan: RolloutPlan) -> Environment:
        devices[plan.id] = AndroidSim()
        return _ablated(config, devices[plan.id])

    oracle = NoisyOracle(devices.__getitem__, noise=config.oracle_noise, seed=config.seed)
    return ScriptedLearner(oracle, on_forget=lambda episode: devices.pop(episode, None)), make


def _ablated(config: RunConfig, environment: Environment) -> Environment:
    return BlankedEnvironment(environment) if config.ablate == "blank-screenshots" else environment
