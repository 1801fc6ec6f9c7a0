"""Screenshots by their sha256, from whatever store the installation has. A name is 64 hex digits, so no path can be made of it."""

import re
import struct
from functools import lru_cache

import fsspec

from schemas.blobs import blob_path

DIGEST = re.compile(r"[0-9a-f]{64}")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEAD_BYTES = 24
"""Signature, IHDR's length and name, width and height."""


class ScreenshotStore:
    """Reads PNG files of one store. Thread-safe; keeps nothing but sizes."""

    def __init__(self, url: str) -> None:
        """`url`: of fsspec, or a folder's path."""
        filesystem, root = fsspec.core.url_to_fs(url)
        self._filesystem = filesystem
        self._root = str(root).rstrip("/")
        self.size_px = lru_cache(maxsize=4096)(self._size_px)
        """(width, height) of a screenshot; raises FileNotFoundError as `read` does, and then remembers nothing."""

    def read(self, digest: str) -> bytes:
        """The file. FileNotFoundError: no such name, not in the store, or no PNG."""
        content = bytes(self._filesystem.cat_file(self._path(digest)))
        if not content.startswith(PNG_SIGNATURE):
            raise FileNotFoundError(digest)
        return content

    def _size_px(self, digest: str) -> tuple[int, int]:
        head = bytes(self._filesystem.cat_file(self._path(digest), start=0, end=PNG_HEAD_BYTES))
        if len(head) < PNG_HEAD_BYTES or not head.startswith(PNG_SIGNATURE):
            raise FileNotFoundError(digest)
        width, height = struct.unpack(">II", head[16:24])
        return width, height

    def _path(self, digest: str) -> str:
        if not DIGEST.fullmatch(digest):
            raise FileNotFoundError(digest)
        return f"{self._root}/{blob_path('blob:sha256:' + digest)}"
