"""KV cache of running episodes, and the working copy that one batch of sampling writes.

Axes: S slots or B rows, 2 key and value, L layers, H key/value heads, C cache positions, D head
dimension, T new tokens.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Dimensions of a network's KV cache."""

    num_layers: int
    num_heads: int
    head_dim: int

    def position_bytes(self, dtype: torch.dtype) -> int:
        """Keys and values of one token."""
        return 2 * self.num_layers * self.num_heads * self.head_dim * dtype.itemsize


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

    def update(
        self,
        keys_BHTD: Tensor,
        values_BHTD: Tensor,
        layer: int,
        **_of_the_layer: Any,  # transformers 5.24 passes the attention's own arguments as `kwargs`
    ) -> tuple[Tensor, Tensor]:
        """Write a layer's new keys and values; returns all it attends to."""
        visible = []
        for which, new_BHTD in enumerate((keys_BHTD, values_BHTD)):
            layer_BHCD = self.kv_B2LHCD[:, which, layer]
            layer_BHCD.scatter_(2, self._index_B1T1.expand(new_BHTD.shape), new_BHTD)
            visible.append(layer_BHCD[:, :, : self._num_visible])
        return visible[0], visible[1]


class EpisodeCaches:
    """The cache of each running episode, as long as its tokens. Not thread-safe."""

    def __init__(
        self,
        shape: CacheShape,
        device: torch.device,
        dtype: torch.dtype,
        max_bytes: int | None = None,
    ) -> None:
        """`max_bytes` bounds what `drop_excess` leaves; None: everything is kept."""
        self._empty_2LH0D = torch.zeros(
            (2, shape.num_layers, shape.num_heads, 0, shape.head_dim), device=device, dtype=dtype
        )
        self._max_bytes = max_bytes
        self._kv_2LHCD: dict[int, Tensor] = {}
        """By slot, in the order in which they were stored."""
        self._num_slots = 0

    @property
    def num_bytes(self) -> int:
        """Of all caches kept."""
        return sum(kv_2LHCD.nbytes for kv_2LHCD in self._kv_2LHCD.values())

    def allocate(self) -> int:
        """A new slot, with nothing in it."""
        self._num_slots += 1
        return self._num_slots

    def holds(self, slot: int) -> bool:
        """Whether the slot's cache is still kept."""
        return slot in self._kv_2LHCD

    def release(self, slot: int) -> None:
        """Free the slot's cache, if it is kept."""
        self._kv_2LHCD.pop(slot, None)

    def load(self, slots: list[int | None], capacity: int) -> WorkingCache:
        """A working copy of the slots with room for `capacity` positions; None: an empty row."""
        working = self._empty_2LH0D.new_zeros(
            (len(slots), *self._empty_2LH0D.shape[:3], capacity, self._empty_2LH0D.shape[-1])
        )
        for row, slot in enumerate(slots):
            if slot is not None:
                kv_2LHCD = self._kv_2LHCD[slot]
                working[row, :, :, :, : kv_2LHCD.shape[3]] = kv_2LHCD
        return WorkingCache(working)

    def store(self, slots: list[int], lengths: list[int], working: WorkingCache) -> None:
        """Keep the first `lengths[row]` positions of each of the working copy's rows."""
        for row, (slot, length) in enumerate(zip(slots, lengths, strict=True)):
            self.release(slot)
            self._kv_2LHCD[slot] = working.kv_B2LHCD[row, :, :, :, :length].clone()

    def drop_excess(self) -> None:
        """Drop caches until the rest is within the bound: those stored last first.

        Running episodes take turns, so that the one stored last is needed again last; dropping the
        oldest would drop each just before its turn.
        """
        excess = 0 if self._max_bytes is None else self.num_bytes - self._max_bytes
        while excess > 0:
            _, dropped_2LHCD = self._kv_2LHCD.popitem()
            excess -= dropped_2LHCD.nbytes
