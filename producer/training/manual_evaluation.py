"""One evaluation by hand: of a training's newest state, or of a policy that no training made.

It claims nobody's training.
"""

import os
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from producer.blobs import open_blobs
from producer.config import DEMO_POLICY, ORACLE_POLICY, RunConfig, read_config
from producer.demo_policy.warm_up_training import WarmUpFacts
from producer.emit import Emitter
from producer.emit.speaker import StreamSpeaker
from producer.errors import NotFoundError, UsageError
from producer.resume import resume_state
from producer.resume.open_stream_markers import mark_open
from producer.resume.orphans import end_abandoned
from producer.resume.resume_state import EvaluationSummary, Manifest
from producer.resume.training_history import TrainingHistory
from producer.rollouts.plan import StatedTask
from producer.tasks.sources import load_tasks
from producer.training.evaluation import EvaluationPlan, run_evaluation
from producer.training.open_policy import open_policy
from producer.training.progress import ProgressTracker, Unit
from producer.training.run import state_task, utc_now
from producer.training.session import Session
from schemas import ids
from schemas.catalogue import stream
from schemas.installation import Installation, read_installation


def evaluate(
    given: dict[str, Any],
    *,
    training_name: str | None,
    installation: Installation | None = None,
    clock: Callable[[], datetime] = utc_now,
    stop: threading.Event | None = None,
    report: Callable[[str], None] = lambda line: None,  # noqa: ARG005  # silence is the default
) -> EvaluationSummary:
    """Run it and return what came out.

    NotFoundError when the training has no state on this host.
    """
    installation = installation or read_installation(os.environ)
    stop = stop or threading.Event()
    manifest, folder, config = None, None, None
    if training_name is not None:
        run_folder = installation.runs_dir / training_name
        states = resume_state.find_states(run_folder)
        if not states:
            message = (
                f"training {training_name!r} has no state in {run_folder}; expected one that was"
                " trained here"
            )
            raise NotFoundError(message)
        manifest, folder = states[0]
        recorded = resume_state.read_config_of(run_folder)
        config = read_config(
            {**recorded, **{name: value for name, value in given.items() if value is not None}}
        )
    else:
        config = config_of_policy(given)
    with Emitter.open(installation, clock=clock, say=report) as emitter:
        return _evaluate(
            config, training_name, manifest, folder, installation, emitter, clock, stop, report
        )


def config_of_policy(given: dict[str, Any]) -> RunConfig:
    """The configuration for a policy that no training made.

    One that has no tasks of its own is judged by all training tasks.
    """
    own_tasks = given.get("model_name") in {None, DEMO_POLICY, ORACLE_POLICY}
    return read_config(given if own_tasks else {"tasks": {"source_type": "demo_training"}, **given})


def _evaluate(
    config: RunConfig,
    training_name: str | None,
    manifest: Manifest | None,
    folder: Path | None,
    installation: Installation,
    emitter: Emitter,
    clock: Callable[[], datetime],
    stop: threading.Event,
    report: Callable[[str], None],
) -> EvaluationSummary:
    tasks = [task for task in load_tasks(config.eval_tasks or config.tasks) if task.is_judged]
    if not tasks:
        message = "eval_tasks: none of these tasks can be judged; see cua-train tasks list"
        raise UsageError(message)
    end_abandoned(installation, emitter, clock)
    with WarmUpFacts(emitter, clock, config, installation.open_dir, stop, report) as warm_up:
        learner, make_environment = open_policy(
            config, installation.policies_dir, warm_up.on_progress
        )
    if folder is not None:
        learner.load_state(folder)
    evaluation_id = ids.manual_eval_id(ids.uuid7(clock()))
    training_id = None if training_name is None else ids.training_id(training_name)
    speaker = StreamSpeaker(stream("evaluation", evaluation_id), training_id, emitter)
    session = Session(
        config=config,
        run_name=training_name or "evaluation",
        training_id=training_id,
        generation=manifest.generation if manifest else 0,
        emitter=emitter,
        learner=learner,
        make_environment=make_environment,
        training_history=TrainingHistory(),
        speaker=speaker,
        clock=clock,
        stop=stop,
        read_blob=open_blobs(installation.blobs_url).get,
        report=report,
        tracker=ProgressTracker(config.max_concurrent_rollouts),
    )
    unit = Unit(config.eval_episodes, config.max_turns, is_step=False)
    session.tracker.units.append(unit)
    label = f"eval-manual-{evaluation_id.hex[:8]}"
    plan = EvaluationPlan("manual", evaluation_id, label, manifest.step if manifest else None)

    with mark_open(installation.open_dir, speaker.subject, emitter):
        stated: list[StatedTask] = [state_task(speaker.say, task) for task in tasks]
        return run_evaluation(session, plan, stated, unit)
