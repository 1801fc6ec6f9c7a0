"""Waits until Kafka answers, before an installation that has no spool yet makes one."""

import logging
import math
import threading
import time
from functools import partial

from producer.errors import StopRequestedError, UnreachableError
from producer.log.interruptible import interruptible
from schemas.catalogue import TOPIC_NAMES
from schemas.installation import Installation

logger = logging.getLogger(__name__)

RETRY_S = 1.0


def wait_for_kafka(
    installation: Installation, timeout_s: float, stop: threading.Event | None = None
) -> None:
    """Return once Kafka has answered; its topics are then made. Writes nothing on this machine.

    Tries at least once and for up to `timeout_s`, then raises UnreachableError. StopRequestedError
    once `stop` is set.
    """
    # Importing kafka takes a tenth of a second, and most installations have none.
    from producer.log.kafka import KafkaLog

    topics = [installation.topic_prefix + name for name in TOPIC_NAMES]
    deadline = time.monotonic() + timeout_s
    has_warned = False
    while True:
        try:
            attempt = partial(KafkaLog, installation, topics)
            interruptible(attempt, stop, KafkaLog.close).close()
        except UnreachableError as error:
            if time.monotonic() + RETRY_S > deadline:
                raise
            if not has_warned:
                has_warned = True
                warn_waiting(error, timeout_s)
        else:
            return
        if (stop or threading.Event()).wait(RETRY_S):
            raise StopRequestedError


def warn_waiting(error: UnreachableError | None, timeout_s: float) -> None:
    """Log that this process waits for Kafka and for how long. `error`: None when it is known."""
    reason = "" if error is None else f"{str(error).rstrip('.')}. "
    limit = "" if math.isinf(timeout_s) else f" up to {timeout_s:.0f} s"
    logger.warning("%sWaiting%s for Kafka", reason, limit)
