"""The memory that a training takes, as a sum whose terms a message can show. Pure arithmetic.

Each term is its size when it is largest; activations are counted for the longest prompt.
The factors of activations were counted from the tensors that a forward pass keeps
(tests/producer/policy/test_memory_demand.py).
"""

from dataclasses import dataclass
from typing import Final

from producer.policy.compute_settings import PolicySettings

FLOAT32_BYTES: Final = 4
BYTES_PER_TRAINED: Final = 4 * FLOAT32_BYTES
"""Of an adapter's weight: itself, its gradient, and two moments of Adam."""
TOKENS_PER_MICRO_BATCH: Final = 4096
"""Most padded tokens of one forward pass of an update; a longer sequence is a pass of its own."""
PASS_BYTES: Final = 2**30
"""Of one pass of a training on a processor: activations, in a supervised training also logits.
Fixed, so that bits do not depend on the memory that a machine has left."""
LOGIT_BYTES: Final = 2**26
"""Of the logits that exist at a time in an update."""
PREFILL_BYTES: Final = 2**30
"""Of the activations of one prefill, for more than one prompt."""
SCREEN_CACHE_BYTES: Final = 2**31
"""Of the screens' features that are kept by default."""
TURN_TEXT_TOKENS: Final = 64
"""Of what a chat template puts around a screen and an answer."""
_MIB: Final = 2**20
_GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """Dimensions of a network."""

    num_weights: int
    """Of the base."""
    weight_bytes: int
    """Of one weight: 4 in float32, 2 in bfloat16."""
    num_trained: int
    """Weights of the adapter."""
    layers: int
    hidden: int
    feed_forward: int
    """Inner dimension of a token's feed-forward layer; of experts: of all that a token uses."""
    query: int
    """Heads times their dimension."""
    key_value: int
    """Key and value heads times their dimension."""
    vocabulary: int
    deepstack: int
    """Layers that get features of their own."""
    trains_all: bool = False
    """The trained weights are a copy of the base's, not an adapter."""

    @property
    def cache_bytes(self) -> int:
        """KV cache of one token."""
        return 2 * self.layers * self.key_value * self.weight_bytes

    @property
    def screen_token_bytes(self) -> int:
        """Features of one image token."""
        return (1 + self.deepstack) * self.hidden * self.weight_bytes

    @property
    def layer_bytes(self) -> int:
        """What one layer keeps of one token for the backward pass."""
        if self.weight_bytes == FLOAT32_BYTES:
            return 16 * self.hidden + 16 * self.feed_forward + 12 * self.query + 12 * self.key_value
        return 28 * self.hidden + 10 * self.feed_forward + 12 * self.query + 8 * self.key_value

    @property
    def passing_bytes(self) -> int:
        """What a pass without gradients holds of one token, in the layer that takes most."""
        floats = 6 * self.hidden + 3 * self.feed_forward + 2 * self.query + 2 * self.key_value
        return floats * self.weight_bytes

    def activation_bytes(self, num_tokens: int, *, checkpointed: bool) -> int:
        """Kept for the backward pass of `num_tokens`."""
        if checkpointed:
            inputs = self.layers * self.hidden * self.weight_bytes
            return num_tokens * (inputs + self.layer_bytes)
        return num_tokens * self.layers * self.layer_bytes


