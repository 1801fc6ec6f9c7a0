"""`GoldOracle`: a scripted policy that answers entries of data sets with their golds."""

from collections.abc import Sequence
from random import Random
from uuid import UUID

from producer.codecs.codec import CannotEncodeError, Codec
from producer.policy.policy import Completion, SampleRequest
from producer.policy.scripted_learner import ScriptedLearner
from schemas.actions import Action, Answer, ExecuteSql
from schemas.entry import EntryContent

UNREADABLE = "I do not know."
"""A completion without an action."""


class GoldOracle(ScriptedLearner):
    """A `Learner` that executes the gold and answers with its rows.

    With probability `noise` it writes no action at all, answers without a query, or executes
    something else. An entry without a gold it cannot solve. A completion depends on (`seed`,
    request.seed) and the request.
    """

    def __init__(self, codec: Codec, *, noise: float, seed: int, asks_first: bool) -> None:
        """`asks_first`: the gold is executed and its rows answered; else it is the answer."""
        super().__init__(noise=noise, seed=seed)
        self._codec = codec
        self._asks_first = asks_first

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One completion per request."""
        return [self._sample(request) for request in requests]

    def forget(self, episode: UUID) -> None:
        """Nothing is kept."""

    def _sample(self, request: SampleRequest) -> Completion:
        random = Random(f"{self._seed}/{request.seed}")  # noqa: S311  # noise, not secrets
        action = self._best(request)
        if random.random() < self._noise:
            other = ExecuteSql(sql="SELECT 0") if self._asks_first else Answer(text="SELECT 0")
            action = random.choice((None, Answer(text="0"), other))
        try:
            text = UNREADABLE if action is None else self._codec.encode(action, 0, 0)
        except CannotEncodeError:  # a gold may hold what ends a block of SQL
            text = UNREADABLE
        return Completion(text=text, actions=self._codec.parse(text, 0, 0), tokens=None)

    def _best(self, request: SampleRequest) -> Action | None:
        entry = request.task.entry
        if entry is None or entry.sql is None:
            return None
        if not self._asks_first:
            return Answer(text=entry.sql)
        if request.history:
            return Answer(text=_rows(entry, request.text or "done"))
        return ExecuteSql(sql=entry.sql)


def _rows(entry: EntryContent, seen: str) -> str:
    """What was seen, as one line; the gold's rows where not all of them were shown."""
    if seen.startswith("[") and "\n" in seen and entry.answer_direct is not None:
        return str([list(row) for row in entry.answer_direct])
    return " ".join(seen.splitlines())
