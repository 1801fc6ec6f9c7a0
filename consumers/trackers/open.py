"""Opens a tracker by its name, if its package is installed."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from consumers.errors import UsageError
from consumers.trackers.tracker import Tracker
from schemas.distribution import install_command
from schemas.http_environment import (
    CERTIFICATES,
    PYSOCKS,
    REQUESTS_CERTIFICATES,
    bypass_for_loopback,
    http_problem,
)
from schemas.installation import Installation

TrackerName = Literal["wandb", "tensorboard", "mlflow"]
DEFAULT_PROJECT = "cua-train"
WANDB_URL = "https://api.wandb.ai"


class TrackerPlace:
    """Where a tracker logs to, as a user names it."""

    def __init__(
        self,
        tracker: TrackerName,
        installation: Installation,
        environ: Mapping[str, str],
        *,
        project: str | None = None,
        name: str | None = None,
        to: str | None = None,
    ) -> None:
        """UsageError for an option that this tracker does not have, or without its package."""
        if find_spec(tracker) is None:
            message = f"{tracker} is not installed; run {install_command(tracker)}"
            raise UsageError(message)
        if tracker == "tensorboard" and (project is not None or name is not None):
            message = "tensorboard knows no --project and no --name; it has --to FOLDER"
            raise UsageError(message)
        if tracker == "mlflow" and name is not None:
            message = "--name: mlflow's runs have the trainings' names; it has --project and --to"
            raise UsageError(message)
        if tracker == "wandb" and to is not None:
            message = "--to: wandb has no such place; WANDB_BASE_URL names another server"
            raise UsageError(message)
        self._tracker = tracker
        self._project = project or DEFAULT_PROJECT
        self._name = name
        self.folder = installation.home / "trackers"
        self._to = to
        if tracker == "tensorboard":
            self._to = str(Path(to or installation.home / "tensorboard").expanduser().absolute())
        elif tracker == "mlflow":
            self._to = to or environ.get("MLFLOW_TRACKING_URI")

    @property
    def target(self) -> str:
        """Names tracker and place, for people and for what was logged there."""
        if self._tracker == "tensorboard":
            return f"tensorboard: {self._to}"
        at = f" at {self._to}" if self._to else ""
        return f"{self._tracker}: project {self._project}{at}"

    def open(self) -> Tracker:
        """The tracker. Imports its package, which may take seconds.

        UsageError if the shell's proxies or certificates let no request be sent to its server.
        """
        self._check_http_environment()
        match self._tracker:
            case "wandb":
                from consumers.trackers.wandb_tracker import WandbTracker

                return WandbTracker(self.folder / "wandb", self._project, self._name)
            case "tensorboard":
                from consumers.trackers.tensorboard import TensorboardTracker

                return TensorboardTracker(Path(self._to or ""))
            case "mlflow":
                from consumers.trackers.mlflow_tracker import MlflowTracker

                return MlflowTracker(self._to, self._project)

    def _check_http_environment(self) -> None:
        server = self._to or ""
        if self._tracker == "wandb":
            server = os.environ.get("WANDB_BASE_URL") or WANDB_URL
        if not server.startswith(("http://", "https://")):
            return
        bypass_for_loopback(os.environ, server)
        # Both use the package requests; it takes any proxy that it is not sent to.
        certificates = (REQUESTS_CERTIFICATES, CERTIFICATES)
        if problem := http_problem(server, os.environ, certificates, socks=PYSOCKS):
            raise UsageError(problem)
