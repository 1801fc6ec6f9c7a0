"""A manual evaluation, of a training's newest state or of a policy that no training produced.

It claims no training; its events have their own stream.
"""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from producer.agents import DEFAULT_AGENT
from producer.blobs import open_blobs
from producer.config import (
    DEMO_POLICY,
    ORACLE_POLICY,
    RunConfig,
    check_effects,
    check_served,
    differences,
    read_config,
    recorded_fields,
    without_unset,
)
from producer.emit import Emitter
from producer.errors import NotFoundError, UsageError
from producer.policy.learner import Learner
from producer.resume import resume_state
from producer.resume.orphans import end_abandoned, mark_open
from producer.resume.resume_state import EvaluationSummary, Manifest
from producer.resume.run_folder import find_run_folder
from producer.resume.training_history import TrainingHistory
from producer.rollouts.engine import EnvironmentFactory
from producer.rollouts.plan import StatedTask
from producer.tasks.overlap import split_of
from producer.tasks.sources import source_name
from producer.training.evaluation import EvaluatedTasks, EvaluationPlan, OnOutcomes, run_evaluation
from producer.training.loaded import (
    LoadedTasks,
    evaluation_tasks,
    load_policy,
    load_run_tasks,
    state_tasks,
)
from producer.training.open_policy import built_policy, open_policy, with_adapter_settings
from producer.training.preflight import check_home, check_services, is_unused
from producer.training.progress import ProgressEvents, ProgressTracker, Unit
from producer.training.rubric import load_step_scorer, make_rubric
from producer.training.run import utc_now
from producer.training.session import Session
from producer.warm_up.training import WarmUpTraining
from schemas import ids
from schemas.catalogue import stream
from schemas.evaluation import Split
from schemas.installation import Installation, read_installation

logger = logging.getLogger(__name__)

OF_THE_WEIGHTS = frozenset({"lora_rank", "lora_alpha", "target_modules", "load_checkpoint_path"})
"""Fields determined by a training's state."""
WITH_DEFAULT_TASKS = (None, DEMO_POLICY, ORACLE_POLICY)
"""Policies for which the environments have default tasks; None: the default policy."""
USES = {
    "sft": "evaluate its result: `cua-train sql eval --model-name {result} --data-path FOLDER`",
    "process_reward": (
        "its result scores steps: `cua-train sql best-of-n --reward-model {result} ...`"
    ),
    "pairwise_reward": "its result {result} scores answers; load it with transformers",
}
"""What to do with the result of a supervised training, by its objective."""


@dataclass(frozen=True, slots=True)
class EvaluatedPolicy:
    """The policy to evaluate."""

    config: RunConfig
    training_name: str | None
    """None if no training produced it."""
    manifest: Manifest | None
    state_folder: Path | None


def evaluate(
    given: dict[str, Any],
    *,
    training_name: str | None,
    installation: Installation | None = None,
    clock: Callable[[], datetime] = utc_now,
    stop: threading.Event | None = None,
    on_outcomes: OnOutcomes = lambda _outcomes: None,
) -> EvaluationSummary:
    """Run the evaluation and return its result.

    `given`: fields of the configuration; for a training they override the recorded ones.
    `on_outcomes` gets the results by task. Raises NotFoundError if the training has no state on
    this host.
    """
    stop = stop or threading.Event()
    installation = installation or read_installation(os.environ)
    policy = (
        EvaluatedPolicy(config_of_policy(given), None, None, None)
        if training_name is None
        else _policy_of_training(training_name, given, installation)
    )
    check_home(installation, policy.config.model_name)
    check_effects(policy.config, given)
    if policy.config.base_url is not None:
        check_served(policy.config)
    loaded = evaluation_tasks(policy.config, given)
    # Opening the log creates files, so refuse bad arguments before that.
    learner = load_policy(policy.config, installation, loaded, is_training=False, stop=stop)
    if is_unused(installation):
        check_services(installation, stop)
    with Emitter.open(installation, clock=clock, stop=stop) as emitter:
        return _evaluate(policy, loaded, learner, installation, emitter, clock, stop, on_outcomes)


def config_of_policy(given: dict[str, Any]) -> RunConfig:
    """The configuration for a policy that no training produced.

    Since it was trained on no tasks, `tasks` are those to evaluate on. Without `eval_tasks`, the
    environment's default tasks are used, on the phone the held-out ones. Raises UsageError, also if
    there are no default tasks.
    """
    tasks = given.get("eval_tasks")
    is_on_phone = given.get("environment") in {None, DEFAULT_AGENT}
    if tasks is None and is_on_phone and given.get("model_name") not in WITH_DEFAULT_TASKS:
        tasks = {"source_type": "demo_training"}
    config = read_config(
        given if tasks is None else {"tasks": tasks, **given}, {"tasks": "eval_tasks"}
    )
    return with_adapter_settings(config)


