"""What a screen's features depend on, and the memory that encoding takes."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest
import torch
from PIL import Image

from producer.policy.torch_policy import cpu_parallel
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.render import Grid
from producer.policy.torch_policy.screen_encoder import (
    PATCHES_PER_CALL,
    ScreenCache,
    ScreenEncoder,
    ScreenFeatures,
)
from tests.support.rounding import rounding_of_forward

from .conftest import make_screen

# 6 x 10, 1 x 3 and 10 x 6 patches. Features of so few rows as 3 round differently in a larger call.
SIZES = ((90, 160), (48, 16), (160, 90))
NOTHING = 0


class CountedTower(torch.nn.Module):
    """A tower that notes the patches of its calls."""

    def __init__(self, tower: Any) -> None:
        super().__init__()
        self.tower = tower
        self.dtype = tower.dtype
        self.calls: list[int] = []

    def forward(self, patches: torch.Tensor, grid_thw: torch.Tensor) -> Any:
        self.calls.append(len(patches))
        return self.tower(patches, grid_thw=grid_thw)


@pytest.fixture
def tower(network: Network) -> CountedTower:
    return CountedTower(network.base.model.visual)


def are_same(some: Sequence[ScreenFeatures], others: Sequence[ScreenFeatures]) -> bool:
    return len(some) == len(others) and all(
        one.ref == other.ref
        and torch.equal(one.features_ND, other.features_ND)
        and torch.equal(one.deepstack_LND, other.deepstack_LND)
        for one, other in zip(some, others, strict=True)
    )


@pytest.mark.parametrize("num_workers", [1, 3])
def test_features_have_the_same_bits_whatever_is_encoded_beside_them(
    network: Network, monkeypatch: pytest.MonkeyPatch, num_workers: int
) -> None:
    monkeypatch.setattr(cpu_parallel, "num_workers", lambda _device: num_workers)
    encoder = ScreenEncoder(network.base.model.visual, network.processor, NOTHING)
    screens = [make_screen(10 * seed + len(SIZES), *size) for seed in range(7) for size in SIZES]
    alone = [encoder.encode([screen])[0] for screen in screens]
    assert are_same(encoder.encode(screens), alone)
    assert are_same(encoder.encode(screens[::-1]), alone[::-1])
    assert are_same(encoder.encode(screens[4:9]), alone[4:9])


def test_features_are_those_of_plain_transformers(network: Network, tower: CountedTower) -> None:
    screens = [make_screen(seed, *SIZES[0]) for seed in range(3)]
    encoded = ScreenEncoder(tower, network.processor).encode(screens)
    for screen, features in zip(screens, encoded, strict=True):
        pixels = network.processor.image_processor(
            images=[Image.open(BytesIO(screen.png))], return_tensors="pt"
        )
        with torch.no_grad():
            output = network.base.model.visual(
                pixels["pixel_values"], grid_thw=pixels["image_grid_thw"]
            )
        assert (features.grid.rows, features.grid.columns) == (10, 6)
        expected_ND = output.pooler_output
        bound = rounding_of_forward(network.base.model.visual, float(expected_ND.abs().max()))
        assert (features.features_ND - expected_ND).abs().max() <= bound


def test_a_call_of_the_tower_is_bounded_whatever_the_batch(
    network: Network, tower: CountedTower
) -> None:
    encoder = ScreenEncoder(tower, network.processor, NOTHING)
    encoder.encode([make_screen(seed, *SIZES[0]) for seed in range(20)])
    # 8 screens of 60 patches are 480 of at most 512; 20 screens take 3 calls, the last one filled.
    assert tower.calls == [480, 480, 480]


def test_a_screen_above_the_bound_of_a_call_is_a_call_of_its_own(
    network: Network, tower: CountedTower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer.policy.torch_policy.screen_encoder.PATCHES_PER_CALL", 59)
    ScreenEncoder(tower, network.processor, NOTHING).encode([make_screen(1), make_screen(2)])
    assert tower.calls == [60, 60]
    assert PATCHES_PER_CALL == 512


def features(seed: int, num_tokens: int) -> ScreenFeatures:
    """4 bytes a token, and none of deepstack."""
    screen = make_screen(seed)
    return ScreenFeatures(
        screen.ref, Grid(num_tokens, 1), torch.zeros(num_tokens, 1), torch.zeros(0, num_tokens, 1)
    )


def test_a_cache_holds_at_most_its_bytes_and_drops_what_was_not_used_for_longest() -> None:
    first, second, third = (features(seed, num_tokens=10) for seed in range(3))
    cache = ScreenCache(max_bytes=80)
    cache.put(first)
    cache.put(second)
    assert (len(cache), cache.num_bytes) == (2, 80)
    assert cache.get(first.ref) is first
    cache.put(third)
    assert cache.num_bytes == 80
    assert cache.get(second.ref) is None
    assert cache.get(first.ref) is first
    assert cache.get(third.ref) is third


def test_putting_a_screen_twice_counts_it_once() -> None:
    cache, screen = ScreenCache(max_bytes=80), features(0, num_tokens=10)
    cache.put(screen)
    cache.put(screen)
    assert (len(cache), cache.num_bytes) == (1, 40)


def test_a_screen_larger_than_the_cache_is_not_kept_and_drops_nothing() -> None:
    cache, small = ScreenCache(max_bytes=80), features(0, num_tokens=10)
    cache.put(small)
    cache.put(features(1, num_tokens=21))
    assert cache.get(small.ref) is small
    assert cache.num_bytes == 40


def test_a_view_counts_the_memory_that_it_keeps() -> None:
    screen = features(0, num_tokens=10)
    batch = torch.zeros(50, 1)
    view = ScreenFeatures(screen.ref, screen.grid, batch[:10], screen.deepstack_LND)
    assert view.num_bytes == 50 * 4


def test_kept_features_are_no_views_of_their_batch(network: Network) -> None:
    encoder = ScreenEncoder(network.base.model.visual, network.processor)
    screens = encoder.encode([make_screen(seed) for seed in range(5)])
    # 60 tokens of 32 dimensions in float32, nothing of the seven screens beside.
    assert [screen.num_bytes for screen in screens] == [60 * 32 * 4] * 5
    assert encoder._cache.num_bytes == 5 * 60 * 32 * 4


def test_without_room_for_one_screen_every_screen_is_encoded_again_and_none_is_lost(
    network: Network, tower: CountedTower
) -> None:
    screens = [make_screen(seed) for seed in range(3)]
    kept = ScreenEncoder(tower, network.processor).encode(screens)
    encoder = ScreenEncoder(tower, network.processor, NOTHING)
    tower.calls.clear()
    assert are_same(encoder.encode(screens), kept)
    assert are_same(encoder.encode(screens), kept)
    assert len(tower.calls) == 2
    assert encoder._cache.num_bytes == 0
