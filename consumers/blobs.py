"""Reads screenshots and other large payloads by the name that rows and events give them (`blob:sha256:…`)."""

from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from consumers.errors import CuaProjectError, NotFoundError, UnreachableError
from schemas.blobs import blob_path, blob_ref
from schemas.installation import Installation


def read_blob(installation: Installation, ref: str) -> bytes:
    """The bytes, checked against their name.

    NotFoundError, UnreachableError; CuaProjectError when the store is damaged.
    """
    url = installation.blobs_url
    folder = _local_folder(url)
    content = _from_store(url, ref) if folder is None else _from_folder(folder, ref)
    if content is None:
        message = f"no blob {ref} in {url}; is CUA_BLOBS the one it was written with?"
        raise NotFoundError(message)
    if blob_ref(content) != ref:
        message = (
            f"the bytes stored as {ref} in {url} have another hash: the store is damaged; restore"
            " that file"
        )
        raise CuaProjectError(message)
    return content


def _local_folder(url: str) -> Path | None:
    """The folder that CUA_BLOBS names; None when it names a remote store."""
    if "://" not in url:
        return Path(url).expanduser().absolute()
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme in {"file", "local"} else None


def _from_folder(folder: Path, ref: str) -> bytes | None:
    try:
        return (folder / blob_path(ref)).read_bytes()
    except FileNotFoundError:
        return None


def _from_store(url: str, ref: str) -> bytes | None:
    import fsspec

    try:
        files, root = fsspec.core.url_to_fs(url.rstrip("/"))
        return bytes(files.cat_file(f"{root}/{blob_path(ref)}"))
    except FileNotFoundError:
        return None
    except Exception as error:  # every file system of fsspec raises errors of its own
        message = (
            f"the blob store {url} cannot be read: {error}. CUA_BLOBS is a folder or an fsspec URL"
        )
        raise UnreachableError(message) from error
