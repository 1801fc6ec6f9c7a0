"""Where a training is in the log, for `cua-project positions` and for trainers.

Run: `python -m consumers.projection.places_answer ID`, which prints what `cua-project positions
--training-id ID --json` does. A trainer waits for it at its start, so it goes without a command
line, whose imports take longer than the answer, and without SQLAlchemy wherever it can.
"""

import sys

if __name__ == "__main__":
    # psycopg2 imports it to share OpenSSL's locks with Python, and sets them up itself where it
    # finds none: a tenth of the answer's time.
    sys.modules["ssl"] = None  # type: ignore[assignment]  # is an ImportError

import json
import os
from collections.abc import Mapping
from uuid import UUID

import psycopg2

from consumers.database.location import is_embedded, resolve_database
from consumers.errors import CuaProjectError, NotFoundError
from consumers.home import open_installation
from consumers.projection.training_places import TrainingPlaces, read_training_places


def find_places(environ: Mapping[str, str], training_id: UUID | None) -> TrainingPlaces:
    """What the installation's tables say. Never makes or migrates a database.

    NotFoundError when there is none or it has no tables; MismatchError for tables that cannot be
    read or are not whole; UsageError, UnreachableError; psycopg2's errors.
    """
    installation = open_installation(environ)
    if is_embedded(environ) and not installation.database_dir.is_dir():
        message = "there is no database yet; `cua-project up` or `cua-project run` makes one"
        raise NotFoundError(message)
    url = resolve_database(environ, installation)
    try:
        return read_training_places(url, training_id)
    except (psycopg2.errors.UndefinedTable, psycopg2.errors.UndefinedColumn):
        _refuse_tables(url)
        raise


def _refuse_tables(url: str) -> None:
    """Say what is wrong with tables that cannot be read. NotFoundError, MismatchError."""
    # Imports SQLAlchemy, which an answer does without.
    from consumers.database.connection import connected
    from consumers.database.revision import Age, look
    from consumers.database.shape import find_problems, require_whole

    revision = look(url)
    if revision.age is Age.EMPTY:
        message = "the database has no tables of this version; run `cua-project migrate`"
        raise NotFoundError(message)
    revision.require_current()
    with connected(url, "check") as connection, connection.cursor() as cursor:
        require_whole(find_problems(cursor))


def as_json(places: TrainingPlaces) -> str:
    """One object on one line."""
    report = {
        "log_id": places.log_id,
        "epoch": places.epoch,
        "sequence": places.sequence,
        "partitions": [partition._asdict() for partition in places.partitions],
    }
    return json.dumps(report)


def main() -> None:
    """Print the answer; without one the last line on stderr is the reason; the exit code is not 0.

    The caller limits the time.
    """
    try:
        places = find_places(os.environ, UUID(sys.argv[1]))
    except CuaProjectError as error:
        sys.exit(_fail(str(error), error.exit_code))
    except Exception as error:  # noqa: BLE001  # the process's boundary: the reason is printed
        sys.exit(_fail(f"{type(error).__name__}: {' '.join(str(error).split())}", 1))
    sys.stdout.write(as_json(places) + "\n")


def _fail(reason: str, exit_code: int) -> int:
    sys.stderr.write(reason + "\n")
    return exit_code


if __name__ == "__main__":
    main()
