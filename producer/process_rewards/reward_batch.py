"""What a reward manager gets: a batch of responses, in the shape of verl's DataProto.

Keys of `batch`: `prompts` and `responses` (token ids, [B, P] and [B, T]), `attention_mask`
([B, P + T]) and, with a process reward model, `rm_scores` ([B, T]: a step's score on its last
token). Keys of `non_tensor_batch`: `db_id`, `index` (the question's id), `data_source`,
`reward_model` ({"ground_truth": SQL}) and `extra_info`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class RewardItem(NamedTuple):
    """One response of a batch."""

    batch: dict[str, Any]
    """Rows of the tensors."""
    non_tensor_batch: dict[str, Any]
    """Values of everything else."""


class RewardBatch:
    """Responses to be rewarded."""

    def __init__(
        self, batch: Mapping[str, Any], non_tensor_batch: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        """`batch`: tensors whose first axis is that of the responses. ValueError."""
        self.batch: dict[str, Any] = dict(batch)
        self.non_tensor_batch: dict[str, Any] = dict(non_tensor_batch or {})
        self.meta_info: dict[str, Any] = {}
        lengths = {len(value) for value in (*self.batch.values(), *self.non_tensor_batch.values())}
        if len(lengths) != 1:
            message = f"expected values of one length; found {sorted(lengths)}"
            raise ValueError(message)
        (self._length,) = lengths

    def __len__(self) -> int:
        """Number of responses."""
        return self._length

    def __getitem__(self, at: int) -> RewardItem:
        """One response. IndexError."""
        if not -self._length <= at < self._length:
            message = f"there are {self._length} responses; found index {at}"
            raise IndexError(message)
        return RewardItem(
            {name: value[at] for name, value in self.batch.items()},
            {name: value[at] for name, value in self.non_tensor_batch.items()},
        )
