"""Warns at the start about topics that lose or limit records, and refuses compacted topics."""

import logging
from collections.abc import Mapping

from producer.errors import UsageError
from schemas.kafka_log import (
    MAX_MESSAGE_BYTES,
    is_compacted,
    keep_for_ever,
    limits_of_age,
    raise_limit,
)

logger = logging.getLogger(__name__)

Settings = Mapping[str, Mapping[str, str]]
"""Maps a topic to its settings, including the broker's defaults."""


class TopicWarnings:
    """Warns about a topic's settings once, and again if they change. Not thread-safe."""

    def __init__(self, servers: str | None) -> None:
        self._servers = servers or ""
        self._said: dict[tuple[str, str], object] = {}

    def of_deletion(self, settings: Settings) -> None:
        """Warn about topics that delete their oldest records."""
        for topic, values in settings.items():
            limits = limits_of_age(values)
            if self._is_news((topic, "deletion"), limits) and limits:
                logger.warning(
                    "topic %s deletes old records (%s), which nothing brings back: resuming and"
                    " rebuilding need them all. To keep them, %s",
                    *(topic, ", ".join(limits), keep_for_ever(self._servers, topic)),
                )

    def of_sizes(self, limits: Mapping[str, int]) -> None:
        """Warn about topics that accept only smaller records than ours."""
        for topic, limit in limits.items():
            if self._is_news((topic, "size"), limit):
                logger.warning(
                    "topic %s takes records of up to %s bytes; larger events are refused. To change"
                    " that, %s",
                    *(topic, f"{limit:,}", raise_limit(self._servers, topic, MAX_MESSAGE_BYTES)),
                )

    def _is_news(self, what: tuple[str, str], found: object) -> bool:
        known, self._said[what] = self._said.get(what), found
        return known != found


def refuse_compacted(settings: Settings, servers: str | None) -> None:
    """Raise UsageError for topics that keep only the newest event of every stream."""
    compacted = [topic for topic, values in settings.items() if is_compacted(values)]
    if compacted:
        policy = settings[compacted[0]]["cleanup.policy"]
        message = (
            f"topic {', '.join(compacted)} is compacted (cleanup.policy={policy}): Kafka deletes"
            " all but the newest event of every stream, so that no training would be left; change"
            f" it: {keep_for_ever(servers or '', compacted[0])}"
        )
        raise UsageError(message)
