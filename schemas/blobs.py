"""Names of large payloads (screenshots): `blob:sha256:<hex>`."""

import hashlib
from typing import Annotated

from pydantic import StringConstraints

BlobRef = Annotated[str, StringConstraints(pattern=r"^blob:sha256:[0-9a-f]{64}$")]
"""A blob's name: the sha256 of its content, which can therefore be verified."""


def blob_ref(content: bytes) -> str:
    """The name of this content."""
    return "blob:sha256:" + hashlib.sha256(content).hexdigest()


def blob_path(ref: str) -> str:
    """The blob's path in a store: `sha256/ab/cd...`, in 256 folders."""
    digest = ref.rsplit(":", 1)[1]
    return f"sha256/{digest[:2]}/{digest[2:]}"
