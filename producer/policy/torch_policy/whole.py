"""Whether a policy was loaded whole: no weight missing, left over or of another shape."""

import logging
from typing import Any

from transformers import PreTrainedModel

from producer.errors import UsageError
from producer.policy.torch_policy.architectures import Architecture
from producer.policy.torch_policy.stored_weights import StoredWeights, list_some

logger = logging.getLogger(__name__)


def check_whole(
    name: str, architecture: Architecture, network: PreTrainedModel, info: dict[str, Any]
) -> None:
    """UsageError unless every weight was loaded; `info` is transformers' loading info."""
    problems = []
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])
        problems.append(f"{len(missing)} missing: {list_some(missing)}")
    if info["unexpected_keys"]:
        unexpected = sorted(info["unexpected_keys"])
        problems.append(f"{len(unexpected)} unexpected: {list_some(unexpected)}")
    if info["mismatched_keys"]:
        mismatched = [
            f"{key} (stored {tuple(stored)}, expected {tuple(expected)})"
            for key, stored, expected in sorted(info["mismatched_keys"])
        ]
        problems.append(f"{len(mismatched)} of another shape: {list_some(mismatched)}")
    if problems:
        raise UsageError(not_whole(name, "; ".join(problems), architecture))
    embeddings, output = network.get_input_embeddings(), network.get_output_embeddings()
    if network.config.tie_word_embeddings and output.weight is not embeddings.weight:
        message = (
            f"policy {name!r} is inconsistent: its config.json says tie_word_embeddings, and its"
            " lm_head.weight differs from its embeddings; set tie_word_embeddings to false, or"
            " remove lm_head.weight"
        )
        raise UsageError(message)


def not_whole(name: str, problems: str, architecture: Architecture | None = None) -> str:
    """The message for a policy of which something is missing or left over."""
    shape = f" as {architecture.title}" if architecture else ""
    return (
        f"policy {name!r} cannot be loaded whole{shape}: {problems}. Download it again, or check"
        " that its config.json belongs to its weights"
    )


def check_square_experts(name: str, architecture: Architecture, stored: StoredWeights) -> None:
    """Experts are stored (experts, in, out) on the hub and (experts, out, in) by transformers 5.

    transformers tells them apart by the shape, which a square weight does not show: UsageError.
    """
    if not architecture.expert_parameters:
        return
    first, second = architecture.expert_parameters
    for key, tensor in stored.tensors.items():
        pair = stored.tensors.get(key.removesuffix(first) + second)
        if not key.endswith(first) or pair is None:
            continue
        # (experts, D, 2 I) and (experts, I, D) as on the hub; D = 2 I makes the first square and
        # D = I the second.
        for square, other, transposed in (
            (tensor, pair, pair.shape[1] * 2 == pair.shape[2]),
            (pair, tensor, tensor.shape[1] * 2 == tensor.shape[2]),
        ):
            if len(set(square.shape[1:])) == 1 and transposed:
                message = (
                    f"policy {name!r} cannot be loaded: {square.name} is square ({square.shape}),"
                    f" and {other.name} is stored transposed, which transformers cannot tell of a"
                    " square weight; load it where it was made and save it with transformers 5"
                )
                raise UsageError(message)


def log_ignored(name: str, stored: StoredWeights) -> None:
    """Name the stored tensors that transformers computes instead of loading."""
    buffers = sorted(key for key in stored.tensors if key.endswith("rotary_emb.inv_freq"))
    if buffers:
        logger.info(
            "policy %r: not loaded: %s (computed from config.json)", name, list_some(buffers)
        )
