"""Forward pass of the language model over tokens and screens, and the KV caches it writes.

Pads segments to one batch, computes their rope positions and inserts the image features.

Axes: B rows, T tokens (padded on the right), D text or head dimension, N tokens of one image, V
vocabulary, C cache positions, 2 key and value, L layers, H key/value heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from producer.policy.torch_policy.network import CacheShape, Network
from producer.policy.torch_policy.placement import to_device
from producer.policy.torch_policy.render import rope_positions
from producer.policy.torch_policy.screen_encoder import ScreenFeatures


class WorkingCache:
    """The cache of one batch, in the form the language model expects.

    Each layer writes its new tokens at the positions set by `set_write_positions`.
    """

    def __init__(self, kv_B2LHCD: Tensor) -> None:
        self.kv_B2LHCD = kv_B2LHCD
        device = kv_B2LHCD.device
        self._rows_B11 = torch.arange(kv_B2LHCD.shape[0], device=device)[:, None, None]
        self._heads_1H1 = torch.arange(kv_B2LHCD.shape[3], device=device)[None, :, None]
        self._write_at_B1T = torch.zeros(0)
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
        self._write_at_B1T = write_at_BT[:, None]
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
        """Write a layer's new keys and values; returns all keys and values it attends to."""
        visible = []
        for which, new_BHTD in enumerate((keys_BHTD, values_BHTD)):
            layer_BHCD = self.kv_B2LHCD[:, which, layer]
            # Not scatter_, which on a CPU is far slower in bfloat16 (torch 2.15).
            layer_BHCD[self._rows_B11, self._heads_1H1, self._write_at_B1T] = new_BHTD
            visible.append(layer_BHCD[:, :, : self._num_visible])
        return visible[0], visible[1]


class EpisodeCaches:
    """The cache of each running episode, exactly as long as its tokens. Not thread-safe."""

    def __init__(
        self,
        shape: CacheShape,
        device: torch.device,
        dtype: torch.dtype,
        max_bytes: int | None = None,
    ) -> None:
        """`max_bytes` limits what `drop_excess` keeps; None keeps everything."""
        self._empty_2LH0D = torch.zeros(
            (2, shape.num_layers, shape.num_heads, 0, shape.head_dim), device=device, dtype=dtype
        )
        self._max_bytes = max_bytes
        self._kv_2LHCD: dict[int, Tensor] = {}
        """Caches by slot, in the order in which they were stored."""
        self._num_slots = 0

    @property
    def num_bytes(self) -> int:
        """Total size of the caches kept."""
        return sum(kv_2LHCD.nbytes for kv_2LHCD in self._kv_2LHCD.values())

    def allocate(self) -> int:
        """Return a new, empty slot."""
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
        """Keep the first `lengths[row]` positions of each row of the working copy."""
        for row, (slot, length) in enumerate(zip(slots, lengths, strict=True)):
            self.release(slot)
            self._kv_2LHCD[slot] = working.kv_B2LHCD[row, :, :, :, :length].clone()

    def drop_excess(self) -> None:
        """Drop caches, most recently stored first, until the rest is within the limit.

        Running episodes take turns, so the one stored last is needed last; dropping the oldest
        would drop each cache just before its turn.
        """
        excess = 0 if self._max_bytes is None else self.num_bytes - self._max_bytes
        while excess > 0:
            _, dropped_2LHCD = self._kv_2LHCD.popitem()
            excess -= dropped_2LHCD.nbytes


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive tokens of one sequence."""

    tokens: list[int]
    screens: list[ScreenFeatures]
    """Screens in the order of their placeholders in `tokens`."""
    start_position: int = 0
    """Rope position of the first token."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request as network input."""

    new_tokens: list[int]
    """The turn's own prompt tokens, as the log records them."""
    extends: int | None
    """The turn that the prompt extends; None if `new_tokens` is the whole prompt."""
    segment: Segment
    """The tokens not cached yet: `new_tokens`, preceded by anything else the cache lacks."""
    slot: int | None
    num_cached: int
    digest: bytes
    """Equal digests mean equal prompts: the same tokens and screens."""
    num_images: int
    """Number of screens in the whole prompt."""

    @property
    def num_tokens(self) -> int:
        """Number of tokens of the whole prompt."""
        return self.num_cached + len(self.segment.tokens)


