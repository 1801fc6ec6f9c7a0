"""Opens the learner and the environments that a configuration asks for.

The only place that decides which policy runs. Imports torch only if the policy needs it.
"""

import logging
import os
import threading
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from producer.agents.built_policy import BuiltPolicy, OnProgress, OnWait
from producer.algorithms.advantages import ADVANTAGES
from producer.algorithms.settings import settings_of
from producer.config import DEMO_POLICY, ORACLE_POLICY, RunConfig
from producer.endpoint_url import KEY_VARIABLE
from producer.environments.environment import Environment
from producer.environments.wrapper import BlankedEnvironment
from producer.errors import UsageError
from producer.policy.adapter_settings import read_adapter_settings
from producer.policy.compute_settings import ComputeSettings, PolicySettings
from producer.policy.learner import Learner
from producer.policy.memory_demand import RunExtent
from producer.rollouts.engine import EnvironmentFactory
from schemas.distribution import install_command

if TYPE_CHECKING:
    from producer.policy.sampling_servers import SamplingServers
    from producer.policy.tinker_policy.service import TinkerService

TRAIN_EXTRA = ("torch", "torchvision", "transformers", "peft", "safetensors", "numpy")
"""Imports of every policy except the scripted one: the extra `train`."""


TINKER_EXTRA = ("tinker", "transformers", "numpy")
"""Imports of a policy at Tinker: the extra `tinker`."""


logger = logging.getLogger(__name__)


def open_policy(
    config: RunConfig,
    policies_dir: Path,
    on_progress: OnProgress = lambda *_: None,
    on_wait: OnWait = lambda *_: None,
    *,
    is_training: bool = True,
    instructions: Sequence[str] = (),
    stop: threading.Event | None = None,
) -> tuple[Learner, EnvironmentFactory]:
    """The learner and the factory of its environments.

    If `policies_dir` lacks the default policy, warms it up, reporting to `on_progress`, or waits
    for another process that does, reporting to `on_wait`. `is_training` False: the policy only
    samples and needs less memory. `instructions` are those of the tasks, whose prompts are checked.
    `stop` ends waits for a training service. Raises UsageError or NotFoundError if the policy
    cannot be loaded or does not fit.
    """
    if config.model_name == ORACLE_POLICY:
        return _open_oracle(config)
    if config.base_url is not None and not is_training:
        return _open_served(config, config.base_url)
    require_libraries(config)
    if config.provider == "tinker":
        return _open_tinker(config, instructions, stop)
    folder = config.model_name
    if folder == DEMO_POLICY:
        _compute_as_demo()
        from producer.warm_up.ensure import ensure_built

        built = built_policy(config)
        folder = str(ensure_built(built, policies_dir, on_progress, on_wait))
    return _open_folder(
        config,
        folder,
        is_training=is_training,
        instructions=instructions,
        servers=_open_servers(config, policies_dir.parent / "adapters"),
    )


def _open_servers(config: RunConfig, adapters_dir: Path) -> "SamplingServers | None":
    """Open the servers of `base_url`. Raises UsageError without the policy, UnreachableError."""
    if not config.base_urls:
        return None
    from producer.policy.sampling_servers import SamplingServers

    servers = SamplingServers(
        config.base_urls,
        config.model_name,
        os.environ.get(KEY_VARIABLE) or None,
        config.adapters_dir or adapters_dir,
        timeout_s=config.max_turn_time_seconds,
    )
    servers.check()
    return servers


def built_policy(config: RunConfig) -> BuiltPolicy:
    """The `demo` policy of the configuration's agent. Raises UsageError if there is none."""
    if (built := config.agent.built_policy) is None:
        message = (
            f"model_name: there is no policy {DEMO_POLICY!r} for environment"
            f" {config.environment}; give a folder or a Hugging Face id"
        )
        raise UsageError(message)
    return built


def is_unmade(config: RunConfig, policies_dir: Path) -> bool:
    """Whether the configuration names a built-in policy that must be made first."""
    if config.model_name != DEMO_POLICY:
        return False
    return not (policies_dir / built_policy(config).name).is_dir()


