"""Estimates a training's memory as a sum of terms that a message can show. Pure arithmetic.

Each term is given at its maximum; activations are counted for the longest prompt. The activation
factors were counted from the tensors that a forward pass keeps
(tests/producer/policy/test_memory_demand.py).
"""

from dataclasses import dataclass
from typing import Final

from producer.policy.compute_settings import PolicySettings

FLOAT32_BYTES: Final = 4
BYTES_PER_TRAINED: Final = 4 * FLOAT32_BYTES
"""Bytes per trained adapter weight: the weight, its gradient and Adam's two moments."""
TOKENS_PER_MICRO_BATCH: Final = 4096
"""Maximum padded tokens per forward pass of an update; a longer sequence is a pass of its own."""
PASS_BYTES: Final = 2**30
"""Memory of one training pass on a CPU: activations, and logits too in supervised training. Fixed,
so that results do not depend on how much memory a machine has free."""
LOGIT_BYTES: Final = 2**26
"""Memory of the logits that exist at any one time in an update."""
PREFILL_BYTES: Final = 2**30
"""Activation memory of a prefill with more than one prompt."""
SCREEN_CACHE_BYTES: Final = 2**31
"""Default size of the cache of screen features."""
TURN_TEXT_TOKENS: Final = 64
"""Tokens that a chat template adds around a screen and an answer."""
_MIB: Final = 2**20
_GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """Dimensions of a network."""

    num_weights: int
    """Number of weights of the base."""
    weight_bytes: int
    """Bytes per weight: 4 in float32, 2 in bfloat16."""
    num_trained: int
    """Number of adapter weights."""
    layers: int
    hidden: int
    feed_forward: int
    """Inner dimension of the feed-forward layer; with experts, the sum over those a token uses."""
    query: int
    """Number of query heads times their dimension."""
    key_value: int
    """Number of key and value heads times their dimension."""
    vocabulary: int
    deepstack: int
    """Number of layers that receive their own screen features."""
    trains_all: bool = False
    """Whether the trained weights are a copy of the base instead of an adapter."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of KV cache per token."""
        return 2 * self.layers * self.key_value * self.weight_bytes

    @property
    def screen_token_bytes(self) -> int:
        """Bytes of screen features per image token."""
        return (1 + self.deepstack) * self.hidden * self.weight_bytes

    @property
    def layer_bytes(self) -> int:
        """Bytes per token that one layer keeps for the backward pass."""
        if self.weight_bytes == FLOAT32_BYTES:
            return 16 * self.hidden + 16 * self.feed_forward + 12 * self.query + 12 * self.key_value
        return 28 * self.hidden + 10 * self.feed_forward + 12 * self.query + 8 * self.key_value

    @property
    def passing_bytes(self) -> int:
        """Bytes per token of a pass without gradients, in the layer that needs most."""
        floats = 6 * self.hidden + 3 * self.feed_forward + 2 * self.query + 2 * self.key_value
        return floats * self.weight_bytes

    def activation_bytes(self, num_tokens: int, *, checkpointed: bool) -> int:
        """Bytes kept for the backward pass over `num_tokens`."""
        if checkpointed:
            inputs = self.layers * self.hidden * self.weight_bytes
            return num_tokens * (inputs + self.layer_bytes)
        return num_tokens * self.layers * self.layer_bytes


