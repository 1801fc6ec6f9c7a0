"""Encodes screenshots with the vision tower and caches their features by the PNG's hash.

The tower is frozen, so a screen's features never change. They must also not depend on what is
encoded in the same batch, which depends on the cache and so on restarts: matrix products round
differently for another number of rows. Every call for a grid therefore has the same shape.
"""

import io
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from PIL import Image
from torch import Tensor, nn

from producer.environments.environment import Screenshot
from producer.policy.memory_demand import SCREEN_CACHE_BYTES
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.render import Grid
from producer.policy.torch_policy.screen_cache import ScreenCache, ScreenFeatures
from schemas.blobs import BlobRef

PATCHES_PER_CALL: Final = 512
"""Patches that one call of the tower may have, for more than one screen: 8 screens of the small
policy, and one of a phone's full resolution. It bounds the call's memory whatever the batch. Calls
of one screen cost the small policy twice as much, 7.2 instead of 3.6 CPU-ms a screen."""


class ScreenEncoder:
    """Runs the vision tower on new screenshots, in calls of equal shape.

    Thread-safe: calls run one at a time.
    """

    def __init__(
        self, visual: nn.Module | None, processor: Any, max_cached_bytes: int | None = None
    ) -> None:
        """Keeps features of at most `max_cached_bytes`; what does not fit is encoded again.

        None: `SCREEN_CACHE_BYTES`. `visual` None: a policy without screens; no screenshots are ever
        passed.
        """
        self._visual: Any = visual or nn.Identity()
        parameter = next(self._visual.parameters(), torch.zeros(0))
        self._device = parameter.device
        self._processor: Any = getattr(processor, "image_processor", None)
        self._cache = ScreenCache(
            SCREEN_CACHE_BYTES if max_cached_bytes is None else max_cached_bytes
        )
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
        kept = {ref: self._cache.get(ref) for ref in screenshots}
        encoded = {ref: features for ref, features in kept.items() if features is not None}
        missing = [shot for ref, shot in screenshots.items() if ref not in encoded]
        for features in parallel_map(self._run_tower, self._calls(missing), self._device):
            encoded |= {feature.ref: feature for feature in features}
        for ref in screenshots:
            self._cache.put(encoded[ref])
        return encoded

    def _calls(self, screenshots: Sequence[Screenshot]) -> list[list[Screenshot]]:
        """The screenshots in groups of one size, as many as one call takes."""
        by_size: dict[tuple[int, int], list[Screenshot]] = {}
        for screenshot in screenshots:
            size = Image.open(io.BytesIO(screenshot.png)).size
            by_size.setdefault(size, []).append(screenshot)
        calls = []
        for (width_px, height_px), same in by_size.items():
            per_call = self._screens_per_call(width_px, height_px)
            calls += [same[at : at + per_call] for at in range(0, len(same), per_call)]
        return calls

    def _screens_per_call(self, width_px: int, height_px: int) -> int:
        patches = self._processor.get_number_of_image_patches(height_px, width_px, {})
        return max(1, PATCHES_PER_CALL // int(patches))

    @torch.no_grad()
    def _run_tower(self, screenshots: Sequence[Screenshot]) -> list[ScreenFeatures]:
        """Features of screenshots of one size; repeats the last one up to the call's shape."""
        images = [Image.open(io.BytesIO(shot.png)).convert("RGB") for shot in screenshots]
        width_px, height_px = images[0].size
        pixels = self._processor(images=images, return_tensors="pt")
        patches_SNC = pixels["pixel_values"].view(len(images), -1, pixels["pixel_values"].shape[-1])
        num_screens = self._screens_per_call(width_px, height_px)
        repeats = [min(row, len(images) - 1) for row in range(num_screens)]
        output = self._visual(
            patches_SNC[repeats].flatten(0, 1).to(self._device, self._visual.dtype),
            grid_thw=pixels["image_grid_thw"][repeats].to(self._device),
        )
        merge = int(self._processor.merge_size)
        _, rows, columns = pixels["image_grid_thw"][0].tolist()
        grid = Grid(rows // merge, columns // merge)
        features_SND = output.pooler_output.view(num_screens, grid.num_tokens, -1)
        deep_LSND = _deepstack(output, features_SND)
        return [
            ScreenFeatures(shot.ref, grid, features_SND[row].clone(), deep_LSND[:, row].clone())
            for row, shot in enumerate(screenshots)
        ]


def num_screen_tokens(image_processor: Any, screen_px: tuple[int, int]) -> int:
    """Image tokens of a screen of this width and height."""
    width_px, height_px = screen_px
    patches = image_processor.get_number_of_image_patches(height_px, width_px, {})
    return int(patches) // int(image_processor.merge_size) ** 2


def _deepstack(output: Any, features_SND: Tensor) -> Tensor:
    layers = getattr(output, "deepstack_features", None)  # Qwen2.5-VL has none
    if not layers:
        return features_SND.new_zeros((0, *features_SND.shape))
    return torch.stack(layers).view(len(layers), *features_SND.shape)