@dataclass(frozen=True, slots=True)
class RunExtent:
    """How much a run asks of the network, by its configuration and its devices."""

    concurrent_rollouts: int
    """Episodes that run at the same time."""
    batch_size: int
    """Rollouts per step."""
    max_turns: int
    max_tokens: int
    """Of a completion."""
    is_training: bool
    """False: it samples only."""
    batches_ahead: int = 0
    """Batches that are collected before the one that is trained; above 0 episodes are under way
    during an update."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a run does with the network, in tokens."""

    extent: RunExtent
    settings: PolicySettings
    screen_tokens: int
    """Image tokens of one screen."""
    num_lanes: int
    """Passes that run at the same time."""
    pass_tokens: int = TOKENS_PER_MICRO_BATCH
    """Of an update, padded."""

    @property
    def turns_per_prompt(self) -> int:
        """Most turns of one prompt, its own included: 2N - 1 past ones, or all."""
        if self.settings.max_recent_turns is None:
            return self.extent.max_turns
        return min(self.extent.max_turns, max(1, 2 * self.settings.max_recent_turns))

    @property
    def turn_tokens(self) -> int:
        """Of one turn."""
        return self.screen_tokens + TURN_TEXT_TOKENS + self.extent.max_tokens

    @property
    def episode_tokens(self) -> int:
        """Of an episode's longest prompt with its completion."""
        return self.turns_per_prompt * self.turn_tokens

    @property
    def new_tokens(self) -> int:
        """Most tokens of a prompt that are in no cache: of N past turns too where it drops some."""
        drops_turns = self.turns_per_prompt < self.extent.max_turns
        past_turns = (self.settings.max_recent_turns or 0) if drops_turns else 0
        return past_turns * self.turn_tokens + self.screen_tokens + TURN_TEXT_TOKENS


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the sum."""

    what: str
    num_bytes: int


def memory_demand(network: NetworkSize, work: Workload, *, checkpointed: bool) -> list[Term]:
    """Weights, optimiser, caches and activations at the time when most memory is used."""
    weights, screens, kept = _weights(network), _screens(network, work), _kept_caches(network, work)
    sampling = [kept, *_sampling(network, work, kept.num_bytes)]
    if not work.extent.is_training:
        return [weights, screens, *sampling]
    # An update lends the network between two passes: what is kept of the episodes stays.
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
    """Padded tokens of one pass of a training, by what it keeps of a token on a processor.

    `has_logits`: of the whole vocabulary at once, in a supervised training. An update computes them
    in chunks; its bits do not depend on whether it is checkpointed.
    """
    if device_type != "cpu":
        return TOKENS_PER_MICRO_BATCH
    each = network.activation_bytes(1, checkpointed=checkpointed)
    each += _fitted_logit_bytes(network, has_logits=has_logits)
    return max(1, min(TOKENS_PER_MICRO_BATCH, PASS_BYTES // each))


def row_tokens(pass_tokens: int, longest: int) -> int:
    """Most tokens of a row whose sequences share a beginning; the longest has `longest`.

    Twice that, or a pass: where prompts are about as long as a pass, a group still shares its own.
    """
    return max(pass_tokens, min(TOKENS_PER_MICRO_BATCH, 2 * longest))


def fitting_demand(
    network: NetworkSize, num_tokens: int, num_lanes: int, *, has_logits: bool, checkpointed: bool
) -> list[Term]:
    """The terms of a supervised training whose largest pass has `num_tokens`.

    `num_lanes`: passes that run at the same time. The first term is that of the weights.
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
    """Logits of a token, their log-probs and their gradient."""
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
    """Each pass has gradients of its own, which an adapter's size hides in a run."""
    num_bytes = BYTES_PER_TRAINED + num_lanes * FLOAT32_BYTES
    return Term(
        f"trained weights, their gradients and Adam's moments: {network.num_trained:,} x"
        f" {num_bytes} bytes",
        network.num_trained * num_bytes,
    )


def total_bytes(terms: list[Term]) -> int:
    """Their sum."""
    return sum(term.num_bytes for term in terms)


def format_bytes(num_bytes: int) -> str:
    """In GiB; less than one in MiB."""
    return f"{num_bytes / _GIB:.1f} GiB" if num_bytes >= _GIB else f"{num_bytes / _MIB:.1f} MiB"


def _screens(network: NetworkSize, work: Workload) -> Term:
    batches = work.extent.batch_size * (1 + work.extent.batches_ahead)
    episodes = max(batches, work.extent.concurrent_rollouts)
    num_screens = episodes * work.extent.max_turns
    each = work.screen_tokens * network.screen_token_bytes
    bound = work.settings.compute.screen_cache_bytes
    kept = min(SCREEN_CACHE_BYTES if bound is None else bound, num_screens * each)
    # A batch's screens are encoded before the first of them is used.
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
    # A prompt whose cache was dropped is computed again.
    is_whole = kept_bytes < rows * one_episode
    one_prompt = (work.episode_tokens if is_whole else work.new_tokens) * network.passing_bytes
    several = min(PREFILL_BYTES, rows * work.new_tokens * network.passing_bytes)
    prefill = max(one_prompt, several)
    logits = 3 * rows * network.vocabulary * FLOAT32_BYTES
    return [
        # A part of a batch holds at least one episode.
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
    """One pass of each lane: layers, a prompt's screens joined, and a chunk of its logits."""
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
