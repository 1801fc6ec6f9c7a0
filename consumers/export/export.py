"""Writes the rollouts of trainings as a dataset. The folder appears when it is complete."""

import logging
import time
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import UUID

from consumers.blobs import read_blob
from consumers.errors import NotFoundError
from consumers.export.conversations import write_conversations
from consumers.export.dataset import Shards, write_readme
from consumers.export.events import of_kinds, read_events
from consumers.export.new_folder import new_folder
from consumers.export.rollouts import EndedRollout, RolloutCollector
from consumers.export.rows import rollout_row, turn_rows
from consumers.export.sessions import write_sessions
from consumers.export.trainings import Trainings
from consumers.fold.ordered_events import OrderedEvents
from consumers.log.reader import LogReader, TopicPartition
from consumers.rebuild.replay import check_beginning
from schemas.catalogue import TOPICS
from schemas.installation import Installation

logger = logging.getLogger(__name__)

Form = Literal["parquet", "openai", "sessions"]
ReadImage = Callable[[str], bytes | None]
CACHED_IMAGES = 256
"""A screenshot is often that of several turns: after one action, before the next."""


class ExportReport(NamedTuple):
    """What was written."""

    rollouts: int
    turns: int
    missing_images: int
    """Screenshots that the blob store does not have; null in the dataset."""
    unfinished: int
    """Rollouts that have not ended, and are left out."""
    seconds: float
    folder: str


def export(
    reader: LogReader,
    installation: Installation,
    folder: Path,
    *,
    trainings: Collection[UUID] = (),
    with_images: bool = True,
    form: Form = "parquet",
) -> ExportReport:
    """Write every ended rollout of these trainings, or of all, to a new folder.

    `form`: Parquet tables, items of the OpenAI Responses API, or LifelongAgentBench's sessions.
    What operators dropped is left out, as in the tables.

    UsageError when the folder exists and is not empty, or cannot be made; CuaProjectError when the
    log lacks its beginning; UnreachableError.
    """
    began = time.monotonic()
    check_beginning(reader)
    until = reader.end_offsets(reader.partitions())
    ordered = OrderedEvents(reader.log_id)

    def of_topic(name: str) -> list[TopicPartition]:
        return [at for at in until if at.topic == installation.topic_prefix + TOPICS[name]]

    facts = Trainings()
    about = of_kinds({"training", "evaluation"}, trainings)
    facts.read(read_events(ordered, reader, of_topic("training"), until, about, trainings))
    images = _Images(installation) if with_images else None
    collector = RolloutCollector(ordered.forget)
    attempts = of_kinds({"rollout"}, trainings)
    events = read_events(ordered, reader, of_topic("rollout"), until, attempts, trainings)
    write = WRITE_FORM[form]
    with new_folder(folder) as partial:
        image = _no_image if images is None else images.read
        num_rollouts, num_turns = write(partial, collector.collect(events), facts, image)
    if num_rollouts == 0:
        logger.warning(
            "no rollout has ended: the dataset has no rows, and `datasets` opens none without rows"
        )
    num_missing = 0 if images is None else len(images.missing)
    if num_missing:
        logger.warning(
            "%d screenshots are not in the blob store and are null in the dataset", num_missing
        )
    return ExportReport(
        num_rollouts,
        num_turns,
        num_missing,
        collector.num_unfinished,
        time.monotonic() - began,
        str(folder),
    )


def _write_tables(
    folder: Path, ended: Iterable[EndedRollout], facts: Trainings, image: ReadImage
) -> tuple[int, int]:
    """Numbers of rollouts and turns."""
    with Shards(folder, "rollouts") as rollouts, Shards(folder, "turns") as turns:
        for rollout in ended:
            rollouts.add(rollout_row(rollout, facts))
            for row in turn_rows(rollout, image):
                turns.add(row)
    write_readme(folder, "Rollouts of computer-use agents")
    return rollouts.num_rows, turns.num_rows


Write = Callable[[Path, Iterable[EndedRollout], Trainings, ReadImage], tuple[int, int]]
WRITE_FORM: dict[Form, Write] = {
    "parquet": _write_tables,
    "openai": write_conversations,
    # Sessions have no screens.
    "sessions": lambda folder, ended, facts, _image: write_sessions(folder, ended, facts),
}


def _no_image(ref: str) -> bytes | None:  # noqa: ARG001  # turn_rows calls it
    return None


class _Images:
    """Reads screenshots; notes those that are missing."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self.missing: set[str] = set()
        self.read = lru_cache(CACHED_IMAGES)(self._read)

    def _read(self, ref: str) -> bytes | None:
        try:
            return read_blob(self._installation, ref)
        except NotFoundError:
            self.missing.add(ref)
            return None
