"""The loss of TRL's `GRPOTrainer`, called without a network: its log-probs are handed in."""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor


def grpo_loss(
    logprobs_BT: Tensor,
    old_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    *,
    loss_type: str,
    level: str = "token",
    epsilon_low: float = 0.2,
    epsilon_high: float = 0.2,
    delta: float | None = None,
    beta: float = 0.0,
    reference_BT: Tensor | None = None,
) -> Tensor:
    """`GRPOTrainer._compute_loss` of one batch that is the whole optimiser step."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    num_rows, num_tokens = mask_BT.shape
    accelerator = SimpleNamespace(
        num_processes=1,
        gather=lambda value: value,
        gather_for_metrics=lambda value: value,
        reduce=lambda value, **_: value,
    )
    trainer: Any = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (
            logprobs_BT,
            torch.zeros_like(logprobs_BT.detach()),
            None,
        ),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=beta,
        args=SimpleNamespace(use_bias_correction_kl=False, delta=delta, steps_per_generation=1),
        loss_type=loss_type,
        epsilon_low=epsilon_low,
        epsilon_high=epsilon_high,
        use_vllm=False,
        model=SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1,
        max_completion_length=num_tokens,
        accelerator=accelerator,
        _entropy_bonus_enabled=False,
        _metrics={"train": defaultdict(list)},
    )
    loss: Tensor = GRPOTrainer._compute_loss(
        trainer,
        None,
        {
            "prompt_ids": torch.zeros(num_rows, 1, dtype=torch.long),
            "prompt_mask": torch.ones(num_rows, 1),
            "completion_ids": torch.zeros(num_rows, num_tokens, dtype=torch.long),
            "completion_mask": mask_BT.to(logprobs_BT.dtype),
            "advantages": advantages_B,
            "old_per_token_logps": old_BT,
            "ref_per_token_logps": reference_BT,
            "num_items_in_batch": mask_BT.sum(),
        },
    )
    return loss
