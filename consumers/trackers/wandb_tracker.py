"""Weights & Biases. Without a key or the network everything stays on disk, for `wandb sync`."""

import logging
from pathlib import Path
from typing import Any, Literal

import wandb

from consumers.errors import CuaProjectError
from consumers.trackers.tracker import Measurement, Outcome, TrackedRun

logger = logging.getLogger(__name__)

STEP = "progress/step"
"""The axis of every metric: evaluations may arrive after later steps."""
INIT_TIMEOUT_S = 60.0
Mode = Literal["online", "offline"]


class WandbTracker:
    """One wandb run for each of ours; its id is derived from the training's."""

    def __init__(self, folder: Path, project: str, name: str | None = None) -> None:
        """`folder`: where wandb keeps its files; `name`: shown instead of the training's name."""
        self._folder = folder
        self._project = project
        self._name = name
        self._runs: dict[str, Any] = {}
        self._has_warned = False

    def begin(self, run: TrackedRun) -> None:
        """Open or resume it. CuaProjectError when wandb refuses."""
        if run.key in self._runs:
            self._runs[run.key].config.update(dict(run.config), allow_val_change=True)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        mode: Mode = "online" if _may_go_online() else "offline"
        if mode == "offline" and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "wandb has no key or cannot be reached; measurements are kept below %s for"
                " `wandb sync`",
                self._folder,
            )
        try:
            opened = self._open(run, mode)
        except wandb.errors.CommError as error:
            logger.warning(
                "wandb cannot be reached (%s); measurements are kept in %s for `wandb sync`",
                str(error).splitlines()[0],
                self._folder,
            )
            opened = self._open(run, "offline")
        opened.define_metric(STEP, hidden=True)
        opened.define_metric("*", step_metric=STEP)
        self._runs[run.key] = opened

    def _open(self, run: TrackedRun, mode: Mode) -> Any:  # noqa: ANN401  # wandb's types are its own
        name = run.display_name.replace(run.training_name, self._name or run.training_name, 1)
        try:
            return wandb.init(
                project=self._project,
                name=name,
                id=run.key,
                config=dict(run.config),
                dir=str(self._folder),
                mode=mode,
                resume="allow" if mode == "online" else None,
                reinit="create_new",
                settings=wandb.Settings(
                    silent=True,
                    console="off",
                    init_timeout=INIT_TIMEOUT_S,
                    disable_git=True,
                    disable_code=True,
                    x_disable_meta=True,
                    x_disable_stats=True,
                ),
            )
        except wandb.errors.UsageError as error:
            message = f"wandb refuses the run of training {run.training_name!r}: {error}"
            raise CuaProjectError(message) from error

    def log(self, run: TrackedRun, measurement: Measurement) -> None:
        """All metrics at once."""
        self._runs[run.key].log({STEP: measurement.step, **measurement.metrics})

    def end(self, run: TrackedRun, outcome: Outcome, message: str | None) -> None:
        """Finish it: wandb then shows it as finished or failed."""
        opened = self._runs.pop(run.key, None)
        if opened is not None:
            opened.summary["outcome"] = outcome
            if message is not None:
                opened.summary["message"] = message
            opened.finish(exit_code=0 if outcome == "completed" else 1)

    def close(self) -> None:
        """Hand over what is open, without an outcome: the next process resumes it."""
        for opened in self._runs.values():
            opened.finish()
        self._runs.clear()


def _may_go_online() -> bool:
    """Whether there is a key and nothing forbids its use. Never asks on the terminal."""
    if wandb.setup().settings.mode not in {"online", "shared"}:
        return False
    try:
        return bool(wandb.login(prompt=False))
    except wandb.errors.Error:
        return False
