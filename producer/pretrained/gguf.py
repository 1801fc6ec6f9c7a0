"""Reads GGUF files, as llama.cpp writes them: settings, and tensors of F32, Q4_1 and Q8_0.

The layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little
endian. A file that is truncated or refers to missing data raises ValueError.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
MAX_DIMENSIONS: Final = 4
"""ggml's own limit."""
_SCALARS: Final = ("B", "b", "H", "h", "I", "i", "f", "?", "", "", "Q", "q", "d")
"""`struct` format of each scalar type, by type id."""
_STRING: Final = 8
_ARRAY: Final = 9
_SCALAR_BYTES: Final = 8
"""Size of a string's length prefix and of the longest scalar, bytes."""
_TYPES: Final = (
    *("F32", "F16", "Q4_0", "Q4_1", "Q4_2", "Q4_3", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K"),
    *("Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL"),
    *("IQ3_S", "IQ2_S", "IQ4_XS", "I8", "I16", "I32", "I64", "F64", "IQ1_M", "BF16"),
)
"""ggml's tensor types, by their id."""
_ALIGNMENT: Final = 32
"""Default alignment, bytes, for files that state none."""
_BLOCK: Final = 32
"""Number of weights in a block of a quantised type."""
_Q4_1: Final = np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("nibbles", "u1", (16,))])
_Q8_0: Final = np.dtype([("scale", "<f2"), ("values", "i1", (32,))])
Weights: TypeAlias = "np.ndarray[Any, np.dtype[np.float32]]"


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """The position of a tensor in its file."""

    name: str
    shape: tuple[int, ...]
    """Shape in numpy's order: elements along the last dimension are contiguous."""
    kind: str
    """ggml's name of the tensor's type."""
    start: int
    """Offset in the file, bytes."""


class GgufFile:
    """A GGUF file that is loaded or mapped into memory. Immutable."""

    def __init__(self, data: memoryview) -> None:
        """Parse the header. Raises ValueError if the data is no GGUF file or is incomplete."""
        reader = _Reader(data)
        if reader.take(len(MAGIC)) != MAGIC:
            message = f"it does not begin with {MAGIC.decode()}"
            raise ValueError(message)
        version = reader.number("I")
        if version not in VERSIONS:
            message = f"it has version {version} of the format; versions 2 and 3 are supported"
            raise ValueError(message)
        num_tensors, num_settings = reader.number("Q"), reader.number("Q")
        self.settings: dict[str, Any] = {}
        """Maps names such as `llama.block_count` to numbers, strings and lists."""
        for _ in range(num_settings):
            name = reader.text()
            self.settings[name] = reader.value(reader.number("I"))
        found = [_read_entry(reader) for _ in range(num_tensors)]
        alignment = self.settings.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            message = f"its data are aligned to {alignment!r} bytes"
            raise ValueError(message)
        begin = -(-reader.at // alignment) * alignment
        self.tensors = {
            name: StoredTensor(name, shape, kind, begin + offset)
            for name, shape, kind, offset in found
        }
        """Maps ggml's names, such as `blk.0.attn_q.weight`, to tensors."""
        self._data = data

    def read(self, name: str) -> Weights:
        """Read the tensor as float32, in its shape.

        Raises ValueError for an unsupported type or missing data.
        """
        tensor = self.tensors[name]
        if tensor.kind not in DEQUANTISED:
            message = f"tensor {name} is {tensor.kind}, and only {', '.join(DEQUANTISED)} are read"
            raise ValueError(message)
        stored, num_weights, dequantise = DEQUANTISED[tensor.kind]
        num_items, rest = divmod(prod(tensor.shape), num_weights)
        if rest or tensor.start + num_items * stored.itemsize > len(self._data):
            message = f"it ends inside the tensor {name}"
            raise ValueError(message)
        items = np.frombuffer(self._data, stored, num_items, tensor.start)
        return dequantise(items).reshape(tensor.shape)


def _plain(items: "np.ndarray[Any, Any]") -> Weights:
    return items.astype(np.float32)


def _q8_0(blocks: "np.ndarray[Any, Any]") -> Weights:
    """Q8_0: scale times the signed byte."""
    values, scale = (blocks[part].astype(np.float32) for part in ("values", "scale"))
    weights: Weights = values * scale[:, None]
    return weights


def _q4_1(blocks: "np.ndarray[Any, Any]") -> Weights:
    """Scale times a nibble plus the minimum: the low nibbles of the 16 bytes, then the high ones.

    Computed in float32, as in ggml (`dequantize_row_q4_1`).
    """
    nibbles = blocks["nibbles"]
    values = np.concatenate([nibbles & 0x0F, nibbles >> 4], axis=1).astype(np.float32)
    scale, minimum = (blocks[part].astype(np.float32)[:, None] for part in ("scale", "minimum"))
    weights: Weights = values * scale + minimum
    return weights


DEQUANTISED: Final[
    dict[str, tuple[np.dtype[Any], int, Callable[["np.ndarray[Any, Any]"], Weights]]]
] = {
    "F32": (np.dtype("<f4"), 1, _plain),
    "Q4_1": (_Q4_1, _BLOCK, _q4_1),
    "Q8_0": (_Q8_0, _BLOCK, _q8_0),
}
"""Maps a type to (dtype of a stored block, weights per block, function that dequantises blocks)."""


def _read_entry(reader: "_Reader") -> tuple[str, tuple[int, ...], str, int]:
    """Read one entry of the tensor table: name, shape, type and offset in the data."""
    name, num_dimensions = reader.text(), reader.number("I")
    if num_dimensions > MAX_DIMENSIONS:
        message = f"the tensor {name!r} has {num_dimensions} dimensions, at most {MAX_DIMENSIONS}"
        raise ValueError(message)
    shape = tuple(reader.number("Q") for _ in range(num_dimensions))[::-1]
    kind = reader.number("I")
    return name, shape, _TYPES[kind] if kind < len(_TYPES) else f"type {kind}", reader.number("Q")


class _Reader:
    """Reads one value after the other, never beyond the end."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes. Raises ValueError beyond the end."""
        if self.at + count > len(self._data):
            message = "it is cut off"
            raise ValueError(message)
        found = bytes(self._data[self.at : self.at + count])
        self.at += count
        return found

    def number(self, form: str) -> int:
        """A little-endian number in `struct`'s format."""
        found: int = struct.unpack(f"<{form}", self.take(struct.calcsize(form)))[0]
        return found

    def text(self) -> str:
        """A length-prefixed UTF-8 string. Invalid bytes are replaced."""
        return self.take(self.number("Q")).decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:  # noqa: ANN401  # a setting's
        """A number, a string or a list of these."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_form(kind))
        inner, count = self.number("I"), self.number("Q")
        if inner == _STRING:
            # Each string has a length prefix of 8 bytes, so a larger count cannot fit in this file.
            if count > (len(self._data) - self.at) // _SCALAR_BYTES:
                message = "it is cut off"
                raise ValueError(message)
            return [self.text() for _ in range(count)]
        form = _form(inner)
        values = self.take(count * struct.calcsize(form))
        return [found for (found,) in struct.iter_unpack(f"<{form}", values)]


def _form(kind: int) -> str:
    if kind < len(_SCALARS) and _SCALARS[kind]:
        return _SCALARS[kind]
    message = f"a setting has the unknown type {kind}"
    raise ValueError(message)