def new_prompt(tokens: list[int], screens: Sequence[ScreenFeatures]) -> Prompt:
    """A whole prompt, no part of which is cached."""
    return Prompt(
        new_tokens=tokens,
        extends=None,
        segment=Segment(tokens, list(screens)),
        slot=None,
        num_cached=0,
        digest=prompt_digest(b"", tokens, screens),
        num_images=len(screens),
    )


def prompt_digest(previous: bytes, tokens: list[int], screens: Sequence[ScreenFeatures]) -> bytes:
    """Hash of these tokens and screens appended to everything that `previous` covers."""
    refs = "".join(screen.ref for screen in screens)
    return sha256(previous + f"{tokens}{refs}".encode()).digest()


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """Input rows, padded on the right."""

    tokens_BT: Tensor
    positions_3BT: Tensor
    screens: list[ScreenFeatures]
    """Screens of all rows, row by row."""


@dataclass(frozen=True, slots=True)
class PaddedBatch(NetworkInput):
    """Segments, one per row."""

    lengths: list[int]
    """Tokens per row, without padding."""
    next_positions: list[int]
    """Rope position after each row's last token."""


def pad_segments(segments: Sequence[Segment], network: Network) -> PaddedBatch:
    """The segments as one batch on the network's device."""
    lengths = [len(segment.tokens) for segment in segments]
    tokens_BT = np.zeros((len(segments), max(lengths)), dtype=np.int64)
    positions_3BT = np.zeros((3, *tokens_BT.shape), dtype=np.int64)
    next_positions = []
    for row, segment in enumerate(segments):
        tokens_BT[row, : lengths[row]] = segment.tokens
        positions_3BT[:, row, : lengths[row]], next_position = rope_positions(
            segment.tokens,
            image_token=network.image_token,
            grids=[screen.grid for screen in segment.screens],
            start=segment.start_position,
        )
        next_positions.append(next_position)
    return PaddedBatch(
        tokens_BT=to_device(torch.from_numpy(tokens_BT), network.device),
        positions_3BT=to_device(torch.from_numpy(positions_3BT), network.device),
        screens=[screen for segment in segments for screen in segment.screens],
        lengths=lengths,
        next_positions=next_positions,
    )


def hidden_states(
    network: Network,
    batch: NetworkInput,
    cache: WorkingCache | None = None,
    mask_B1TC: Tensor | None = None,
) -> Tensor:
    """Last hidden states [B, T, D].

    Without a mask, attention is causal within each row. Padding comes last, so no token attends to
    it.
    """
    embeddings_BTD = network.base.get_input_embeddings()(batch.tokens_BT)
    deepstack = {}
    if batch.screens:
        is_image_BT = batch.tokens_BT == network.image_token
        embeddings_BTD[is_image_BT] = torch.cat([screen.features_ND for screen in batch.screens])
        if len(batch.screens[0].deepstack_LND):
            layers_LND = torch.cat([screen.deepstack_LND for screen in batch.screens], dim=1)
            deepstack = {
                "visual_pos_masks": is_image_BT,
                "deepstack_visual_embeds": list(layers_LND),
            }
    output = network.language_model(
        inputs_embeds=embeddings_BTD,
        position_ids=network.positions(batch.positions_3BT),
        attention_mask=mask_B1TC,
        cache=cache,
        use_cache=cache is not None,
        **deepstack,
    )
    hidden: Tensor = output.last_hidden_state
    return hidden


def compute_logits(network: Network, hidden: Tensor) -> Tensor:
    """Logits: [..., D] to [..., V] in float32."""
    logits: Tensor = network.base.lm_head(hidden)
    return logits.float()
