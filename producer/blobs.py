"""Stores for screenshots and other large payloads, named by their sha256: writes are idempotent.

`FolderBlobs` for a folder of this machine (synced), `RemoteBlobs` for any fsspec URL. Neither knows
which events name a blob.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from producer.durable import sync_folder
from producer.errors import NotFoundError, UnreachableError
from schemas.blobs import blob_path, blob_ref
from schemas.http_environment import bypass_for_loopback
from schemas.installation import Installation, without_secrets


class FolderBlobs:
    """Blobs in a folder. Thread-safe and safe between processes.

    A blob appears whole, under its final name, or not at all.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put_many(self, contents: Mapping[str, bytes]) -> None:
        """Write the missing ones of ref -> bytes; on return all are synced. OSError."""
        pending: list[tuple[Path, Path]] = []
        # Synced for the names: the folder of each blob and those above it, which may be new. Also
        # for a blob that exists: another process may have renamed it into place a moment ago.
        folders: set[Path] = set()
        for ref, content in contents.items():
            path = self.folder / blob_path(ref)
            folders |= {path.parent, path.parent.parent, self.folder}
            try:
                # `cua-project gc` takes no blob that was written or found a moment ago.
                os.utime(path)
                continue
            except OSError:
                pass  # missing, or another user's: written, which makes it ours
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
        """Whether the store has it."""
        return (self.folder / blob_path(ref)).exists()

    def get(self, ref: str) -> bytes:
        """The content, checked against its hash. Raises NotFoundError."""
        try:
            content = (self.folder / blob_path(ref)).read_bytes()
        except FileNotFoundError:
            message = (
                f"no blob {ref} in {self.folder}; was CUA_BLOBS different when it was written?"
            )
            raise NotFoundError(message) from None
        return _checked(ref, content)


class RemoteBlobs:
    """Blobs behind an fsspec URL (s3, gs, sftp, memory ...). As thread-safe as its file system."""

    def __init__(self, url: str) -> None:
        """Raises UnreachableError when fsspec has no such file system or cannot reach it."""
        import fsspec

        bypass_for_loopback(os.environ)
        self._name = without_secrets(url.rstrip("/"))
        try:
            self._files, self._root = fsspec.core.url_to_fs(url.rstrip("/"))
        except (ValueError, ImportError, OSError) as error:
            message = (
                f"the blob store {self._name} cannot be used: {error}. Set CUA_BLOBS to a folder or"
                " an fsspec URL"
            )
            raise UnreachableError(without_secrets(message)) from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # every file system of fsspec raises errors of its own
            message = f"the blob store {self._name} (CUA_BLOBS) cannot be written: {error}"
            raise UnreachableError(without_secrets(message)) from error

    def put_many(self, contents: Mapping[str, bytes]) -> None:
        """Upload the missing ones of ref -> bytes. After UnreachableError try again."""
        with self._writing():
            for ref, content in contents.items():
                path = f"{self._root}/{blob_path(ref)}"
                if not self._files.exists(path):
                    self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
                    self._files.pipe_file(path, content)

    def check_writable(self) -> None:
        """Write a small file and remove it. UnreachableError."""
        path = f"{self._root}/.probe-{secrets.token_hex(8)}"
        with self._writing():
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(path, b"probe")
        with contextlib.suppress(Exception):  # a store may keep what it was given
            self._files.rm_file(path)

    def exists(self, ref: str) -> bool:
        """Whether the store has it."""
        return bool(self._files.exists(f"{self._root}/{blob_path(ref)}"))

    def get(self, ref: str) -> bytes:
        """The content, checked against its hash. Raises NotFoundError."""
        try:
            content = bytes(self._files.cat_file(f"{self._root}/{blob_path(ref)}"))
        except FileNotFoundError:
            message = f"no blob {ref} in {self._name}; was CUA_BLOBS different when it was written?"
            raise NotFoundError(message) from None
        return _checked(ref, content)


def open_blobs(installation: Installation) -> FolderBlobs | RemoteBlobs:
    """The store CUA_BLOBS names."""
    folder = installation.blobs_folder
    return RemoteBlobs(installation.blobs_url) if folder is None else FolderBlobs(folder)


def staging_blobs(installation: Installation) -> FolderBlobs:
    """Where the emitter writes blobs: the store itself, or the folder they are uploaded from."""
    return FolderBlobs(installation.blobs_folder or installation.home / "blobs")


def _checked(ref: str, content: bytes) -> bytes:
    if blob_ref(content) != ref:
        message = (
            f"the content of {ref} does not match its hash: the store is damaged; remove that file"
            " and restore it from a backup"
        )
        raise NotFoundError(message)
    return content
