"""Where screenshots and other large payloads go.

Named by their sha256, so that writing one twice is writing it once.

`FolderBlobs` for a folder of this machine (synced), `RemoteBlobs` for any fsspec URL. Neither knows
which events name a blob.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from producer.durable import sync_folder
from producer.errors import NotFoundError, UnreachableError
from schemas.blobs import blob_path, blob_ref


class FolderBlobs:
    """Blobs in a folder. Thread-safe and safe between processes.

    A blob appears whole, under its final name, or not at all.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """The store's root."""
        return self._folder

    def put_many(self, contents: Mapping[str, bytes]) -> None:
        """Write what is missing, ref -> bytes; on return every one is synced.

        OSError when the disk refuses.
        """
        pending: list[tuple[Path, Path]] = []
        # The names are synced too: the folder of each blob, and those above it, which may be new.
        # Of a blob that is there already as well: another process may have named it a moment ago.
        folders: set[Path] = set()
        for ref, content in contents.items():
            path = self._folder / blob_path(ref)
            folders |= {path.parent, path.parent.parent, self._folder}
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
            pending.append((temporary, path))
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for temporary, path in pending:
            temporary.replace(path)
        for folder in sorted(folders):
            sync_folder(folder)

    def exists(self, ref: str) -> bool:
        """Whether it is there."""
        return (self._folder / blob_path(ref)).exists()

    def get(self, ref: str) -> bytes:
        """The bytes, checked against their name; NotFoundError."""
        try:
            content = (self._folder / blob_path(ref)).read_bytes()
        except FileNotFoundError:
            message = (
                f"no blob {ref} in {self._folder}; was CUA_BLOBS another one when it was written?"
            )
            raise NotFoundError(message) from None
        return _checked(ref, content)


class RemoteBlobs:
    """Blobs behind an fsspec URL (s3, gs, sftp, memory ...).

    Thread-safe as far as the file system is.
    """

    def __init__(self, url: str) -> None:
        """UnreachableError when fsspec knows no such file system or cannot reach it."""
        import fsspec

        self._url = url.rstrip("/")
        try:
            self._files, self._root = fsspec.core.url_to_fs(self._url)
        except (ValueError, ImportError, OSError) as error:
            message = (
                f"the blob store {self._url} cannot be used: {error}. CUA_BLOBS is a folder or an"
                " fsspec URL"
            )
            raise UnreachableError(message) from error

    def put_many(self, contents: Mapping[str, bytes]) -> None:
        """Upload what is missing; on return the store has all of them.

        UnreachableError: try again.
        """
        try:
            for ref, content in contents.items():
                path = f"{self._root}/{blob_path(ref)}"
                if not self._files.exists(path):
                    self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
                    self._files.pipe_file(path, content)
        except Exception as error:  # every file system of fsspec raises errors of its own
            message = f"the blob store {self._url} cannot be written: {error}"
            raise UnreachableError(message) from error

    def exists(self, ref: str) -> bool:
        """Whether it is there."""
        return bool(self._files.exists(f"{self._root}/{blob_path(ref)}"))

    def get(self, ref: str) -> bytes:
        """The bytes, checked against their name; NotFoundError."""
        try:
            content = bytes(self._files.cat_file(f"{self._root}/{blob_path(ref)}"))
        except FileNotFoundError:
            message = (
                f"no blob {ref} in {self._url}; was CUA_BLOBS another one when it was written?"
            )
            raise NotFoundError(message) from None
        return _checked(ref, content)


def local_folder(url: str) -> Path | None:
    """The folder that CUA_BLOBS names; None when it names a remote store."""
    if "://" not in url:
        return Path(url).expanduser().absolute()
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme in {"file", "local"} else None


def open_blobs(url: str) -> FolderBlobs | RemoteBlobs:
    """The store that CUA_BLOBS names."""
    folder = local_folder(url)
    return RemoteBlobs(url) if folder is None else FolderBlobs(folder)


def _checked(ref: str, content: bytes) -> bytes:
    if blob_ref(content) != ref:
        message = (
            f"the bytes stored as {ref} have another hash: the store is damaged; remove that file"
            " and restore it"
        )
        raise NotFoundError(message)
    return content