def check_unmade_demo(config: RunConfig, *, is_training: bool, instructions: Sequence[str]) -> None:
    """Raises the UsageError that opening the demo policy would raise, before it is made.

    Opens a policy of the same shape instead. The weights of the real one are not known yet, so an
    adapter, which belongs to specific weights, is refused.
    """
    if config.load_checkpoint_path is not None:
        message = (
            f"load_checkpoint_path: the adapter {config.load_checkpoint_path} belongs to a base,"
            f" and the policy {DEMO_POLICY!r} is not made in this CUA_HOME yet; copy policies/ of"
            " the CUA_HOME where the adapter was trained, or make the policy first: `cua-train"
            f" evaluate --model-name {DEMO_POLICY} --episodes 1`"
        )
        raise UsageError(message)
    _compute_as_demo()
    with TemporaryDirectory(prefix="cua-demo-shape-") as folder:
        built_policy(config).build_shape(Path(folder))
        try:
            _open_folder(config, folder, is_training=is_training, instructions=instructions)
        except UsageError as error:
            raise UsageError(str(error).replace(folder, DEMO_POLICY)) from None


def _compute_as_demo() -> None:
    import torch

    from producer.policy.torch_policy.memory import keep_freed_memory

    # The network is too small for parallel operations: with the other core busy, encoding a
    # hundred screens took 20 CPU-seconds on two threads and 0.4 on one (tests.bench.threads).
    # Whole passes run in parallel instead (producer.policy.torch_policy.cpu_parallel).
    torch.set_num_threads(1)
    keep_freed_memory()


def _open_folder(
    config: RunConfig,
    folder: str,
    *,
    is_training: bool,
    instructions: Sequence[str],
    servers: "SamplingServers | None" = None,
) -> tuple[Learner, EnvironmentFactory]:
    from producer.policy.torch_policy.open import open_in_process

    own_weights = ADVANTAGES[config.advantage].learned
    learner = open_in_process(
        _policy_settings(config, folder),
        extent=_extent(config, is_training=is_training),
        instructions=instructions,
        learned=None if own_weights is None else own_weights.settings,
        servers=servers,
        temperature=config.temperature,
    )
    return learner, _environments(config)


def _policy_settings(config: RunConfig, folder: str) -> PolicySettings:
    agent, path = config.agent, config.load_checkpoint_path
    return PolicySettings(
        folder,
        lora_rank=config.lora_rank,
        seed=config.seed,
        adapter=path if isinstance(path, Path) else None,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=config.target_modules,
        trains_all=config.train_type == "full",
        renderer_name=config.renderer_name,
        official_renderer=agent.official_renderer(config),
        text_format=agent.text_format(config) if config.renderer_name == "auto" else None,
        screen_px=agent.screen(config),
        max_recent_turns=config.max_recent_turns,
        compute=settings_of(config, ComputeSettings),
    )


def _extent(config: RunConfig, *, is_training: bool) -> RunExtent:
    evaluated = (asked.episodes for asked in config.evaluation_passes)
    num_rollouts = max(config.rollouts_per_step, *evaluated)
    return RunExtent(
        concurrent_rollouts=min(config.concurrent_rollouts, num_rollouts),
        batch_size=config.most_rollouts_per_step,
        max_turns=config.max_turns,
        max_tokens=config.max_tokens,
        is_training=is_training and config.num_steps > 0 and not config.baseline_only,
        batches_ahead=(config.max_steps_off_policy or 0) if is_training else 0,
    )


def with_adapter_settings(config: RunConfig) -> RunConfig:
    """The configuration with the rank, scale and targets of the adapter it starts from.

    Raises NotFoundError or UsageError if that is not an adapter or if other values were given.
    """
    path = config.load_checkpoint_path
    if path is None:
        return config
    if isinstance(path, str):
        return _with_rank_at_tinker(config, path)
    return config.with_adapter(read_adapter_settings(path))


