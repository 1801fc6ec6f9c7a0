"""What each field of RewardSQL's grpo_trainer.yaml means here: ours, one value alone, or nothing.

Names are dotted; a name that ends with `.` stands for everything below it.
"""

from typing import Any, Final, NamedTuple

ACTOR: Final = "actor_rollout_ref.actor."
ROLLOUT: Final = "actor_rollout_ref.rollout."
POLICY: Final = "actor_rollout_ref.model."

SAME: Final = {
    f"{POLICY}path": "model_name",
    f"{POLICY}lora_rank": "lora_rank",
    f"{POLICY}lora_alpha": "lora_alpha",
    f"{POLICY}target_modules": "target_modules",
    "data.seed": "seed",
    "data.train_batch_size": "groups_per_batch",
    "data.max_response_length": "max_tokens",
    f"{ROLLOUT}response_length": "max_tokens",
    f"{ROLLOUT}n": "group_size",
    f"{ROLLOUT}temperature": "temperature",
    f"{ROLLOUT}top_p": "top_p",
    f"{ROLLOUT}val_kwargs.temperature": "eval_temperature",
    f"{ACTOR}grad_clip": "max_gradient_norm",
    f"{ACTOR}clip_ratio_low": "clip_ratio_low",
    f"{ACTOR}clip_ratio_high": "clip_ratio_high",
    f"{ACTOR}clip_ratio_c": "dual_clip",
    f"{ACTOR}optim.lr": "learning_rate",
    f"{ACTOR}optim.weight_decay": "weight_decay",
    f"{ACTOR}entropy_coeff": "entropy_coef",
    f"{ACTOR}ppo_epochs": "ppo_epochs",
    "reward_model.rm_coef": "rm_coef",
    "verifier.reward_coef": "verifier_coef",
    "verifier.port": "reward_port",
    "trainer.default_local_dir": "output_dir",
    "trainer.experiment_name": "training_name",
    "trainer.total_epochs": "epochs",
    "trainer.total_training_steps": "num_steps",
    "trainer.device": "device",
}
"""Name -> the field or option of `cua-train sql rl` that it is, with the same value."""

ALIASES: Final = {
    **{
        f"algorithm.kl_ctl.{name}": f"algorithm.kl_ctrl.{name}"
        for name in ("type", "kl_coef", "target_kl", "horizon")
    },
    "algorithm.cliprange": f"{ACTOR}clip_ratio",
    "algorithm.cliprange_low": f"{ACTOR}clip_ratio_low",
    "algorithm.cliprange_high": f"{ACTOR}clip_ratio_high",
    "algorithm.clip_ratio_c": f"{ACTOR}clip_ratio_c",
    "algorithm.loss_agg_mode": f"{ACTOR}loss_agg_mode",
}
"""Names of the published file -> verl's own, which win where both are given."""

OF_VALUES: Final = {
    "algorithm.gamma": "gae_gamma",
    "algorithm.lam": "gae_lambda",
    "critic.optim.lr": "value_learning_rate",
    "critic.cliprange_value": "value_clip",
}
"""The same, where the algorithm is ppo; the others have no values."""

OF_PRIME: Final = {
    "reward_model.model.beta_train": "prime_beta",
    "reward_model.model.optim.lr": "prime_learning_rate",
    "algorithm.reward_dpo_coef": "prime_process_coef",
    "algorithm.reward_gt_coef": "prime_outcome_coef",
}
"""The same, where the algorithm is prime; the others train no reward model."""

NO_SERVICE: Final = "completions are executed by this process; no service is asked"
ONE_DEVICE: Final = "one process computes on one device, in passes that fit its memory"
OWN_SAMPLER: Final = "the policy samples in this process, without a server"
OWN_PROMPT: Final = "prompts are the data set's, in the policy's own chat template"
OWN_MARKS: Final = "the reward model's folder names its marker and labels"
EVENTS: Final = "every figure and rollout is an event; `cua-project track` mirrors them"
CHECKPOINTS: Final = "a training continues by its name, and its checkpoints are kept"
SHARED: Final = "the value head reads the policy's own network"

