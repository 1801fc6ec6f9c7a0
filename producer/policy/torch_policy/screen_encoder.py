"""Encodes screenshots with the vision tower and caches their features by the PNG's hash.

The tower is frozen, so a screen's features never change.

Axes: N image tokens, D text dimension, L deepstack layers.
"""

import io
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from producer.environments.environment import Screenshot
from producer.policy.torch_policy.cpu_parallel import num_workers, parallel_map, split_evenly
from producer.policy.torch_policy.render import Grid
from schemas.blobs import BlobRef

MAX_CACHED_SCREENS = 4096
"""For the small policy 30 KB each, about 120 MB in all."""


@dataclass(frozen=True, slots=True)
class ScreenFeatures:
    """One screen as input of the language model."""

    ref: BlobRef
    """Of its PNG."""
    grid: Grid
    features_ND: Tensor
    deepstack_LND: Tensor
    """Added after the first L layers; L is 0 without deepstack."""


class ScreenEncoder:
    """Runs the vision tower on new screenshots, one call per CPU worker.

    Thread-safe: calls run one at a time.
    """

    def __init__(self, visual: nn.Module | None, processor: Any) -> None:
        """`visual` None: a policy without screens; no screenshots are ever passed."""
        self._visual: Any = visual or nn.Identity()
        parameter = next(self._visual.parameters(), torch.zeros(0))
        self._device = parameter.device
        self._processor: Any = getattr(processor, "image_processor", None)
        self._cache: OrderedDict[BlobRef, ScreenFeatures] = OrderedDict()
        self._lock = threading.Lock()

    def encode(self, screenshots: Sequence[Screenshot]) -> list[ScreenFeatures]:
        """Features of each, in order."""
        by_ref = {screenshot.ref: screenshot for screenshot in screenshots}
        with self._lock:
            encoded = self._encode_missing(by_ref)
        return [encoded[screenshot.ref] for screenshot in screenshots]

    def _encode_missing(
        self, screenshots: Mapping[BlobRef, Screenshot]
    ) -> dict[BlobRef, ScreenFeatures]:
        missing = [shot for ref, shot in screenshots.items() if ref not in self._cache]
        encoded = {ref: self._cache[ref] for ref in screenshots if ref in self._cache}
        parts = split_evenly(missing, num_workers(self._device))
        for features in parallel_map(self._run_tower, parts, self._device):
            encoded |= {one.ref: one for one in features}
        self._cache |= encoded
        for ref in encoded:
            self._cache.move_to_end(ref)
        while len(self._cache) > MAX_CACHED_SCREENS:
            self._cache.popitem(last=False)
        return encoded

    @torch.no_grad()
    def _run_tower(self, screenshots: Sequence[Screenshot]) -> list[ScreenFeatures]:
        images = [Image.open(io.BytesIO(shot.png)).convert("RGB") for shot in screenshots]
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
        layers = getattr(output, "deepstack_features", None)  # Qwen2.5-VL has none
        deep = torch.stack(layers) if layers else empty
        return [
            ScreenFeatures(shot.ref, grid, features_ND, deep_LND)
            for shot, grid, features_ND, deep_LND in zip(
                screenshots, grids, features, deep.split(sizes, dim=1), strict=True
            )
        ]