@dataclass(frozen=True, slots=True)
class RunExtent:
    """How much a run demands of the network, from its configuration and devices."""

    concurrent_rollouts: int
    """Number of episodes running at the same time."""
    batch_size: int
    """Rollouts per step."""
    max_turns: int
    max_tokens: int
    """Maximum tokens of a completion."""
    is_training: bool
    """False if the run only samples."""
    batches_ahead: int = 0
    """Number of batches collected ahead of the one being trained; above 0, episodes run during
    updates."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a run does with the network, in tokens."""

    extent: RunExtent
    settings: PolicySettings
    screen_tokens: int
    """Image tokens per screen."""
    num_lanes: int
    """Number of passes that run at the same time."""
    pass_tokens: int = TOKENS_PER_MICRO_BATCH
    """Padded tokens of one pass of an update."""

    @property
    def turns_per_prompt(self) -> int:
        """Maximum turns in one prompt, including the current one: 2N - 1 past ones, or all."""
        if self.settings.max_recent_turns is None:
            return self.extent.max_turns
        return min(self.extent.max_turns, max(1, 2 * self.settings.max_recent_turns))

    @property
    def turn_tokens(self) -> int:
        """Tokens of one turn."""
        return self.screen_tokens + TURN_TEXT_TOKENS + self.extent.max_tokens

    @property
    def episode_tokens(self) -> int:
        """Tokens of an episode's longest prompt and its completion."""
        return self.turns_per_prompt * self.turn_tokens

    @property
    def new_tokens(self) -> int:
        """Maximum tokens of a prompt not in a cache; includes N past turns if it drops some."""
        drops_turns = self.turns_per_prompt < self.extent.max_turns
        past_turns = (self.settings.max_recent_turns or 0) if drops_turns else 0
        return past_turns * self.turn_tokens + self.screen_tokens + TURN_TEXT_TOKENS


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the memory estimate."""

    what: str
    num_bytes: int


def memory_demand(network: NetworkSize, work: Workload, *, checkpointed: bool) -> list[Term]:
    """Weights, optimiser, caches and activations at peak memory."""
    weights, screens, kept = _weights(network), _screens(network, work), _kept_caches(network, work)
    sampling = [kept, *_sampling(network, work, kept.num_bytes)]
    if not work.extent.is_training:
        return [weights, screens, *sampling]
    # An update lends the network between two passes, so the episodes' state stays in memory.
    under_way = [kept] if work.extent.batches_ahead else []
    updating = [*under_way, _updating(network, work, checkpointed=checkpointed)]
    return [weights, _trained(network, work), screens, *max(sampling, updating, key=total_bytes)]


def pass_tokens(
    network: NetworkSize,
    device_type: str,
    *,
    has_logits: bool = False,
    checkpointed: bool = False,
) -> int:
    """Padded tokens of one training pass, from the bytes it keeps per token on a CPU.

    `has_logits`: all logits of the vocabulary exist at once (supervised training); an update
    computes them in chunks instead. The bits of an update do not depend on checkpointing.
    """
    if device_type != "cpu":
        return TOKENS_PER_MICRO_BATCH
    each = network.activation_bytes(1, checkpointed=checkpointed)
    each += _fitted_logit_bytes(network, has_logits=has_logits)
    return max(1, min(TOKENS_PER_MICRO_BATCH, PASS_BYTES // each))


def row_tokens(pass_tokens: int, longest: int) -> int:
    """Maximum tokens of a row whose sequences share a prefix; the longest sequence has `longest`.

    That is twice `longest` up to `TOKENS_PER_MICRO_BATCH`, but at least one pass, so that a group
    shares its prompt even if prompts are about as long as a pass.
    """
    return max(pass_tokens, min(TOKENS_PER_MICRO_BATCH, 2 * longest))


def fitting_demand(
    network: NetworkSize, num_tokens: int, num_lanes: int, *, has_logits: bool, checkpointed: bool
) -> list[Term]:
    """The terms of a supervised training whose largest pass has `num_tokens` tokens.

    `num_lanes`: number of passes that run at the same time. The first term is the weights.
    """
    logits = num_tokens * _fitted_logit_bytes(network, has_logits=has_logits)
    how = "with" if checkpointed else "without"
    return [
        _weights(network),
        _trained_whole(network, num_lanes),
        Term(
            f"activations {how} gradient checkpointing: {num_lanes} x {num_tokens:,} tokens",
            num_lanes * network.activation_bytes(num_tokens, checkpointed=checkpointed),
        ),
        Term(
            f"logits: 3 x {num_lanes} x {num_tokens:,} tokens x {network.vocabulary:,} x 4 bytes",
            num_lanes * logits,
        ),
    ]


def _fitted_logit_bytes(network: NetworkSize, *, has_logits: bool) -> int:
    """Bytes per token of the logits, their log-probs and their gradient."""
    return 3 * network.vocabulary * FLOAT32_BYTES if has_logits else 0


def _weights(network: NetworkSize) -> Term:
    return Term(
        f"weights: {network.num_weights:,} x {network.weight_bytes} bytes",
        network.num_weights * network.weight_bytes,
    )


def _trained(network: NetworkSize, work: Workload) -> Term:
    if network.trains_all:
        return _trained_whole(network, work.num_lanes)
    return Term(
        "adapter, its gradient and Adam's moments:"
        f" {network.num_trained:,} x {BYTES_PER_TRAINED} bytes",
        network.num_trained * BYTES_PER_TRAINED,
    )


def _trained_whole(network: NetworkSize, num_lanes: int) -> Term:
    """Counts gradients per parallel pass; a run's estimate omits them, as an adapter is small."""
    num_bytes = BYTES_PER_TRAINED + num_lanes * FLOAT32_BYTES
    return Term(
        f"trained weights, their gradients and Adam's moments: {network.num_trained:,} x"
        f" {num_bytes} bytes",
        network.num_trained * num_bytes,
    )


