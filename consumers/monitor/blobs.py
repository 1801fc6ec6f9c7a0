"""Screenshots by their sha256, from whatever store the installation has.

A name is 64 hex digits, so no path can be made of it.
"""

import re
import struct
from collections import OrderedDict
from threading import Lock

from consumers.blobs import read_blob
from consumers.errors import CuaProjectError
from schemas.installation import Installation

DIGEST = re.compile(r"[0-9a-f]{64}")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEAD_BYTES = 24
"""Signature, IHDR's length and name, width and height."""
KEPT_SIZES = 4096


class NoScreenshotError(Exception):
    """No such name, not in the store, not readable, or no PNG."""


class ScreenshotStore:
    """Reads PNG files of one store. Thread-safe; keeps nothing but sizes."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._sizes: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = Lock()

    def read(self, digest: str) -> bytes:
        """The file, its bytes checked against the name. NoScreenshotError."""
        if not DIGEST.fullmatch(digest):
            message = "expected 64 hex digits"
            raise NoScreenshotError(message)
        try:
            content = read_blob(self._installation, f"blob:sha256:{digest}")
        except (CuaProjectError, OSError) as error:
            raise NoScreenshotError(str(error)) from None
        if not content.startswith(PNG_SIGNATURE) or len(content) < PNG_HEAD_BYTES:
            message = f"{digest} is no PNG file"
            raise NoScreenshotError(message)
        return content

    def size_px(self, digest: str) -> tuple[int, int]:
        """(width, height). NoScreenshotError."""
        with self._lock:
            known = self._sizes.get(digest)
        if known is None:
            width, height = struct.unpack(">II", self.read(digest)[16:PNG_HEAD_BYTES])
            known = (int(width), int(height))
            with self._lock:
                self._sizes[digest] = known
                while len(self._sizes) > KEPT_SIZES:
                    self._sizes.popitem(last=False)
        return known
