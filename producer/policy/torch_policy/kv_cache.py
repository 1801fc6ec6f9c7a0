"""KV cache of running episodes, and the working copy that one batch of sampling writes.

Axes: S slots or B rows, 2 key and value, L layers, H key/value heads, C cache positions, D head
dimension, T new tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Dimensions of a network's KV cache."""

    num_layers: int
    num_heads: int
    head_dim: int


class WorkingCache:
    """The cache of one batch, in the form the language model expects.

    Each layer writes its new tokens at the positions set by `set_write_positions`.
    """

    def __init__(self, kv_B2LHCD: Tensor) -> None:
        self.kv_B2LHCD = kv_B2LHCD
        self._index_B1T1 = torch.zeros(0)
        self._num_visible = 0

    def select_rows(self, rows: list[int]) -> "WorkingCache":
        """These rows in this order, repeats allowed; a copy unless nothing changes."""
        if rows == list(range(len(self.kv_B2LHCD))):
            return self
        return WorkingCache(self.kv_B2LHCD[rows])

    def set_write_positions(self, write_at_BT: Tensor) -> Tensor:
        """Set the cache positions of the next forward pass's tokens.

        Returns their attention mask [B, 1, T, C'], True where a token may attend.
        """
        self._index_B1T1 = write_at_BT[:, None, :, None]
        self._num_visible = int(write_at_BT.max()) + 1
        keys_C = torch.arange(self._num_visible, device=write_at_BT.device)
        return (keys_C[None, None, :] <= write_at_BT[:, :, None])[:, None]

    def update(self, keys_BHTD: Tensor, values_BHTD: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Write a layer's new keys and values; returns all it attends to."""
        visible = []
        for which, new_BHTD in enumerate((keys_BHTD, values_BHTD)):
            layer_BHCD = self.kv_B2LHCD[:, which, layer]
            layer_BHCD.scatter_(2, self._index_B1T1.expand(new_BHTD.shape), new_BHTD)
            visible.append(layer_BHCD[:, :, : self._num_visible])
        return visible[0], visible[1]


class EpisodeCaches:
    """One slot per running episode; grows as needed and reuses freed slots. Not thread-safe."""

    def __init__(self, shape: CacheShape, device: torch.device, dtype: torch.dtype) -> None:
        self._shape = shape
        self._kv_S2LHCD = torch.zeros(
            (0, 2, shape.num_layers, shape.num_heads, 0, shape.head_dim), device=device, dtype=dtype
        )
        self._free: list[int] = []

    def allocate(self) -> int:
        """A free slot. Its content is undefined."""
        if not self._free:
            num_slots = len(self._kv_S2LHCD)
            grown = max(8, 2 * num_slots)
            self._resize(grown, self._kv_S2LHCD.shape[4])
            self._free = list(range(grown - 1, num_slots - 1, -1))
        return self._free.pop()

    def release(self, slot: int) -> None:
        """Return the slot for reuse."""
        self._free.append(slot)

    def load(self, slots: list[int | None], capacity: int) -> WorkingCache:
        """A working copy of the slots with room for `capacity` positions; None: an empty row."""
        num_copied = min(capacity, self._kv_S2LHCD.shape[4])
        working = self._kv_S2LHCD.new_zeros(
            (len(slots), *self._kv_S2LHCD.shape[1:4], capacity, self._shape.head_dim)
        )
        rows = [row for row, slot in enumerate(slots) if slot is not None]
        if rows:
            working[rows, :, :, :, :num_copied] = self._kv_S2LHCD[
                [slot for slot in slots if slot is not None], :, :, :, :num_copied
            ]
        return WorkingCache(working)

    def store(self, slots: list[int], working: WorkingCache) -> None:
        """Write the working copy's rows back into their slots."""
        capacity = working.kv_B2LHCD.shape[4]
        if capacity > self._kv_S2LHCD.shape[4]:
            self._resize(len(self._kv_S2LHCD), max(capacity, 2 * self._kv_S2LHCD.shape[4]))
        self._kv_S2LHCD[slots, :, :, :, :capacity] = working.kv_B2LHCD

    def _resize(self, num_slots: int, capacity: int) -> None:
        old = self._kv_S2LHCD
        self._kv_S2LHCD = old.new_zeros(
            (num_slots, *old.shape[1:4], capacity, self._shape.head_dim)
        )
        self._kv_S2LHCD[: len(old), :, :, :, : old.shape[4]] = old