WITHOUT_EFFECT: Final = {
    "data.tokenizer": OWN_PROMPT,
    "data.reward_fn_key": OWN_PROMPT,
    "data.max_prompt_length": "prompts are never cut; one that is too long is refused",
    "data.filter_overlong_prompts": "prompts are never cut; one that is too long is refused",
    "data.filter_overlong_prompts_workers": "prompts are checked when the tasks are loaded",
    "data.truncation": "prompts are never cut; one that is too long is refused",
    "data.val_batch_size": "evaluations run as many episodes at once as the training",
    "data.return_raw_input_ids": OWN_PROMPT,
    "data.return_raw_chat": OWN_PROMPT,
    "data.return_full_prompt": OWN_PROMPT,
    "data.shuffle": "every epoch has an order by seed",
    "data.image_key": OWN_PROMPT,
    "data.video_key": OWN_PROMPT,
    "data_logger.": EVENTS,
    "actor_rollout_ref.hybrid_engine": ONE_DEVICE,
    f"{POLICY}external_lib": "the policy is loaded by transformers",
    f"{POLICY}override_config": "the policy's own config.json says it",
    f"{POLICY}trust_remote_code": "code of a policy's folder is never executed",
    f"{POLICY}use_remove_padding": "padding changes the speed, not the result",
    f"{POLICY}use_liger": "fused kernels change the speed, not the result",
    f"{POLICY}use_shm": "weights are read where they are",
    f"{POLICY}enable_activation_offload": ONE_DEVICE,
    f"{ACTOR}strategy": ONE_DEVICE,
    f"{ACTOR}ppo_micro_batch_size": ONE_DEVICE,
    f"{ACTOR}ppo_micro_batch_size_per_gpu": ONE_DEVICE,
    f"{ACTOR}use_dynamic_bsz": ONE_DEVICE,
    f"{ACTOR}ppo_max_token_len_per_gpu": ONE_DEVICE,
    f"{ACTOR}shuffle": "optimiser steps take a step's rollouts in order",
    f"{ACTOR}ulysses_sequence_parallel_size": ONE_DEVICE,
    f"{ACTOR}use_torch_compile": "compilation changes the speed, not the result",
    f"{ACTOR}fsdp_config.": ONE_DEVICE,
    f"{ACTOR}checkpoint.": CHECKPOINTS,
    f"{ACTOR}optim.total_training_steps": "the trainer fills it in, there as here",
    "actor_rollout_ref.ref.": "the reference is the policy before its training",
    f"{ROLLOUT}name": OWN_SAMPLER,
    f"{ROLLOUT}mode": OWN_SAMPLER,
    f"{ROLLOUT}use_fire_sampling": OWN_SAMPLER,
    f"{ROLLOUT}prompt_length": "prompts are never cut; one that is too long is refused",
    f"{ROLLOUT}dtype": "rollouts and updates compute in the same type",
    f"{ROLLOUT}gpu_memory_utilization": OWN_SAMPLER,
    f"{ROLLOUT}enforce_eager": OWN_SAMPLER,
    f"{ROLLOUT}free_cache_engine": OWN_SAMPLER,
    f"{ROLLOUT}load_format": OWN_SAMPLER,
    f"{ROLLOUT}layered_summon": OWN_SAMPLER,
    f"{ROLLOUT}tensor_model_parallel_size": ONE_DEVICE,
    f"{ROLLOUT}max_num_batched_tokens": OWN_SAMPLER,
    f"{ROLLOUT}max_model_len": OWN_SAMPLER,
    f"{ROLLOUT}max_num_seqs": OWN_SAMPLER,
    f"{ROLLOUT}log_prob_micro_batch_size": ONE_DEVICE,
    f"{ROLLOUT}log_prob_micro_batch_size_per_gpu": ONE_DEVICE,
    f"{ROLLOUT}log_prob_use_dynamic_bsz": ONE_DEVICE,
    f"{ROLLOUT}log_prob_max_token_len_per_gpu": ONE_DEVICE,
    f"{ROLLOUT}disable_log_stats": OWN_SAMPLER,
    f"{ROLLOUT}enable_chunked_prefill": OWN_SAMPLER,
    f"{ROLLOUT}val_kwargs.do_sample": "a temperature of 0 is greedy",
    f"{ROLLOUT}engine_kwargs.": OWN_SAMPLER,
    f"{ROLLOUT}multi_turn.": "a question is one turn",
    "critic.": SHARED,
    "reward_model.strategy": ONE_DEVICE,
    "reward_model.model.": "a reward model is loaded by transformers, on the policy's device",
    "reward_model.micro_batch_size": ONE_DEVICE,
    "reward_model.micro_batch_size_per_gpu": ONE_DEVICE,
    "reward_model.max_length": "completions are scored whole",
    "reward_model.ulysses_sequence_parallel_size": ONE_DEVICE,
    "reward_model.use_dynamic_bsz": ONE_DEVICE,
    "reward_model.forward_max_token_len_per_gpu": ONE_DEVICE,
    "reward_model.launch_reward_fn_async": NO_SERVICE,
    "reward_model.port": NO_SERVICE,
    "reward_model.candidate_tokens": OWN_MARKS,
    "reward_model.step_tag_id": OWN_MARKS,
    "verifier.type": "the outcome is that of the executed rows, or of --reward-function",
    "trainer.balance_batch": ONE_DEVICE,
    "trainer.nnodes": ONE_DEVICE,
    "trainer.n_gpus_per_node": ONE_DEVICE,
    "trainer.logger": "the log has every figure; with wandb in the list they are mirrored there",
    "trainer.log_val_generations": EVENTS,
    "trainer.val_generations_to_log_to_wandb": EVENTS,
    "trainer.rollout_data_dir": EVENTS,
    "trainer.validation_data_dir": EVENTS,
    "trainer.resume_from_path": CHECKPOINTS,
    "trainer.default_hdfs_dir": CHECKPOINTS,
    "trainer.remove_previous_ckpt_in_save": CHECKPOINTS,
    "trainer.del_local_ckpt_after_load": CHECKPOINTS,
    "trainer.max_actor_ckpt_to_keep": CHECKPOINTS,
    "trainer.max_critic_ckpt_to_keep": CHECKPOINTS,
    "trainer.ray_wait_register_center_timeout": ONE_DEVICE,
    "algorithm.kl_ctrl.type": "the weight of the KL penalty is fixed",
    "algorithm.kl_ctrl.horizon": "the weight of the KL penalty is fixed",
    "algorithm.kl_ctrl.target_kl": "the weight of the KL penalty is fixed",
    "ray_init.": ONE_DEVICE,
}
"""Name -> why nothing follows from it here. A longer name comes before the section it is in."""


