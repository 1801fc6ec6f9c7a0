"""Fetches operators' decisions from other hosts before a training is resumed.

The decisions are stored in the tables' database, which a trainer does not access: the command
`cua-project` updates the copy in this CUA_HOME (`schemas.operator_drops`). The wait is limited, and
no training fails because of it.
"""

import json
import logging
import threading
from collections.abc import Mapping

from producer.log.project_command import NoAnswerError, ask_project
from schemas.installation import Installation, names_database

logger = logging.getLogger(__name__)

LIMIT_S = 30.0
"""A responsive database takes a second; one that does not answer is given up after ten."""
COMMAND = ("parked", "sync", "--json")


def fetch_drops(
    installation: Installation,
    environ: Mapping[str, str],
    stop: threading.Event | None = None,
    limit_s: float = LIMIT_S,
) -> bool:
    """Fetch decisions; returns whether any is new to this home. Blocks for up to `limit_s`.

    `environ` names the database. Does nothing without a server: the embedded database belongs to
    this home, whose file has its decisions. A failure is only logged. Raises StopRequestedError if
    `stop` is set meanwhile.
    """
    if not names_database(environ):
        if installation.kafka_bootstrap_servers is not None:
            logger.info(
                "no database is configured here: what operators gave up elsewhere (`cua-project"
                " parked drop`) is not known; DATABASE_URL or POSTGRES_* would name it"
            )
        return False
    try:
        return _num_fetched({**environ, "CUA_HOME": str(installation.home)}, stop, limit_s) > 0
    except NoAnswerError as error:
        logger.warning(
            "cannot fetch what operators gave up (`cua-project parked drop`) elsewhere: %s. A"
            " record that they gave up may count for this training and not for the tables, or"
            " stop it; `cua-project parked sync` fetches it",
            error,
        )
        return False


def _num_fetched(environ: Mapping[str, str], stop: threading.Event | None, limit_s: float) -> int:
    """Number of new decisions. Raises NoAnswerError."""
    answer = ask_project(COMMAND, limit_s, stop, environ)
    try:
        return int(json.loads(answer)["fetched"])
    except (ValueError, TypeError, KeyError):
        message = f"cua-project printed what this version cannot read: {answer[:200]!r}"
        raise NoAnswerError(message) from None
