"""Stores of blobs as the collector sees them: what is in them, and deleting one.

Two kinds: a folder, where an emitter may reuse a blob at the moment when it is deleted, and any
other fsspec URL.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from consumers.errors import UnreachableError
from schemas.http_environment import bypass_for_loopback
from schemas.installation import Installation, without_secrets

NAME = re.compile(r"[0-9a-f]{62}")
DOOMED = ".gc"
"""Suffix of a blob that is being deleted."""


class StoredBlob(NamedTuple):
    """One blob."""

    digest: bytes
    """Its sha256."""
    size: int
    changed_at: float
    """When it was last written, or found there by an emitter; seconds since 1970."""


class Store(Protocol):
    """Blobs by their sha256."""

    def blobs(self) -> Iterator[StoredBlob]:
        """Everything there. UnreachableError when it cannot be listed."""
        ...

    def delete(self, digest: bytes, older_than: float) -> bool:
        """Delete it if it was not written since; whether it is gone."""
        ...


def open_store(installation: Installation) -> Store:
    """The store that CUA_BLOBS names."""
    folder = installation.blobs_folder
    return RemoteStore(installation.blobs_url) if folder is None else FolderStore(folder)


class FolderStore:
    """A folder. Killed at any moment, it leaves every blob that it has not decided to delete."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "sha256"

    def blobs(self) -> Iterator[StoredBlob]:
        """Everything there; a blob that a killed collector had set aside is put back first."""
        for number in range(256):
            first = f"{number:02x}"
            for entry in self._entries(first):
                name = entry.name
                if name.endswith(DOOMED):
                    name = name.removesuffix(DOOMED)
                    self._restore(first, name)
                if not NAME.fullmatch(name):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    found = (self._root / first / name).stat()
                    yield StoredBlob(bytes.fromhex(first + name), found.st_size, found.st_mtime)

    def _entries(self, first: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._root / first) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return []
        except OSError as error:
            message = f"the blobs in {self._root / first} cannot be listed: {error.strerror}"
            raise UnreachableError(message) from None

    def _restore(self, first: str, name: str) -> None:
        path = self._root / first / name
        doomed = path.with_name(name + DOOMED)
        # An emitter may have written it again meanwhile: the same bytes.
        with contextlib.suppress(FileNotFoundError):
            doomed.unlink() if path.exists() else doomed.rename(path)

    def delete(self, digest: bytes, older_than: float) -> bool:
        """Delete it unless an emitter has written or found it since `older_than`.

        An emitter that finds a blob touches it instead of writing it. So the blob is renamed first:
        after that no emitter finds it, and one that found it before has left its time on it.
        """
        text = digest.hex()
        path = self._root / text[:2] / text[2:]
        doomed = path.with_name(path.name + DOOMED)
        try:
            path.rename(doomed)
            if doomed.stat().st_mtime >= older_than:
                self._restore(text[:2], text[2:])
                return False
            doomed.unlink()
        except FileNotFoundError:
            return False
        return True


class RemoteStore:
    """Any fsspec URL that can be listed. UnreachableError."""

    def __init__(self, url: str) -> None:
        import fsspec

        bypass_for_loopback(os.environ)
        self._name = without_secrets(url.rstrip("/"))
        try:
            self._files, root = fsspec.core.url_to_fs(url.rstrip("/"))
        except Exception as error:  # every file system of fsspec raises errors of its own
            raise self._unreachable(error) from error
        self._root = f"{root}/sha256"

    def blobs(self) -> Iterator[StoredBlob]:
        """Everything there; a blob of unknown age counts as new."""
        try:
            found = self._files.find(self._root, detail=True) if self._exists() else {}
        except Exception as error:  # as above
            raise self._unreachable(error) from error
        for path, info in found.items():
            first, _, name = str(path).removeprefix(self._root).lstrip("/").partition("/")
            if re.fullmatch(r"[0-9a-f]{2}", first) and NAME.fullmatch(name):
                yield StoredBlob(
                    bytes.fromhex(first + name), int(info.get("size") or 0), _changed_at(info)
                )

    def _exists(self) -> bool:
        self._files.invalidate_cache()
        return bool(self._files.exists(self._root))

    def delete(self, digest: bytes, older_than: float) -> bool:
        """Delete it if it still is that old."""
        text = digest.hex()
        path = f"{self._root}/{text[:2]}/{text[2:]}"
        try:
            if _changed_at(self._files.info(path)) >= older_than:
                return False
            self._files.rm_file(path)
        except FileNotFoundError:
            return False
        except Exception as error:  # as above
            raise self._unreachable(error) from error
        return True

    def _unreachable(self, error: Exception) -> UnreachableError:
        message = (
            f"the blob store {self._name} cannot be listed or changed:"
            f" {without_secrets(str(error))}; check CUA_BLOBS and"
            " its credentials"
        )
        return UnreachableError(message)


def _changed_at(info: dict[str, object]) -> float:
    """Of a file's description; file systems name it differently."""
    for name in ("LastModified", "last_modified", "mtime", "updated", "modified", "created"):
        found = info.get(name)
        if isinstance(found, datetime):
            return found.timestamp()
        if isinstance(found, int | float):
            return float(found)
        if isinstance(found, str):
            with contextlib.suppress(ValueError):
                return datetime.fromisoformat(found).timestamp()
    return time.time()
