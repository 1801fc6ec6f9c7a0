"""Operators' decisions that were made on other hosts: fetched before a training is continued.

They are kept in the tables' database, and a trainer knows no database: the command `cua-project`
brings the copy of this CUA_HOME (`schemas.operator_drops`) up to date. Nothing waits for it longer
than a time limit, and no training fails because of it.
"""

import json
import logging
import threading
from collections.abc import Mapping

from producer.log.project_command import NoAnswerError, ask_project
from schemas.installation import Installation, names_database

logger = logging.getLogger(__name__)

LIMIT_S = 30.0
"""A database that answers takes a second; one that does not is given up after ten."""
COMMAND = ("parked", "sync", "--json")


def fetch_drops(
    installation: Installation,
    environ: Mapping[str, str],
    stop: threading.Event | None = None,
    limit_s: float = LIMIT_S,
) -> bool:
    """Whether this home knows more decisions now. Blocks for up to `limit_s`.

    `environ` names the database. Does nothing without a server: the embedded database is this
    home's own, and a decision in it is in this home's file. A failure is logged; StopRequestedError
    once `stop` is set meanwhile.
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
    """How many decisions are new here. NoAnswerError."""
    answer = ask_project(COMMAND, limit_s, stop, environ)
    try:
        return int(json.loads(answer)["fetched"])
    except (ValueError, TypeError, KeyError):
        message = f"cua-project printed what this version cannot read: {answer[:200]!r}"
        raise NoAnswerError(message) from None
