"""The archive's manifest: which file holds which offsets of which partition, and its hash.

An archive is a folder: `manifest.json` and, per partition, `<topic>/<partition>/<first offset>.
parquet`. The manifest is replaced atomically after every file, so it never names half a file.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from consumers.errors import MismatchError, UsageError
from consumers.log.reader import TopicPartition

NAME = "manifest.json"
FORMAT = 1
"""Version of the archive's layout; raised by changes that older readers cannot read."""
HASH_CHUNK_BYTES = 1 << 20


class ArchivedFile(BaseModel):
    """One Parquet file: a run of one partition's records."""

    model_config = ConfigDict(frozen=True)

    path: str
    """Relative to the archive."""
    topic: str
    partition: int
    first_offset: int
    next_offset: int
    """The file has every record of the offsets from `first_offset` up to, not including, this."""
    num_records: int
    """Fewer than offsets where the log has holes (markers of transactions)."""
    last_appended_at: datetime
    num_bytes: int
    sha256: str
    """Of the file, hex."""


class Manifest(BaseModel):
    """What an archive has, each partition's files in the order of their offsets."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    log_id: str
    """The log that was copied; empty while that had no record yet."""
    files: tuple[ArchivedFile, ...] = ()

    def files_of(self, at: TopicPartition) -> list[ArchivedFile]:
        """One partition's files."""
        return [file for file in self.files if (file.topic, file.partition) == at]

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last archived record of each archived partition."""
        return {TopicPartition(file.topic, file.partition): file.next_offset for file in self.files}

    def beginnings(self) -> dict[TopicPartition, int]:
        """First archived offset of each archived partition."""
        found: dict[TopicPartition, int] = {}
        for file in self.files:
            found.setdefault(TopicPartition(file.topic, file.partition), file.first_offset)
        return found

    def extended(self, files: Iterable[ArchivedFile]) -> "Manifest":
        """With more files at the partitions' ends."""
        return self.model_copy(update={"files": (*self.files, *files)})

    def extended_to(self, positions: Mapping[TopicPartition, int]) -> "Manifest":
        """With each partition's last file ending at this offset: no record is between."""
        last = {TopicPartition(file.topic, file.partition): file for file in self.files}
        files = tuple(
            file.model_copy(update={"next_offset": positions[at]})
            if last[at] is file and positions.get(at, 0) > file.next_offset
            else file
            for file in self.files
            for at in [TopicPartition(file.topic, file.partition)]
        )
        return self.model_copy(update={"files": files})


def read_manifest(folder: Path) -> Manifest:
    """UsageError when the folder is no archive; MismatchError when its manifest is damaged."""
    path = folder / NAME
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        message = f"{folder} is no archive: it has no {NAME}; `cua-project archive` makes one"
        raise UsageError(message) from None
    except OSError as error:
        message = f"the archive {folder} cannot be read: {error.strerror}"
        raise UsageError(message) from None
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"the manifest {path} is damaged: {where}: {first['msg']}; restore it"
        raise MismatchError(message) from None
    if manifest.format != FORMAT:
        message = (
            f"the archive {folder} has format {manifest.format}, this version reads format"
            f" {FORMAT}; use the version that wrote it"
        )
        raise MismatchError(message)
    _check_contiguous(manifest, path)
    return manifest


def _check_contiguous(manifest: Manifest, path: Path) -> None:
    ends: dict[TopicPartition, int] = {}
    for file in manifest.files:
        at = TopicPartition(file.topic, file.partition)
        if file.first_offset != ends.get(at, file.first_offset):
            message = (
                f"the manifest {path} is damaged: {file.path} begins at offset {file.first_offset},"
                f" but the file before it ends at {ends[at]}; restore it"
            )
            raise MismatchError(message)
        ends[at] = file.next_offset


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest; durable on return."""
    new = folder / f"{NAME}.new"
    with new.open("wb") as file:
        file.write(manifest.model_dump_json(indent=1).encode())
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / NAME)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the folder's names durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_hash(path: Path) -> str:
    """sha256 of a file, hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def check_file(folder: Path, file: ArchivedFile) -> Path:
    """The file's path. MismatchError when it is missing or its bytes have another hash."""
    path = folder / file.path
    if not path.is_file():
        message = f"the archive {folder} lacks its file {file.path}; restore it from a backup"
        raise MismatchError(message)
    if file_hash(path) != file.sha256:
        message = (
            f"the archived file {path} is corrupt: its sha256 differs from the manifest's; restore"
            " it from a backup"
        )
        raise MismatchError(message)
    return path
