"""Names of large payloads: `blob:sha256:<hex>`.

What they are stored in is the producer's and the reader's business.
"""

import hashlib
from typing import Annotated

from pydantic import StringConstraints

BlobRef = Annotated[str, StringConstraints(pattern=r"^blob:sha256:[0-9a-f]{64}$")]
"""A blob's name: the sha256 of its bytes, so that a name can be checked against what it names."""


def blob_ref(content: bytes) -> str:
    """The name of these bytes."""
    return "blob:sha256:" + hashlib.sha256(content).hexdigest()


def blob_path(ref: str) -> str:
    """Where a blob lies below the store's root.

    `sha256/ab/cd…`, two levels so that no folder holds a million files.
    """
    digest = ref.rsplit(":", 1)[1]
    return f"sha256/{digest[:2]}/{digest[2:]}"
