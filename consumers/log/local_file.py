"""Opens the local log's file for reading, as a file of this format."""

import sqlite3
from pathlib import Path

from consumers.errors import MismatchError, UnreachableError
from schemas.local_log import FORMAT

BUSY_TIMEOUT_S = 30.0


def open_file(path: Path) -> tuple[sqlite3.Connection, str] | None:
    """A connection that writes nothing, and the log's id; None while the file is no log yet.

    UnreachableError when it cannot be opened; MismatchError for another version's format.
    """
    try:
        # rw never creates the file; ro could not read a WAL without its shared memory.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            connection.close()
            return None
        connection.execute("PRAGMA query_only = ON")
        # As Kafka's reader: a key of any bytes is a key, which names no stream of ours.
        connection.text_factory = lambda text: text.decode(errors="backslashreplace")
        meta = dict(connection.execute("SELECT name, value FROM meta"))
    except sqlite3.Error as error:
        problem = f"the local log {path} cannot be opened: {error}"
        message = f"{problem}; correct its rights, or restore a backup"
        raise UnreachableError(message) from error
    if int(meta["format"]) != FORMAT:
        connection.close()
        message = (
            f"the local log {path} has format {meta['format']}, this version reads format"
            f" {FORMAT}; use the version that wrote it"
        )
        raise MismatchError(message)
    return connection, meta["log_id"]
