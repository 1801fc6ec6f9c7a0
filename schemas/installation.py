"""An installation: its folder, log and blobs, as given by environment variables.

Pure: the environment is passed in; nothing is created or opened.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

DATABASE_VARIABLES = (
    "DATABASE_URL",
    "POSTGRES_HOST",
    "POSTGRES_PORT",
    "POSTGRES_DB",
    "POSTGRES_USER",
    "POSTGRES_PASSWORD",
)
"""Any of them names a PostgreSQL server; none: the embedded database of the home."""


USER = re.compile(r"(?<=://)([^/@:\s]*):[^@\s]*@")
PARAMETER = re.compile(
    r"([?&][^=&\s]*(?:password|secret|token|key)[^=&\s]*=)[^&\s;,]+", re.IGNORECASE
)
"""What is secret in a URL: after the user's name, and by the name of a parameter."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the parts of an installation are."""

    home: Path
    """`CUA_HOME`: the folder for all files on this machine."""
    topic_prefix: str
    """`CUA_TOPIC_PREFIX`: lets several installations share a Kafka cluster."""
    kafka_bootstrap_servers: str | None
    """`KAFKA_BOOTSTRAP_SERVERS`; None: the log is the local log."""
    kafka_options: tuple[tuple[str, str], ...]
    """Every other `KAFKA_*` variable, sorted, under kafka-python's name (`security_protocol`).
    Contains secrets: never log it."""
    blobs_url: str
    """`CUA_BLOBS`, an fsspec URL; by default the folder `blobs` in home. May contain secrets: in
    messages `without_secrets`."""

    @property
    def blobs_folder(self) -> Path | None:
        """The folder that `blobs_url` names; None for a remote store."""
        if "://" not in self.blobs_url:
            return Path(self.blobs_url).expanduser().absolute()
        parts = urlsplit(self.blobs_url)
        return Path(unquote(parts.path)) if parts.scheme in {"file", "local"} else None

    @property
    def local_log_path(self) -> Path:
        """SQLite file of the local log, which with Kafka is the spool."""
        return self.home / "log" / "log.sqlite3"

    @property
    def database_dir(self) -> Path:
        """Folder of the embedded database."""
        return self.home / "database"

    @property
    def policies_dir(self) -> Path:
        """Folder of policies that were built and warmed up here."""
        return self.home / "policies"

    @property
    def open_dir(self) -> Path:
        """Markers of open streams, so that a later process can close those of a dead one."""
        return self.home / "open"

    @property
    def runs_dir(self) -> Path:
        """Folders with the state and checkpoints of trainings."""
        return self.home / "runs"


def without_secrets(text: str) -> str:
    """A URL, or a text with URLs, for messages: without passwords and keys."""
    return PARAMETER.sub(r"\1***", USER.sub(r"\1:***@", text))


def names_database(environ: Mapping[str, str]) -> bool:
    """Whether a PostgreSQL server is configured, so that the embedded database is not used."""
    return any(environ.get(name) for name in DATABASE_VARIABLES)


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
    """The installation described by environment variables; empty ones count as unset."""
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
