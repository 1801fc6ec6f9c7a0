"""Reads screenshots and other large payloads by reference (`blob:sha256:…`)."""

import os
from pathlib import Path

from consumers.errors import CuaProjectError, NotFoundError, UnreachableError
from schemas.blobs import blob_path, blob_ref
from schemas.http_environment import bypass_for_loopback
from schemas.installation import Installation, without_secrets


def read_blob(installation: Installation, ref: str) -> bytes:
    """The blob's bytes, checked against its hash.

    NotFoundError; UnreachableError; CuaProjectError when the stored bytes are corrupt.
    """
    url = installation.blobs_url
    named = without_secrets(url)
    folder = installation.blobs_folder
    content = _from_store(url, ref) if folder is None else _from_folder(folder, ref)
    if content is None:
        message = f"no blob {ref} in {named}; set CUA_BLOBS to the store it was written to"
        raise NotFoundError(message)
    if blob_ref(content) != ref:
        message = (
            f"the blob {ref} in {named} is corrupt: its bytes have another hash; restore the file"
            " from a backup"
        )
        raise CuaProjectError(message)
    return content


def _from_folder(folder: Path, ref: str) -> bytes | None:
    try:
        return (folder / blob_path(ref)).read_bytes()
    except FileNotFoundError:
        return None


def _from_store(url: str, ref: str) -> bytes | None:
    import fsspec

    bypass_for_loopback(os.environ)
    try:
        files, root = fsspec.core.url_to_fs(url.rstrip("/"))
        return bytes(files.cat_file(f"{root}/{blob_path(ref)}"))
    except FileNotFoundError:
        return None
    except Exception as error:  # every file system of fsspec raises errors of its own
        message = (
            f"cannot read the blob store {url}: {error}; CUA_BLOBS is a folder or an fsspec URL"
        )
        raise UnreachableError(without_secrets(message)) from error
