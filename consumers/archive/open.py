"""Opens the installation's log, with an archive of its beginning or without one."""

from pathlib import Path

from consumers.errors import UsageError
from consumers.log.open import open_reader
from consumers.log.reader import LogReader
from schemas.distribution import install_command
from schemas.installation import Installation


def open_with_archive(installation: Installation, archive: Path | None) -> LogReader:
    """A reader of the log, continued backwards by the archive in this folder.

    Raises what `open_reader` and `ArchivedLogReader` raise.
    """
    log = open_reader(installation)
    if archive is None:
        return log
    require_pyarrow()
    from consumers.archive.reader import ArchivedLogReader

    try:
        return ArchivedLogReader(log, archive)
    except BaseException:
        log.close()
        raise


def require_pyarrow() -> None:
    """UsageError unless pyarrow, an optional dependency, is installed."""
    try:
        import pyarrow  # noqa: F401  # only whether it is there
    except ImportError:
        message = f"Parquet files need pyarrow; run {install_command('parquet')}"
        raise UsageError(message) from None
