"""Settings that have no effect with provider tinker, and combinations that it cannot compute.

Tinker's losses are sums over tokens of the untempered policy's log-probs, without penalties; what
it would compute otherwise than this process is refused by name.
"""

from collections.abc import Callable
from typing import Final

from producer.algorithms.advantages import ADVANTAGES
from producer.config.fields import ConfigFields
from producer.config.preset import DEMO_POLICY, ORACLE_POLICY
from producer.policy.compute_settings import ComputeSettings

LOSSES: Final = ("importance_sampling", "ppo", "cispo")
"""That Tinker computes as this process does."""
TARGETS: Final = ("all", "attention", "mlp")
"""Modules that Tinker can adapt by themselves."""


def is_tinker(c: ConfigFields) -> bool:
    """Whether Tinker samples and trains."""
    return c.provider == "tinker"


Rule = tuple[str, Callable[[ConfigFields], object], str]
"""Field, whether it is refused, and the problem."""

WITHOUT_EFFECT: Final = (
    (
        " ".join(ComputeSettings.model_fields),
        "Tinker computes the policy; omit it",
    ),
    ("lora_alpha", "Tinker scales its adapters itself; omit it"),
)
"""Fields between blanks, and what to do."""

REFUSED: Final[tuple[Rule, ...]] = (
    ("model_name", lambda c: c.model_name in {DEMO_POLICY, ORACLE_POLICY},
     "give the name of a base model that Tinker trains, such as Qwen/Qwen3-VL-30B-A3B-Instruct"),
    ("base_url", lambda c: c.base_url,
     "is for OpenAI-compatible servers; omit it, or set TINKER_BASE_URL to Tinker's address"),
    ("load_checkpoint_path",
     lambda c: c.load_checkpoint_path and not isinstance(c.load_checkpoint_path, str),
     "Tinker cannot load a folder; give weights that it saved, tinker://RUN/weights/NAME"),
    ("train_type", lambda c: c.train_type != "lora",
     "Tinker trains adapters only; omit it"),
    ("lora_dropout", lambda c: c.lora_dropout,
     "Tinker has no dropout; set it to 0"),
    ("target_modules",
     lambda c: c.target_modules not in {None, *((name,) for name in TARGETS)},
     "Tinker adapts only all, attention or mlp; use one of them"),
    ("loss_fn", lambda c: c.loss_fn not in LOSSES,
     f"Tinker does not compute {{c.loss_fn}} as this process does; use {', '.join(LOSSES)}"),
    ("dual_clip", lambda c: c.dual_clip is not None,
     "Tinker's ppo has no dual clip; omit it"),
    ("importance_cap", lambda c: c.importance_cap is not None,
     "Tinker's losses have no truncated importance weights; omit it"),
    ("loss_aggregation", lambda c: c.loss_aggregation != "sum",
     "Tinker's losses are sums over tokens; use sum"),
    ("entropy_coef", lambda c: c.entropy_coef, "Tinker's losses have no entropy bonus; omit it"),
    ("kl_penalty_coef", lambda c: c.kl_penalty_coef,
     "Tinker's losses have no KL penalty; set it to 0"),
    ("compute_post_kl", lambda c: c.compute_post_kl,
     "is not measured with Tinker; omit it"),
    ("advantage", lambda c: ADVANTAGES[c.advantage].learned,
     "Tinker trains no {advantage.learned.title}; use an advantage of rewards, such as grpo"),
    ("temperature", lambda c: c.temperature != 1,
     "Tinker computes log-probs at temperature 1 only; use 1"),
    ("top_p", lambda c: c.top_p != 1,
     "with nucleus sampling Tinker's log-probs may not be those of the whole distribution; use 1"),
)  # fmt: skip
