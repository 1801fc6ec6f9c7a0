"""Screenshots by sha256, from the installation's blob store.

Only 64 hex digits are accepted, so that no request can name a path.
"""

import re
import struct
from collections import OrderedDict
from threading import Lock
from typing import Protocol

from consumers.blobs import read_blob
from consumers.errors import CuaProjectError
from schemas.installation import Installation

DIGEST = re.compile(r"[0-9a-f]{64}")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEAD_BYTES = 24
"""Signature, length and name of IHDR, width, height."""
KEPT_SIZES = 4096


class NoScreenshotError(Exception):
    """The name is invalid, or the store has no readable PNG of that name."""


class Screenshots(Protocol):
    """What a page needs to draw a screenshot; its address is `/blob/DIGEST`."""

    def size_px(self, digest: str) -> tuple[int, int]:
        """(width, height), asked once for each drawing. NoScreenshotError: it is left out."""
        ...


class ScreenshotStore:
    """Reads PNG files from one store. Thread-safe; caches only their sizes."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._sizes: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = Lock()

    def read(self, digest: str) -> bytes:
        """The file, checked against its hash. NoScreenshotError."""
        if not DIGEST.fullmatch(digest):
            message = f"{digest!r} is not a sha256 in hex"
            raise NoScreenshotError(message)
        try:
            content = read_blob(self._installation, f"blob:sha256:{digest}")
        except (CuaProjectError, OSError) as error:
            raise NoScreenshotError(str(error)) from None
        if not content.startswith(PNG_SIGNATURE) or len(content) < PNG_HEAD_BYTES:
            message = f"{digest} is not a PNG file"
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
