"""The advantages that the update computes, by their settings."""

from typing import Final

from producer.algorithms.settings import GaeSettings, PrimeSettings
from producer.policy.torch_policy.gae_advantage import GaeAdvantage
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage
from producer.policy.torch_policy.prime_advantage import PrimeAdvantage

LearnedSettings = type[GaeSettings | PrimeSettings]

LEARNED: Final[dict[LearnedSettings, type[LearnedAdvantage]]] = {
    GaeSettings: GaeAdvantage,
    PrimeSettings: PrimeAdvantage,
}
