"""Keys and values of running episodes, kept between their turns, and the working copy that one batch of sampling writes.

Axes: S slots or B rows, 2 key and value, L layers, H key/value heads, C cache positions, D head dimension, T new tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What a network's cache looks like."""

    num_layers: int
    num_heads: int
    head_dim: int


class WorkingCache:
    """Handed to the language model as its cache.

    Every layer writes its new tokens at `write_at_BT` and sees all up to the last.
    """

    def __init__(self, kv_B2LHCD: Tensor) -> None:
        self.kv_B2LHCD = kv_B2LHCD
        self._index_B1T1 = torch.zeros(0)
        self._num_seen = 0

    def rows(self, rows: list[int]) -> "WorkingCache":
        """These rows, in this order; one may be named several times.

        A copy, unless it is all of them as they are.
        """
        if rows == list(range(len(self.kv_B2LHCD))):
            return self
        return WorkingCache(self.kv_B2LHCD[rows])

    def place(self, write_at_BT: Tensor) -> Tensor:
        """Say where the next forward's tokens go.

        Returns the mask [B, 1, T, C'] of what each of them may attend to.
        """
        self._index_B1T1 = write_at_BT[:, None, :, None]
        self._num_seen = int(write_at_BT.max()) + 1
        keys_C = torch.arange(self._num_seen, device=write_at_BT.device)
        return (keys_C[None, None, :] <= write_at_BT[:, :, None])[:, None]

    def update(self, keys_BHTD: Tensor, values_BHTD: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """The language model's side of transformers' cache protocol."""
        seen = []
        for which, new_BHTD in enumerate((keys_BHTD, values_BHTD)):
            layer_BHCD = self.kv_B2LHCD[:, which, layer]
            layer_BHCD.scatter_(2, self._index_B1T1.expand(new_BHTD.shape), new_BHTD)
            seen.append(layer_BHCD[:, :, : self._num_seen])
        return seen[0], seen[1]


class EpisodeCaches:
    """One slot per running episode. Grows as needed; freed slots are used again.

    Not thread-safe.
    """

    def __init__(self, shape: CacheShape, device: torch.device, dtype: torch.dtype) -> None:
        self._shape = shape
        self._kv_S2LHCD = torch.zeros(
            (0, 2, shape.num_layers, shape.num_heads, 0, shape.head_dim), device=device, dtype=dtype
        )
        self._free: list[int] = []

    def allocate(self) -> int:
        """A slot; its content is whatever was there."""
        if not self._free:
            num_slots = len(self._kv_S2LHCD)
            grown = max(8, 2 * num_slots)
            self._resize(grown, self._kv_S2LHCD.shape[4])
            self._free = list(range(grown - 1, num_slots - 1, -1))
        return self._free.pop()

    def release(self, slot: int) -> None:
        """The slot may be given to another episode."""
        self._free.append(slot)

    def take(self, slots: list[int | None], capacity: int) -> WorkingCache:
        """A copy of the slots' first positions with room for `capacity` positions in each; None.

        An empty row.
        """
        kept = min(capacity, self._kv_S2LHCD.shape[4])
        working = self._kv_S2LHCD.new_zeros(
            (len(slots), *self._kv_S2LHCD.shape[1:4], capacity, self._shape.head_dim)
        )
        rows = [row for row, slot in enumerate(slots) if slot is not None]
        if rows:
            working[rows, :, :, :, :kept] = self._kv_S2LHCD[
                [slot for slot in slots if slot is not None], :, :, :, :kept
            ]
        return WorkingCache(working)

    def put(self, slots: list[int], working: WorkingCache) -> None:
        """Keep the working copy's rows."""
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
