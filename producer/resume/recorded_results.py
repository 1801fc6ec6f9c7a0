"""Results of finished evaluations, read from the log by commands that write nothing."""

from dataclasses import dataclass
from uuid import UUID

from producer.log.stream_history import StreamHistory, evaluation_streams, read_back
from schemas.catalogue import stream, stream_owner
from schemas.evaluation import EvaluationCreated, EvaluationFinished, EvaluationSuperseded
from schemas.ids import training_id
from schemas.installation import Installation

LOG_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """An evaluation that ended with a result."""

    id: UUID
    created: EvaluationCreated
    finished: EvaluationFinished


def results_of_training(installation: Installation, name: str) -> list[RecordedResult] | None:
    """Results of the baselines and scheduled evaluations that count, by step; None: no training.

    If two generations evaluated the same step and temperature, the newer result counts. The home
    must have a log. Raises UnreachableError, LogBrokenError and MismatchError.
    """
    owner = training_id(name)
    own = stream("training", owner)
    if not read_back(installation, [own], timeout_s=LOG_TIMEOUT_S)[own].exists:
        return None
    subjects = evaluation_streams(installation, owner, timeout_s=LOG_TIMEOUT_S)
    histories = read_back(installation, subjects, timeout_s=LOG_TIMEOUT_S) if subjects else {}
    results = [_result(history) for history in histories.values()]
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
    subject = stream("evaluation", evaluation_id)
    return _result(read_back(installation, [subject], timeout_s=LOG_TIMEOUT_S)[subject])


def _result(history: StreamHistory) -> RecordedResult | None:
    """The result; None if there is none or a later generation superseded it."""
    payloads = [event.payload for event in history.events]
    created = next((item for item in payloads if isinstance(item, EvaluationCreated)), None)
    finished = next((item for item in payloads if isinstance(item, EvaluationFinished)), None)
    is_superseded = any(isinstance(item, EvaluationSuperseded) for item in payloads)
    if created is None or finished is None or is_superseded:
        return None
    return RecordedResult(stream_owner(history.subject), created, finished)
