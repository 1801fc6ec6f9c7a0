"""The small policy, opened at a stand-in for Tinker."""

from pathlib import Path

from producer.policy.compute_settings import PolicySettings
from producer.policy.tinker_policy.open import open_tinker
from producer.policy.tinker_policy.policy import TinkerPolicy
from producer.policy.tinker_policy.service import TinkerService
from tests.support.tinker_key import KEY

RANK, SEED, RECENT_TURNS = 4, 1, 1
SCREEN_PX = (90, 160)


def through_sdk(folder: Path, url: str, service: TinkerService | None = None) -> TinkerPolicy:
    """With an adapter of its own. `service`: at that URL; None: one with the usual limits."""
    settings = PolicySettings(
        str(folder),
        RANK,
        SEED,
        renderer_name="compact",
        screen_px=SCREEN_PX,
        max_recent_turns=RECENT_TURNS,
    )
    return open_tinker(
        service or TinkerService(KEY, url),
        settings,
        max_tokens=6,
        instructions=["Turn on Wi-Fi"],
    )
