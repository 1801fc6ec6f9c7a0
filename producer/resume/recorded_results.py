"""Results of finished evaluations, read from the log by commands that write nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from producer.log.stream_history import StreamHistory, evaluation_streams, read_back
from schemas.catalogue import stream, stream_owner
from schemas.evaluation import EvaluationCreated, EvaluationFinished, EvaluationSuperseded
from schemas.ids import training_id
from schemas.installation import Installation
from schemas.task import TaskStated

LOG_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """An evaluation that ended with a result."""

    id: UUID
    created: EvaluationCreated
    finished: EvaluationFinished
    tasks: Mapping[str, TaskStated] = field(default_factory=dict)
    """Definitions by task_id, of the evaluation or its training; empty if they were not read."""


def results_of_training(installation: Installation, name: str) -> list[RecordedResult] | None:
    """Results of the baselines and scheduled evaluations that count, by step; None: no training.

    If two generations evaluated the same step and temperature, the newer result counts. The home
    must have a log. Raises UnreachableError, LogBrokenError and MismatchError.
    """
    owner = training_id(name)
    own = _read(installation, stream("training", owner))
    if not own.exists:
        return None
    subjects = evaluation_streams(installation, owner, timeout_s=LOG_TIMEOUT_S)
    histories = read_back(installation, subjects, timeout_s=LOG_TIMEOUT_S) if subjects else {}
    stated = _tasks(own)
    results = [_result(history, stated) for history in histories.values()]
    counting = [
        item
        for item in results
        if item is not None and item.created.training_id == owner and item.created.kind != "manual"
    ]
    newest_last = sorted(counting, key=lambda item: item.created.generation or 0)
    by_point = {(item.created.step, item.created.temperature): item for item in newest_last}
    return sorted(by_point.values(), key=lambda item: item.created.step or 0)


def result_of_evaluation(installation: Installation, evaluation_id: UUID) -> RecordedResult | None:
    """The result of this evaluation; None if it has none yet. Raises as `results_of_training`."""
    found = _result(_read(installation, stream("evaluation", evaluation_id)), {})
    if found is None or found.tasks or found.created.training_id is None:
        return found
    own = _read(installation, stream("training", found.created.training_id))
    return replace(found, tasks=_tasks(own))


def _read(installation: Installation, subject: str) -> StreamHistory:
    return read_back(installation, [subject], timeout_s=LOG_TIMEOUT_S)[subject]


def _tasks(history: StreamHistory) -> dict[str, TaskStated]:
    """The tasks that a stream states, by task_id; of two definitions the newer one."""
    payloads = [event.payload for event in history.events]
    return {item.task_id: item for item in payloads if isinstance(item, TaskStated)}


def _result(history: StreamHistory, stated: Mapping[str, TaskStated]) -> RecordedResult | None:
    """The result; None if there is none or a later generation superseded it.

    `stated`: its training's tasks; an evaluation by hand states its own.
    """
    payloads = [event.payload for event in history.events]
    created = next((item for item in payloads if isinstance(item, EvaluationCreated)), None)
    finished = next((item for item in payloads if isinstance(item, EvaluationFinished)), None)
    is_superseded = any(isinstance(item, EvaluationSuperseded) for item in payloads)
    if created is None or finished is None or is_superseded:
        return None
    tasks = _tasks(history) or stated
    return RecordedResult(stream_owner(history.subject), created, finished, tasks)
