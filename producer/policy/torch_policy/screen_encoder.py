"""Screens as features: preprocessing and the vision tower, all new screens of a batch side by side, kept by their hash.

The tower is frozen, so a screen's features never change. Axes: N image tokens, D text dimension.
"""

import hashlib
import io
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from PIL import Image
from torch import Tensor, nn
from transformers import Qwen3VLProcessor

from producer.environments.environment import Screenshot
from producer.policy.torch_policy.cpu_parallel import num_workers, parallel_map, split_evenly
from producer.policy.torch_policy.render import Grid

MAX_CACHED_SCREENS = 4096
"""Of the small policy 30 KB each: about 120 MB."""


@dataclass(frozen=True, slots=True)
class ScreenFeatures:
    """One screen as the language model gets it."""

    key: str
    """sha256 of the PNG."""
    grid: Grid
    features_ND: Tensor
    deepstack_LND: Tensor
    """What is added after the first layers; L is 0 without deepstack."""


class ScreenEncoder:
    """Looks at screenshots; one call of the tower in each lane for all that are new.

    Thread-safe: one looks at a time.
    """

    def __init__(self, visual: nn.Module, processor: Qwen3VLProcessor) -> None:
        self._visual = visual
        self._device = next(visual.parameters()).device
        self._processor = processor.image_processor
        self._cache: OrderedDict[str, ScreenFeatures] = OrderedDict()
        self._lock = threading.Lock()

    def encode(self, screenshots: Sequence[Screenshot]) -> list[ScreenFeatures]:
        """Features of each, in order."""
        keys = [hashlib.sha256(screenshot.png).hexdigest() for screenshot in screenshots]
        with self._lock:
            return self._encode_new(keys, screenshots)

    def _encode_new(
        self, keys: list[str], screenshots: Sequence[Screenshot]
    ) -> list[ScreenFeatures]:
        new = {
            key: shot for key, shot in zip(keys, screenshots, strict=True) if key not in self._cache
        }
        seen = {key: self._cache[key] for key in keys if key in self._cache}
        if new:
            parts = split_evenly(list(new.items()), num_workers(self._device))
            for fresh in parallel_map(self._encode, parts, self._device):
                self._cache.update(fresh)
                seen |= fresh
        for key in seen:
            self._cache.move_to_end(key)
        while len(self._cache) > MAX_CACHED_SCREENS:
            self._cache.popitem(last=False)
        return [seen[key] for key in keys]

    @torch.no_grad()
    def _encode(self, screenshots: Sequence[tuple[str, Screenshot]]) -> dict[str, ScreenFeatures]:
        images = [Image.open(io.BytesIO(shot.png)).convert("RGB") for _, shot in screenshots]
        pixels = self._processor(images=images, return_tensors="pt")
        output = self._visual(
            pixels["pixel_values"].to(self._device, self._visual.dtype),
            grid_thw=pixels["image_grid_thw"].to(self._device),
        )
        merge = int(self._processor.merge_size)
        grids = [
            Grid(rows // merge, columns // merge)
            for _, rows, columns in pixels["image_grid_thw"].tolist()
        ]
        sizes = [grid.num_tokens for grid in grids]
        features = output.pooler_output.split(sizes)
        empty = output.pooler_output.new_zeros((0, *output.pooler_output.shape))
        deep = torch.stack(output.deepstack_features) if output.deepstack_features else empty
        return {
            key: ScreenFeatures(key, grid, feature, deep_LND)
            for (key, _), grid, feature, deep_LND in zip(
                screenshots, grids, features, deep.split(sizes, dim=1), strict=True
            )
        }
