"""Scripted policies: their shared base, and `GoldOracle`, which answers with the gold."""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from uuid import UUID

from producer.algorithms.settings import UpdateSettings
from producer.codecs.codec import CannotEncodeError, Codec
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.policy import Completion, SampleRequest
from schemas.actions import Action, Answer, ExecuteSql
from schemas.entry import EntryContent

STATE = "scripted.json"
"""Name of the only file of a state or checkpoint."""


class ScriptedLearner:
    """A `Learner` without weights; a subclass samples. It exercises the system without torch."""

    name = "oracle"
    repeats_batches = False

    def __init__(self, *, noise: float, seed: int) -> None:
        """`noise`: probability of a wrong answer. Raises ValueError if it is not in range."""
        if not 0 <= noise <= 1:
            message = f"noise {noise} is not a probability; choose 0 to 1"
            raise ValueError(message)
        self._noise = noise
        self._seed = seed
        self._version = 0

    @property
    def version(self) -> int:
        """Number of updates so far."""
        return self._version

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:  # noqa: ARG002  # the interface's
        """Increment `version`; the result has a loss of 0 over no tokens."""
        self._version += 1
        return UpdateResult(
            loss=0.0,
            kl_sample_train_v1=0.0,
            kl_sample_train_v2=0.0,
            entropy=0.0,
            gradient_norm=0.0,
            num_tokens=0,
            seconds=0.0,
        )

    def save_state(self, folder: Path) -> None:
        """Write the version to an existing folder, synced to disk."""
        with (folder / STATE).open("w") as file:
            json.dump({"version": self._version}, file)
            file.flush()
            os.fsync(file.fileno())

    def load_state(self, folder: Path) -> None:
        """Restore the version."""
        self._version = int(json.loads((folder / STATE).read_text())["version"])

    def save_checkpoint(self, folder: Path) -> str:
        """Write the state, as there are no weights; returns the sha256 of its file."""
        folder.mkdir(parents=True, exist_ok=True)
        self.save_state(folder)
        return sha256((folder / STATE).read_bytes()).hexdigest()


UNREADABLE = "I do not know."
"""A completion without an action."""


class GoldOracle(ScriptedLearner):
    """A `Learner` that executes the gold query and answers with its rows.

    With probability `noise` it writes no action, answers without a query, or executes something
    else. It cannot solve an entry without a gold. A completion depends only on `seed`,
    `request.seed` and the request.
    """

    def __init__(self, codec: Codec, *, noise: float, seed: int, asks_first: bool) -> None:
        """`asks_first`: run the gold and answer with its rows; otherwise the gold is the answer."""
        super().__init__(noise=noise, seed=seed)
        self._codec = codec
        self._asks_first = asks_first

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Return one completion per request, in order."""
        return [self._sample(request) for request in requests]

    def forget(self, episode: UUID) -> None:
        """No-op: no state is kept."""

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
    """The rows seen, as one line; if not all of them were shown, the gold's rows."""
    if seen.startswith("[") and "\n" in seen and entry.answer_direct is not None:
        return str([list(row) for row in entry.answer_direct])
    return " ".join(seen.splitlines())
