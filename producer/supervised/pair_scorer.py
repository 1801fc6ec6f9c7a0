"""A network with one score per sequence: made of a policy, and loaded as it was trained."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel

from producer.errors import NotFoundError
from producer.policy.torch_policy.placement import choose_placement
from producer.policy.torch_policy.threads import compute_on_one_thread
from producer.supervised.pairwise_reward import scores
from producer.supervised.sequences import prompt_and_answer


def scoring_network(policy: PreTrainedModel, pad_token: int, seed: int) -> PreTrainedModel:
    """The policy's layers under a fresh head of one output, drawn from `seed`; float32."""
    config = policy.config
    config.num_labels = 1
    config.pad_token_id = pad_token
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
    network.model.load_state_dict(policy.model.state_dict())
    network.name_or_path = network.config._name_or_path = policy.name_or_path
    return network.to(policy.device).eval()


class PairScorer:
    """Scores whole completions. Deterministic; not thread-safe."""

    def __init__(self, network: PreTrainedModel, tokenizer: Any) -> None:  # noqa: ANN401  # transformers
        self._network = network.eval()
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, folder: Path, device: str = "auto") -> Self:
        """Of the folder that a pairwise training wrote. NotFoundError."""
        compute_on_one_thread()
        placement = choose_placement(device)
        try:
            network = AutoModelForSequenceClassification.from_pretrained(
                folder, dtype=torch.float32, local_files_only=True
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError) as error:
            message = f"{folder} holds no pairwise reward model ({str(error).splitlines()[0]})"
            raise NotFoundError(message) from None
        return cls(network.to(placement.device), tokenizer)

    @torch.no_grad()
    def score(self, prompt: str, completions: Sequence[str]) -> list[float]:
        """Of each completion of the prompt; only their differences mean anything."""
        sequences = [
            prompt_and_answer(self._tokenizer, prompt, completion) for completion in completions
        ]
        return [float(score) for score in scores(self._network, sequences)]