def _policy_of_training(
    training_name: str, given: dict[str, Any], installation: Installation
) -> EvaluatedPolicy:
    run_folder = find_run_folder(installation, training_name)
    states = resume_state.find_states(run_folder)
    if not states:
        message = (
            f"training {training_name!r} has no saved state in {run_folder}; evaluate it on the"
            " host that trains it"
        )
        raise NotFoundError(message)
    stored = resume_state.read_run_config(run_folder)
    if "objective" in stored:
        result = stored.get("output_dir") or run_folder / "model"
        way = USES[str(stored["objective"])].format(result=result)
        message = f"training {training_name!r} is supervised and plays no episodes; {way}"
        raise UsageError(message)
    stored = recorded_fields(stored)
    config = read_config({**stored, **without_unset(given)})
    if others := differences(
        {name: stored.get(name) for name in OF_THE_WEIGHTS & given.keys()},
        {name: config.recorded()[name] for name in OF_THE_WEIGHTS & given.keys()},
    ):
        message = (
            f"training {training_name!r} is evaluated with the weights of its newest state; leave"
            f" these out: {'; '.join(others)}"
        )
        raise UsageError(message)
    # It must not use the devices of the training, which may have ended.
    return EvaluatedPolicy(config.sampled_here().named(None), training_name, *states[0])


def _evaluated(
    policy: EvaluatedPolicy, loaded: LoadedTasks, stated: Sequence[StatedTask]
) -> EvaluatedTasks:
    """The evaluated tasks, and their relation to those of the training."""
    config = policy.config
    seeds_matter = config.agent.seeds_matter
    split: Split | None = None
    if policy.training_name is not None:
        try:
            trained = load_run_tasks(config, is_check=True).tasks
        except (UsageError, NotFoundError) as error:
            logger.warning("the training's own tasks cannot be compared with these: %s", error)
        else:
            split = split_of(trained, loaded.eval_tasks, seeds_matter=seeds_matter)
    source = source_name(config.tasks if config.eval_tasks is None else config.eval_tasks)
    return EvaluatedTasks(stated, split, source, seeds_matter)


def _evaluate(
    policy: EvaluatedPolicy,
    loaded: LoadedTasks,
    opened: tuple[Learner, EnvironmentFactory] | None,
    installation: Installation,
    emitter: Emitter,
    clock: Callable[[], datetime],
    stop: threading.Event,
    on_outcomes: OnOutcomes,
) -> EvaluationSummary:
    config, manifest, training_name = policy.config, policy.manifest, policy.training_name
    end_abandoned(installation, emitter, clock, stop)
    if opened is None:
        making = built_policy(config).plan()
        with WarmUpTraining(emitter, clock, installation.open_dir, stop, plan=making) as warm_up:
            opened = open_policy(
                config,
                installation.policies_dir,
                warm_up.on_progress,
                warm_up.on_wait,
                is_training=False,
            )
    learner, make_environment = opened
    if policy.state_folder is not None:
        learner.load_state(policy.state_folder)
    evaluation_id = ids.manual_eval_id(ids.uuid7(clock()))
    training_id = None if training_name is None else ids.training_id(training_name)
    subject = stream("evaluation", evaluation_id)
    writer = emitter.stream(subject, training_id=training_id)
    session = Session(
        config=config,
        run_name=training_name or "evaluation",
        training_id=training_id,
        generation=manifest.generation if manifest else 0,
        installation=installation,
        emitter=emitter,
        stream=writer,
        learner=learner,
        make_environment=make_environment,
        ask_model=loaded.ask_model,
        history=TrainingHistory(),
        clock=clock,
        stop=stop,
        read_blob=open_blobs(installation).get,
        progress=ProgressEvents(writer, ProgressTracker(config.concurrent_rollouts)),
        rubric=make_rubric(config, learner, load_step_scorer(config)),
        reward=config.make_reward(),
    )
    with mark_open(installation.open_dir, subject, emitter):
        evaluated = _evaluated(policy, loaded, state_tasks(writer, loaded.eval_tasks))
        step = manifest.step if manifest else None
        created = evaluated.created(session, "manual", step, config.evaluation_passes[0])
        unit = Unit(created.total_tasks, config.max_turns, is_step=False)
        session.progress.tracker.units.append(unit)
        label = f"eval-manual-{evaluation_id.hex[:8]}"
        plan = EvaluationPlan(evaluation_id, label, created, unit)
        try:
            return run_evaluation(session, plan, evaluated.tasks, on_outcomes)
        finally:
            session.left_devices.seal()