def _with_rank_at_tinker(config: RunConfig, path: str) -> RunConfig:
    require_libraries(config)
    from producer.policy.tinker_policy.open import rank_of

    return config.with_rank(rank_of(_tinker_service(), config.model_name, path))


def with_cpu_threads(config: RunConfig) -> RunConfig:
    """The configuration with this machine's `cpu_threads`, unless given."""
    if (
        config.cpu_threads is not None
        or config.provider == "tinker"
        or config.model_name == ORACLE_POLICY
        or not find_spec("torch")
    ):
        return config
    from producer.policy.torch_policy.cpu_parallel import machine_threads

    return config.with_cpu_threads(machine_threads())


def check_reads_threads(config: RunConfig, given: Collection[str]) -> None:
    """Warn if `cpu_threads` was given but the policy just opened does not use it."""
    if "cpu_threads" not in given:
        return
    import torch

    if torch.get_num_threads() != config.cpu_threads:
        logger.warning(
            "cpu_threads has no effect: the policy %s has no more than 50 M weights and is computed"
            " with one thread per operation",
            config.model_name,
        )


def require_torch(model_name: str) -> None:
    """Raises UsageError if the policy needs torch or a related library that is not installed."""
    if model_name == ORACLE_POLICY:
        return
    if missing := [name for name in TRAIN_EXTRA if find_spec(name) is None]:
        message = f"policy {model_name!r} needs {', '.join(missing)}"
        ways = (f"run {install_command('train')}", f"use --model-name {ORACLE_POLICY}")
        raise UsageError(message, ways=ways)


def require_libraries(config: RunConfig) -> None:
    """Raises UsageError if the policy needs a library that is not installed."""
    if config.provider != "tinker":
        require_torch(config.model_name)
    elif missing := [name for name in TINKER_EXTRA if find_spec(name) is None]:
        message = f"provider tinker needs {', '.join(missing)}"
        raise UsageError(message, ways=(f"run {install_command('tinker')}",))


def _open_oracle(config: RunConfig) -> tuple[Learner, EnvironmentFactory]:
    oracle, make_environment = config.agent.open_oracle(config)
    return oracle, lambda plan: _ablated(config, make_environment(plan.id))


def _tinker_service(stop: threading.Event | None = None) -> "TinkerService":
    from producer.policy.tinker_policy.failures import KEY_VARIABLE, URL_VARIABLE
    from producer.policy.tinker_policy.service import TinkerService

    key, url = os.environ.get(KEY_VARIABLE, ""), os.environ.get(URL_VARIABLE)
    return TinkerService(key, url, stop=stop)


def _open_tinker(
    config: RunConfig, instructions: Sequence[str], stop: threading.Event | None
) -> tuple[Learner, EnvironmentFactory]:
    from producer.policy.tinker_policy.open import open_tinker

    path = config.load_checkpoint_path
    learner = open_tinker(
        _tinker_service(stop),
        _policy_settings(config, config.model_name),
        max_tokens=config.max_tokens,
        checkpoint=path if isinstance(path, str) else None,
        instructions=instructions,
    )
    return learner, _environments(config)


def _open_served(config: RunConfig, url: str) -> tuple[Learner, EnvironmentFactory]:
    from producer.policy.served import FORMATS, ServedPolicy

    renderer = config.renderer_name
    if renderer == "auto":
        renderer = config.agent.official_renderer(config)
    policy = ServedPolicy(
        url,
        config.model_name,
        os.environ.get(KEY_VARIABLE) or None,
        FORMATS[renderer],
        timeout_s=config.max_turn_time_seconds,
        max_recent_turns=config.max_recent_turns,
    )
    policy.check_server()
    return policy, _environments(config)


def _environments(config: RunConfig) -> EnvironmentFactory:
    return lambda _plan: _ablated(config, config.agent.make_environment(config))


def _ablated(config: RunConfig, environment: Environment) -> Environment:
    return BlankedEnvironment(environment) if config.ablate == "blank-screenshots" else environment
