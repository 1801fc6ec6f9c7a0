"""What an installation is: its folder, its log, its blobs.

Names of environment variables, as both command lines read them.

Pure: the environment is passed in; nothing is created or opened here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the parts of one installation are."""

    home: Path
    """`CUA_HOME`: the one folder for everything a machine keeps."""
    topic_prefix: str
    """`CUA_TOPIC_PREFIX`: so that several installations can share one Kafka."""
    kafka_bootstrap_servers: str | None
    """`KAFKA_BOOTSTRAP_SERVERS`; None: the log is the local log."""
    kafka_options: tuple[tuple[str, str], ...]
    """Every other `KAFKA_*` variable, as kafka-python names it (`security_protocol`), sorted. Holds
    secrets: never log it."""
    blobs_url: str
    """`CUA_BLOBS`, an fsspec URL; default the folder `blobs` in home."""

    @property
    def local_log_path(self) -> Path:
        """The SQLite file of the local log, which is also the spool in front of Kafka."""
        return self.home / "log" / "log.sqlite3"

    @property
    def database_dir(self) -> Path:
        """The embedded database's folder."""
        return self.home / "database"

    @property
    def policies_dir(self) -> Path:
        """Policies that were built and warmed here."""
        return self.home / "policies"

    @property
    def open_dir(self) -> Path:
        """Marks of streams that a living process has open and nobody else would end."""
        return self.home / "open"

    @property
    def runs_dir(self) -> Path:
        """State and checkpoints of trainings, a folder each."""
        return self.home / "runs"


def default_home(environ: Mapping[str, str]) -> Path:
    """`CUA_HOME`, else XDG_DATA_HOME/cua-train, else ~/.local/share/cua-train; absolute."""
    if home := environ.get("CUA_HOME"):
        return Path(home).expanduser().absolute()
    data_home = environ.get("XDG_DATA_HOME")
    base = (
        Path(data_home)
        if data_home
        else Path(environ.get("HOME", "~")).expanduser() / ".local" / "share"
    )
    return (base / "cua-train").absolute()


def read_installation(environ: Mapping[str, str]) -> Installation:
    """The installation that these environment variables describe.

    An empty variable counts as unset.
    """
    home = default_home(environ)
    bootstrap_name = "KAFKA_BOOTSTRAP_SERVERS"
    options = {
        name.removeprefix("KAFKA_").lower(): value
        for name, value in environ.items()
        if name.startswith("KAFKA_") and name != bootstrap_name and value
    }
    return Installation(
        home=home,
        topic_prefix=environ.get("CUA_TOPIC_PREFIX") or "cua.",
        kafka_bootstrap_servers=environ.get(bootstrap_name) or None,
        kafka_options=tuple(sorted(options.items())),
        blobs_url=environ.get("CUA_BLOBS") or str(home / "blobs"),
    )
