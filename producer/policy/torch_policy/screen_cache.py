"""Features of the screens used last, bounded in bytes.

A screen takes 30 KB for the small policy and 83 MB for 1080 x 2400 pixels in Qwen3-VL-2B (2,550
image tokens x 2,048 dimensions x 4 bytes, four times with deepstack), so that a bound on the number
of screens bounds nothing.

Axes: N image tokens, D text dimension, L deepstack layers.
"""

from collections import OrderedDict
from dataclasses import dataclass

from torch import Tensor

from producer.policy.torch_policy.render import Grid
from schemas.blobs import BlobRef


@dataclass(frozen=True, slots=True)
class ScreenFeatures:
    """One screen as input of the language model."""

    ref: BlobRef
    """Of its PNG."""
    grid: Grid
    features_ND: Tensor
    deepstack_LND: Tensor
    """Added after the first L layers; L is 0 without deepstack."""

    @property
    def num_bytes(self) -> int:
        """Of the features' memory, that of tensors which they are views of included."""
        storages = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for tensor in (self.features_ND, self.deepstack_LND)
        }
        return sum(storages.values())


class ScreenCache:
    """Least recently used first out. Not thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        """0: keeps nothing."""
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._screens: OrderedDict[BlobRef, ScreenFeatures] = OrderedDict()

    def __len__(self) -> int:
        """Screens kept."""
        return len(self._screens)

    @property
    def num_bytes(self) -> int:
        """Of all features kept; never above the bound."""
        return self._num_bytes

    def get(self, ref: BlobRef) -> ScreenFeatures | None:
        """The screen's features, now the most recently used; None if they are not kept."""
        screen = self._screens.get(ref)
        if screen is not None:
            self._screens.move_to_end(ref)
        return screen

    def put(self, screen: ScreenFeatures) -> None:
        """Keep the screen in place of the least recently used. One above the bound is not kept."""
        if screen.ref in self._screens or screen.num_bytes > self._max_bytes:
            return
        while self._num_bytes + screen.num_bytes > self._max_bytes:
            _, dropped = self._screens.popitem(last=False)
            self._num_bytes -= dropped.num_bytes
        self._screens[screen.ref] = screen
        self._num_bytes += screen.num_bytes