def total_bytes(terms: list[Term]) -> int:
    """Sum of the terms, in bytes."""
    return sum(term.num_bytes for term in terms)


def format_bytes(num_bytes: int) -> str:
    """Format in GiB, or in MiB below one GiB."""
    return f"{num_bytes / _GIB:.1f} GiB" if num_bytes >= _GIB else f"{num_bytes / _MIB:.1f} MiB"


def _screens(network: NetworkSize, work: Workload) -> Term:
    batches = work.extent.batch_size * (1 + work.extent.batches_ahead)
    episodes = max(batches, work.extent.concurrent_rollouts)
    num_screens = episodes * work.extent.max_turns
    each = work.screen_tokens * network.screen_token_bytes
    bound = work.settings.compute.screen_cache_bytes
    kept = min(SCREEN_CACHE_BYTES if bound is None else bound, num_screens * each)
    # All screens of a batch are encoded before the first is used.
    held = max(kept, work.extent.concurrent_rollouts * each)
    return Term(
        f"features of screens: {work.screen_tokens:,} tokens x {network.screen_token_bytes:,}"
        f" bytes, of at most {held // max(1, each):,} screens",
        held,
    )


def _kept_caches(network: NetworkSize, work: Workload) -> Term:
    rows, bound = work.extent.concurrent_rollouts, work.settings.compute.kv_cache_bytes
    episodes = rows * work.episode_tokens * network.cache_bytes
    kept = episodes if bound is None else min(bound, episodes)
    return Term(
        f"KV cache: {rows:,} episodes x {work.episode_tokens:,} tokens x"
        f" {network.cache_bytes:,} bytes"
        + ("" if kept == episodes else f", of which {format_bytes(kept)} are kept"),
        kept,
    )


def _sampling(network: NetworkSize, work: Workload, kept_bytes: int) -> list[Term]:
    rows = work.extent.concurrent_rollouts
    one_episode = work.episode_tokens * network.cache_bytes
    # A prompt whose cache was dropped is recomputed.
    is_whole = kept_bytes < rows * one_episode
    one_prompt = (work.episode_tokens if is_whole else work.new_tokens) * network.passing_bytes
    several = min(PREFILL_BYTES, rows * work.new_tokens * network.passing_bytes)
    prefill = max(one_prompt, several)
    logits = 3 * rows * network.vocabulary * FLOAT32_BYTES
    return [
        # Each part of a batch holds at least one episode.
        Term(
            "working copy of the KV cache for the episodes being sampled",
            max(kept_bytes, one_episode),
        ),
        Term(
            f"activations of a prefill: {network.passing_bytes:,} bytes a token, and logits of"
            f" {rows:,} rows",
            prefill + logits,
        ),
    ]


def _updating(network: NetworkSize, work: Workload, *, checkpointed: bool) -> Term:
    """One pass per lane: its layers, the joined screens of a prompt, and one chunk of logits."""
    tokens = max(
        work.episode_tokens,
        min(
            row_tokens(work.pass_tokens, work.episode_tokens),
            work.extent.batch_size * work.episode_tokens,
        ),
    )
    layers = network.activation_bytes(tokens, checkpointed=checkpointed)
    screens = work.turns_per_prompt * work.screen_tokens * network.screen_token_bytes
    row = network.vocabulary * FLOAT32_BYTES
    chunk = max(row, min(LOGIT_BYTES, tokens * row))
    how = "with" if checkpointed else "without"
    return Term(
        f"activations of an update {how} gradient checkpointing: {work.num_lanes} x"
        f" {tokens:,} tokens, with screens and logits",
        work.num_lanes * (layers + screens + 3 * chunk),
    )