class Only(NamedTuple):
    """The values that mean what is done anyway."""

    values: tuple[Any, ...]
    instead: str
    """What to do about another value."""


ONLY: Final = {
    f"{ACTOR}optim.num_cycles": Only((0.5,), "a cosine falls once, to the last step; use 0.5"),
    "data.prompt_key": Only(("prompt",), "name the column of prompts `prompt`"),
    "algorithm.prefinetune_epoch": Only((0,), "`cua-train sql sft` imitates first; use 0"),
    f"{ROLLOUT}top_k": Only((-1, 0), "completions are sampled from the whole distribution; use -1"),
    f"{ROLLOUT}val_kwargs.top_k": Only((-1, 0), "evaluations sample from all tokens; use -1"),
    f"{ROLLOUT}val_kwargs.top_p": Only((1,), "evaluations sample from all tokens; use 1"),
    f"{ROLLOUT}val_kwargs.n": Only((1,), "`cua-train sql best-of-n --n` samples several"),
    f"{ROLLOUT}do_sample": Only((True,), "training always samples; use true"),
    f"{ROLLOUT}ignore_eos": Only((False,), "a completion ends with its end token; use false"),
    "trainer.critic_warmup": Only((0,), "policy and value head are trained from the first step"),
    "custom_reward_function.path": Only((), "register it in a file for --reward-module"),
}
"""Name -> what alone is honoured."""

WEIGHT_DECAY: Final = 0.01
"""verl's, where a file names none."""
KL_ESTIMATORS: Final = {"abs": "abs", "mse": "k2", "low_var_kl": "k3", "kl": "k1"}
AGGREGATIONS: Final = {
    "token-mean": "token_mean",
    "seq-mean-token-sum": "sequence_sum",
    "seq-mean-token-mean": "sequence_mean",
}
LOSSES: Final = {"vanilla": "ppo", "gspo": "gspo"}
ESTIMATORS: Final = {
    "gae": "ppo",
    **{
        name: name
        for name in (
            *(
                "grpo",
                "ppo",
                "rloo",
                "prime",
                "dapo",
                "reinforce_plus_plus",
                "reinforce_plus_plus_baseline",
            ),
            *("opo", "gpg", "grpo_passk"),
        )
    },
}
"""`algorithm.adv_estimator` -> the algorithm."""
MANAGERS: Final = frozenset({"custom", "naive", "prime"})
"""`reward_model.reward_manager`s that mean ours: rm_coef x steps + verifier_coef x outcome."""
