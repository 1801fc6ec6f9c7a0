"""A policy's weights as they lie on disk: names, types and shapes, read from safetensors headers.

Reads no weights but the first bytes of each tensor, which identify the policy.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from producer.errors import UsageError

SINGLE: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
_FLOATS: Final = frozenset({"F64", "F32", "F16", "BF16"})
_HEAD_BYTES: Final = 1024
_LENGTH_BYTES: Final = 8
"""Of the number before a safetensors header: little-endian, unsigned."""


class _Entry(NamedTuple):
    """One tensor of a safetensors header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    """Of its bytes in the file."""
    end: int


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a safetensors file."""

    name: str
    dtype: str
    """As safetensors writes it: F32, BF16 ..."""
    shape: tuple[int, ...]
    head: bytes
    """Its first bytes, at most `_HEAD_BYTES`."""


@dataclass(frozen=True, slots=True)
class StoredWeights:
    """All tensors of a policy."""

    tensors: dict[str, StoredTensor]

    @property
    def fingerprint(self) -> str:
        """sha256, hex: equal for the same weights, however they are split into files."""
        digest = sha256()
        for name, tensor in sorted(self.tensors.items()):
            digest.update(f"{name} {tensor.dtype} {tensor.shape} ".encode() + tensor.head)
        return digest.hexdigest()

    @property
    def main_dtype(self) -> str:
        """The type that most tensors are stored in."""
        return Counter(tensor.dtype for tensor in self.tensors.values()).most_common(1)[0][0]


def read_stored_weights(folder: Path) -> StoredWeights:
    """The tensors that transformers would load from `folder`.

    FileNotFoundError if it has no safetensors weights or lacks files that its index names.
    UsageError if a file is cut off, a tensor is stored twice or its type is no plain float.
    """
    tensors: dict[str, StoredTensor] = {}
    for path in _weight_files(folder):
        for tensor in _read_tensors(path):
            if tensor.name in tensors:
                message = f"{folder} stores {tensor.name} twice (again in {path.name}); remove one"
                raise UsageError(message)
            if tensor.dtype not in _FLOATS:
                message = (
                    f"{path} stores {tensor.name} as {tensor.dtype}; quantised weights are not"
                    f" supported, choose weights of {', '.join(sorted(_FLOATS))}"
                )
                raise UsageError(message)
            tensors[tensor.name] = tensor
    return StoredWeights(tensors)


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor that transformers would load, from the headers alone.

    FileNotFoundError and UsageError as `read_stored_weights` for files that are missing or damaged.
    """
    return {
        entry.name: entry.shape for path in _weight_files(folder) for entry in _read_header(path)
    }


def _weight_files(folder: Path) -> list[Path]:
    single, index = folder / SINGLE, folder / INDEX
    if single.is_file():
        return [single]
    if not index.is_file():
        message = f"{folder} has neither {SINGLE} nor {INDEX}"
        raise FileNotFoundError(message)
    try:
        held = json.loads(index.read_text())["weight_map"]
        files = sorted({Path(file).name for file in held.values()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{index} is not an index of safetensors files; download it again"
        raise UsageError(message) from error
    lacking = [file for file in files if not (folder / file).is_file()]
    if lacking:
        tensors = sorted(name for name, file in held.items() if Path(file).name in lacking)
        message = (
            f"{folder} lacks {', '.join(lacking)}, and with it {len(tensors)} of {len(held)}"
            f" tensors: {list_some(tensors)}"
        )
        raise FileNotFoundError(message)
    return [folder / file for file in files]


def _read_tensors(path: Path) -> Iterator[StoredTensor]:
    entries = _read_header(path)
    with path.open("rb") as file:
        for name, dtype, shape, begin, end in entries:
            file.seek(begin)
            yield StoredTensor(name, dtype, shape, file.read(min(_HEAD_BYTES, end - begin)))


def _read_header(path: Path) -> list[_Entry]:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        data = _LENGTH_BYTES + length
        if data > size:
            raise UsageError(_cut_off(path, data, size))
        content = file.read(length)
    try:
        header = json.loads(content)
        header.pop("__metadata__", None)
        entries = [
            _Entry(str(name), str(row["dtype"]), tuple(row["shape"]), data + first, data + last)
            for name, row in header.items()
            for first, last in [row["data_offsets"]]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is not a safetensors file; download it again"
        raise UsageError(message) from error
    end = max((entry.end for entry in entries), default=data)
    if end != size:
        raise UsageError(_cut_off(path, end, size))
    return entries


def _cut_off(path: Path, expected: int, found: int) -> str:
    return (
        f"{path} is damaged: its header describes {expected:,} bytes and it has {found:,};"
        " download it again"
    )


def list_some(names: list[str], num: int = 8) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - num
    return ", ".join(names[:num]) + (f" and {rest} more" if rest > 0 else "")
