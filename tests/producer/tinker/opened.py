"""The small policy, opened at a stand-in for Tinker."""

from pathlib import Path

from producer.policy.compute_settings import PolicySettings
from producer.policy.tinker_policy.open import open_tinker
from producer.policy.tinker_policy.policy import TinkerPolicy
from producer.policy.tinker_policy.service import TinkerService
from tests.support.tinker_key import KEY

RANK, SEED, RECENT_TURNS = 4, 1, 1
SCREEN_PX = (90, 160)


def through_sdk(folder: Path, url: str) -> TinkerPolicy:
    """With an adapter of its own."""
    settings = PolicySettings(
        str(folder),
        RANK,
        SEED,
        renderer_name="compact",
        screen_px=SCREEN_PX,
        max_recent_turns=RECENT_TURNS,
    )
    service = TinkerService(KEY, url)
    return open_tinker(service, settings, max_tokens=6, instructions=["Turn on Wi-Fi"])
