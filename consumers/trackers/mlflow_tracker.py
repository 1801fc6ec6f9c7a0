"""MLflow: runs of an experiment on a tracking server, or in a database or folder."""

from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from consumers.errors import CuaProjectError
from consumers.trackers.tracker import Measurement, Outcome, TrackedRun

RUN_TAG = "cua.run"
"""Tag that names our run: a later process finds it again."""
MAX_PARAM_CHARS = 500
MAX_PARAMS = 100
"""Of one request."""
STATUS = {"completed": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}


class MlflowTracker:
    """One MLflow run for each of ours."""

    def __init__(self, uri: str | None, experiment: str) -> None:
        """`uri`: None: MLFLOW_TRACKING_URI, or MLflow's default."""
        self._client = MlflowClient(tracking_uri=uri)
        self._experiment = experiment
        self._run_ids: dict[str, str] = {}

    def begin(self, run: TrackedRun) -> None:
        """Find or create it. CuaProjectError when MLflow cannot be reached."""
        if run.key in self._run_ids:
            return
        try:
            opened = self._find_or_create(run)
            self._run_ids[run.key] = opened.info.run_id
            self._client.update_run(opened.info.run_id, status="RUNNING")
            known = opened.data.params
            params = [
                Param(name, str(value)[:MAX_PARAM_CHARS])
                for name, value in run.config.items()
                if name not in known
            ]
            for first in range(0, len(params), MAX_PARAMS):
                batch = params[first : first + MAX_PARAMS]
                self._client.log_batch(opened.info.run_id, params=batch)
        except MlflowException as error:
            raise _refused(run, error) from error

    def _find_or_create(self, run: TrackedRun) -> Run:
        experiment = self._client.get_experiment_by_name(self._experiment)
        experiment_id = (
            self._client.create_experiment(self._experiment)
            if experiment is None
            else experiment.experiment_id
        )
        found = self._client.search_runs(
            [experiment_id], filter_string=f"tags.`{RUN_TAG}` = '{run.key}'", max_results=1
        )
        if found:
            return found[0]
        return self._client.create_run(
            experiment_id, tags={RUN_TAG: run.key}, run_name=run.display_name
        )

    def log(self, run: TrackedRun, measurement: Measurement) -> None:
        """All metrics in one request."""
        at = int(measurement.time.timestamp() * 1000)
        metrics = [
            Metric(name, value, at, measurement.step)
            for name, value in sorted(measurement.metrics.items())
        ]
        try:
            self._client.log_batch(self._run_ids[run.key], metrics=metrics)
        except MlflowException as error:
            raise _refused(run, error) from error

    def end(self, run: TrackedRun, outcome: Outcome, message: str | None) -> None:
        """Set its status."""
        run_id = self._run_ids.pop(run.key, None)
        if run_id is None:
            return
        try:
            if message is not None:
                self._client.log_batch(run_id, tags=[RunTag("cua.message", message)])
            self._client.set_terminated(run_id, STATUS[outcome])
        except MlflowException as error:
            raise _refused(run, error) from error

    def close(self) -> None:
        """Nothing is buffered here."""


def _refused(run: TrackedRun, error: MlflowException) -> CuaProjectError:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return CuaProjectError(f"mlflow refuses the run of training {run.training_name!r}: {first}")
