"""Operators' decisions that were made on other hosts: fetched before a training is continued.

They are kept in the tables' database, and a trainer knows no database: the command `cua-project`
brings the copy of this CUA_HOME (`schemas.operator_drops`) up to date. Nothing waits for it longer
than a time limit, and no training fails because of it.
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from schemas.installation import Installation, names_database

logger = logging.getLogger(__name__)

LIMIT_S = 30.0
"""A database that answers takes a second; one that does not is given up after ten."""
COMMAND = ("parked", "sync", "--json")


class ForeignDrops(NamedTuple):
    """Where a training is continued; the environment names the database."""

    installation: Installation
    environ: Mapping[str, str]
    limit_s: float = LIMIT_S

    def fetch(self) -> bool:
        """Whether this home knows more decisions now. Blocks for up to `limit_s`.

        Does nothing with a local log, which is read on one host. A failure is logged.
        """
        if self.installation.kafka_bootstrap_servers is None:
            return False
        if not names_database(self.environ):
            logger.info(
                "no database is configured here: what operators gave up elsewhere (`cua-project"
                " parked drop`) is not known; DATABASE_URL or POSTGRES_* would name it"
            )
            return False
        try:
            return self._fetched() > 0
        except _FetchError as error:
            logger.warning(
                "cannot fetch what operators gave up (`cua-project parked drop`) elsewhere: %s. A"
                " record that they gave up may count for this training and not for the tables, or"
                " stop it; `cua-project parked sync` fetches it",
                error,
            )
            return False

    def _fetched(self) -> int:
        """How many decisions are new here. _FetchError."""
        if find_spec("sqlalchemy") is None or find_spec("psycopg2") is None:
            message = "cua-project is not installed; install cua-train[project,database]"
            raise _FetchError(message)
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "consumers", *COMMAND],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=os.environ | self.environ | {"CUA_HOME": str(self.installation.home)},
                timeout=self.limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            message = f"cua-project did not answer within {self.limit_s:.0f} s"
            raise _FetchError(message) from None
        try:
            fetched = json.loads(done.stdout)["fetched"]
        except (ValueError, TypeError, KeyError):
            lines = done.stderr.strip().splitlines()
            message = lines[-1] if lines else f"cua-project ended with exit code {done.returncode}"
            raise _FetchError(message) from None
        return int(fetched)


class _FetchError(Exception):
    """Why nothing was fetched."""
