"""Encodes screenshots with the vision tower and caches their features by the PNG's hash.

The tower is frozen, so a screen's features never change. They must not depend on the rest of the
batch either, since that depends on the cache and so on restarts, and matrix products round
differently for another number of rows. All calls for a grid therefore have the same shape.

The cache is bounded in bytes: a screen takes 30 KB with the small policy, and 83 MB with 1080 x
2400 pixels in Qwen3-VL-2B (2,550 image tokens x 2,048 dimensions x 4 bytes, four times with
deepstack).

Axes: S screens, N image tokens, C patch values, D text dimension, L deepstack layers.
"""

import io
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from PIL import Image
from torch import Tensor, nn

from producer.environments.environment import Screenshot
from producer.policy.memory_demand import SCREEN_CACHE_BYTES
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.placement import to_device
from producer.policy.torch_policy.render import Grid
from schemas.blobs import BlobRef


@dataclass(frozen=True, slots=True)
class ScreenFeatures:
    """One screen as input to the language model."""

    ref: BlobRef
    """Ref of its PNG."""
    grid: Grid
    features_ND: Tensor
    deepstack_LND: Tensor
    """Features added after the first L layers; L is 0 without deepstack."""

    @property
    def num_bytes(self) -> int:
        """Memory of the features, including that of tensors they are views of."""
        storages = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for tensor in (self.features_ND, self.deepstack_LND)
        }
        return sum(storages.values())


class ScreenCache:
    """A cache that evicts the least recently used screen. Not thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` 0 keeps nothing."""
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._screens: OrderedDict[BlobRef, ScreenFeatures] = OrderedDict()

    def __len__(self) -> int:
        """Number of screens kept."""
        return len(self._screens)

    @property
    def num_bytes(self) -> int:
        """Size of all features kept; never above the limit."""
        return self._num_bytes

    def get(self, ref: BlobRef) -> ScreenFeatures | None:
        """The screen's features, now the most recently used; None if not cached."""
        screen = self._screens.get(ref)
        if screen is not None:
            self._screens.move_to_end(ref)
        return screen

    def put(self, screen: ScreenFeatures) -> None:
        """Cache the screen, evicting the least recently used; ignores one larger than the cache."""
        if screen.ref in self._screens or screen.num_bytes > self._max_bytes:
            return
        while self._num_bytes + screen.num_bytes > self._max_bytes:
            _, dropped = self._screens.popitem(last=False)
            self._num_bytes -= dropped.num_bytes
        self._screens[screen.ref] = screen
        self._num_bytes += screen.num_bytes


PATCHES_PER_CALL: Final = 512
"""Maximum patches per call of the tower, unless it has a single screen: 8 screens of the small
policy, or one of a phone's full resolution. This limits a call's memory whatever the batch. With
one screen per call the small policy takes twice as long, 7.2 instead of 3.6 CPU-ms per screen."""


class ScreenEncoder:
    """Runs the vision tower on new screenshots, in calls of equal shape.

    Thread-safe: calls run one at a time.
    """

    def __init__(
        self, visual: nn.Module | None, processor: Any, max_cached_bytes: int | None = None
    ) -> None:
        """Caches features up to `max_cached_bytes`; what does not fit is encoded again.

        `max_cached_bytes` None means `SCREEN_CACHE_BYTES`. `visual` None is for a policy without
        screens, which never gets screenshots.
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
        """Features of each screenshot, in order."""
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
        """The screenshots grouped by size, with as many per group as one call takes."""
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
        """Features of equally sized screenshots; repeats the last one to fill the call's shape."""
        images = [Image.open(io.BytesIO(shot.png)).convert("RGB") for shot in screenshots]
        width_px, height_px = images[0].size
        pixels = self._processor(images=images, return_tensors="pt")
        patches_SNC = pixels["pixel_values"].view(len(images), -1, pixels["pixel_values"].shape[-1])
        num_screens = self._screens_per_call(width_px, height_px)
        repeats = [min(row, len(images) - 1) for row in range(num_screens)]
        output = self._visual(
            to_device(patches_SNC[repeats].flatten(0, 1).to(self._visual.dtype), self._device),
            grid_thw=to_device(pixels["image_grid_thw"][repeats], self._device),
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
    """Number of image tokens for a screen of this width and height."""
    width_px, height_px = screen_px
    patches = image_processor.get_number_of_image_patches(height_px, width_px, {})
    return int(patches) // int(image_processor.merge_size) ** 2


def _deepstack(output: Any, features_SND: Tensor) -> Tensor:
    layers = getattr(output, "deepstack_features", None)  # Qwen2.5-VL has none
    if not layers:
        return features_SND.new_zeros((0, *features_SND.shape))
    return torch.stack(layers).view(len(layers), *features_SND.shape)


def blank_screenshot(screen_px: tuple[int, int]) -> Screenshot:
    """A grey screenshot of this width and height."""
    buffer = io.BytesIO()
    Image.new("RGB", screen_px, "grey").save(buffer, "PNG")
    return Screenshot(buffer.getvalue(), *screen_px)
