"""A policy's weights as stored on disk, and the check that a network was loaded completely.

Names, types and shapes are those in safetensors headers. Reads no weights except the first bytes of
each tensor, which identify the policy.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from safetensors import SafetensorError, safe_open
from transformers import PreTrainedModel

from producer.errors import UsageError
from producer.policy.adapter_settings import ALL_WEIGHTS, CONFIG, INDEX, WEIGHTS
from producer.policy.torch_policy.architectures import Architecture

logger = logging.getLogger(__name__)

_SETTINGS: Final = ("config.json", "generation_config.json")
_FLOATS: Final = frozenset({"F64", "F32", "F16", "BF16"})
_HEAD_BYTES: Final = 1024
_LENGTH_BYTES: Final = 8
"""Size of the number before a safetensors header: little-endian, unsigned."""


class StoredTensor(NamedTuple):
    """One tensor of a safetensors file."""

    dtype: str
    """Type as safetensors writes it: F32, BF16 ..."""
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
        """The type of most tensors."""
        return Counter(tensor.dtype for tensor in self.tensors.values()).most_common(1)[0][0]


def read_stored_weights(folder: Path) -> StoredWeights:
    """The tensors that transformers would load from `folder`.

    Raises FileNotFoundError if it has no safetensors weights or lacks files named in its index, and
    UsageError if a file is truncated, a tensor is stored twice or its type is not a plain float.
    """
    tensors: dict[str, StoredTensor] = {}
    for path in _weight_files(folder):
        for name, tensor in _read_tensors(path):
            if name in tensors:
                message = f"{folder} stores {name} twice (again in {path.name}); remove one"
                raise UsageError(message)
            if tensor.dtype not in _FLOATS:
                message = (
                    f"{path} stores {name} as {tensor.dtype}; quantised weights are not supported,"
                    f" choose weights of {', '.join(sorted(_FLOATS))}"
                )
                raise UsageError(message)
            tensors[name] = tensor
    return StoredWeights(tensors)


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor. Raises as `read_stored_weights`."""
    return {name: tensor.shape for name, tensor in read_stored_weights(folder).tensors.items()}


@contextmanager
def only_own_weights(folder: Path) -> Iterator[Path]:
    """A folder for transformers with only the files that the fingerprint covers.

    `from_pretrained` silently applies an adapter stored next to the weights, which PEFT leaves
    there after merging it into them. Raises as `read_stored_weights`.
    """
    with TemporaryDirectory(prefix="policy-") as view:
        for path in (*(folder / name for name in _SETTINGS), *_weight_files(folder)):
            if path.is_file():
                (Path(view) / path.name).symlink_to(path.absolute())
        if not (folder / ALL_WEIGHTS).is_file():
            (Path(view) / INDEX).symlink_to((folder / INDEX).absolute())
        yield Path(view)


def _weight_files(folder: Path) -> list[Path]:
    single, index = folder / ALL_WEIGHTS, folder / INDEX
    if single.is_file():
        return [single]
    if not index.is_file():
        message = f"{folder} has neither {ALL_WEIGHTS} nor {INDEX}"
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


def _read_tensors(path: Path) -> Iterator[tuple[str, StoredTensor]]:
    try:
        with safe_open(path, framework="numpy"):  # the header describes the file to its end
            pass
    except SafetensorError as error:
        message = f"{path} is damaged ({error}); download it again"
        raise UsageError(message) from error
    with path.open("rb") as file:
        data = _LENGTH_BYTES + int.from_bytes(file.read(_LENGTH_BYTES), "little")
        header = json.loads(file.read(data - _LENGTH_BYTES))
        header.pop("__metadata__", None)
        for name, row in header.items():
            begin, end = row["data_offsets"]
            file.seek(data + begin)
            head = file.read(min(_HEAD_BYTES, end - begin))
            yield name, StoredTensor(row["dtype"], tuple(row["shape"]), head)


def list_some(names: list[str], num: int = 8) -> str:
    """The first names, and the number of remaining ones."""
    rest = len(names) - num
    return ", ".join(names[:num]) + (f" and {rest} more" if rest > 0 else "")


def check_whole(
    name: str, architecture: Architecture, network: PreTrainedModel, info: dict[str, Any]
) -> None:
    """Raises UsageError unless every weight was loaded; `info` is transformers' loading info."""
    problems = []
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])
        problems.append(f"{len(missing)} missing: {list_some(missing)}")
    if info["unexpected_keys"]:
        unexpected = sorted(info["unexpected_keys"])
        problems.append(f"{len(unexpected)} unexpected: {list_some(unexpected)}")
    if info["mismatched_keys"]:
        mismatched = [
            f"{key} (stored {tuple(stored)}, expected {tuple(expected)})"
            for key, stored, expected in sorted(info["mismatched_keys"])
        ]
        problems.append(f"{len(mismatched)} of another shape: {list_some(mismatched)}")
    if problems:
        raise UsageError(not_whole(name, "; ".join(problems), architecture))
    embeddings, output = network.get_input_embeddings(), network.get_output_embeddings()
    if network.config.tie_word_embeddings and output.weight is not embeddings.weight:
        message = (
            f"policy {name!r} is inconsistent: its config.json says tie_word_embeddings, and its"
            " lm_head.weight differs from its embeddings; set tie_word_embeddings to false, or"
            " remove lm_head.weight"
        )
        raise UsageError(message)


def not_whole(name: str, problems: str, architecture: Architecture | None = None) -> str:
    """The message for a policy with missing or extra weights."""
    shape = f" as {architecture.title}" if architecture else ""
    return (
        f"policy {name!r} cannot be loaded whole{shape}: {problems}. Download it again, or check"
        " that its config.json belongs to its weights"
    )


def log_ignored(name: str, folder: Path, stored: StoredWeights) -> None:
    """Log files in a policy's folder that are not read."""
    if (folder / CONFIG).is_file():
        logger.warning(
            "policy %r: the adapter beside its weights (%s) is not read; to train with it, copy"
            " %s and %s to a folder of their own and give that as model_name",
            *(name, CONFIG, CONFIG, WEIGHTS),
        )
    buffers = sorted(key for key in stored.tensors if key.endswith("rotary_emb.inv_freq"))
    if buffers:
        logger.info(
            "policy %r: not loaded: %s (computed from config.json)", name, list_some(buffers)
        )
