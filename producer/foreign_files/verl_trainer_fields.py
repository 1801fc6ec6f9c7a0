"""Maps the fields of RewardSQL's grpo_trainer.yaml, verl's trainer file, to our settings."""

from pathlib import Path
from typing import Any, Final

from producer.foreign_files.reading import (
    NO_CHOICE,
    Table,
    Told,
    chosen,
    count,
    one_of,
    only,
    own_folder,
    same,
    switch,
    without_effect,
)

ACTOR: Final = "actor_rollout_ref.actor."
ROLLOUT: Final = "actor_rollout_ref.rollout."
POLICY: Final = "actor_rollout_ref.model."

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
    f"{ACTOR}optim.lr_scheduler_type": f"{ACTOR}optim.warmup_style",
}
"""Maps names in the published file to verl's own names, which take precedence."""

ALGORITHMS: Final = (
    "grpo ppo rloo prime dapo remax reinforce_plus_plus reinforce_plus_plus_baseline opo gpg"
    " grpo_passk"
)
ESTIMATORS: Final = {
    "gae": "ppo",
    "gae_covariance": "ppo",
    **{name: name for name in ALGORITHMS.split()},
    "reinforce++": "reinforce_plus_plus",
    "reinforce++_baseline": "reinforce_plus_plus_baseline",
}
"""Maps `algorithm.adv_estimator` to the algorithm."""
KL_ESTIMATORS: Final = {"abs": "abs", "mse": "k2", "low_var_kl": "k3", "kl": "k1"}
AGGREGATIONS: Final = {
    "token-mean": "token_mean",
    "seq-mean-token-sum": "sequence_sum",
    "seq-mean-token-mean": "sequence_mean",
}
SCHEDULES: Final = {"constant": "constant", "cosine": "cosine"}
MANAGERS: Final = ("custom", "naive", "prime")
"""Values of `reward_model.reward_manager` that mean our reward: rm_coef x steps + verifier_coef x
outcome."""


def _kl_in_loss(value: Any) -> Any:
    if value == "kl":
        message = "'kl' has an expected gradient of 0 in the loss; use low_var_kl"
        raise ValueError(message)
    return chosen(KL_ESTIMATORS)(value)


def _estimator(value: Any) -> Any:
    found = chosen(ESTIMATORS, NO_CHOICE)(value)
    if value == "gae_covariance":
        return Told(found, "gae_covariance has no formula in verl or RewardSQL; gae is computed")
    return found


def _manager(value: Any) -> str | None:
    from producer.process_rewards.registry import registry

    if value in registry.names("reward manager"):
        return str(value)
    if value in MANAGERS:
        return None
    message = (
        f"{value!r} is not registered; register it in a file for --reward-module, or use one of"
        f" {', '.join(MANAGERS)}"
    )
    raise ValueError(message)


def _share(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        message = f"{value!r} is not a number from 0 to 1"
        raise ValueError(message)
    return value


def _one_of_files(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if len(value) == 1:
        return value[0]
    message = "several files cannot be honoured; name one, or the folder of a data set"
    raise ValueError(message)


def _every(value: Any) -> Any:
    """A number of steps; -1 means never."""
    return 0 if value == -1 else value


HONOURED: Final[Table] = {
    f"{POLICY}path": same("model_name"),
    f"{POLICY}lora_rank": same("lora_rank", lambda rank: rank or None),
    f"{POLICY}lora_alpha": same("lora_alpha", when="adapter"),
    f"{POLICY}target_modules": same(
        "target_modules", lambda names: "all" if names == "all-linear" else names, when="adapter"
    ),
    f"{POLICY}enable_gradient_checkpointing": same(
        "gradient_checkpointing", lambda is_on: "on" if is_on else "off"
    ),
    "data.seed": same("seed"),
    "data.train_files": same("data_path", _one_of_files),
    "data.val_files": same("eval_data_path", _one_of_files),
    "data.train_batch_size": same("groups_per_batch"),
    "data.max_response_length": same("max_tokens"),
    "data.prompt_key": only("prompt", instead="name the column of prompts `prompt`"),
    f"{ROLLOUT}response_length": same("max_tokens"),
    f"{ROLLOUT}n": same("group_size"),
    f"{ROLLOUT}temperature": same("temperature"),
    f"{ROLLOUT}top_p": same("top_p"),
    f"{ROLLOUT}top_k": only(-1, 0, instead="completions are sampled from all tokens; use -1"),
    f"{ROLLOUT}do_sample": only(True, instead="training always samples; use true"),
    f"{ROLLOUT}ignore_eos": only(False, instead="a completion ends with its end token; use false"),
    f"{ROLLOUT}val_kwargs.temperature": same("eval_temperature"),
    f"{ROLLOUT}val_kwargs.top_k": only(-1, 0, instead="evaluations sample from all tokens; use -1"),
    f"{ROLLOUT}val_kwargs.top_p": only(1, instead="evaluations sample from all tokens; use 1"),
    f"{ROLLOUT}val_kwargs.n": only(1, instead="`cua-train sql best-of-n --n` samples several"),
    f"{ACTOR}ppo_mini_batch_size": same("mini_batch_size", count),
    f"{ACTOR}ppo_epochs": same("ppo_epochs"),
    f"{ACTOR}grad_clip": same("max_gradient_norm"),
    f"{ACTOR}clip_ratio_low": same("clip_ratio_low"),
    f"{ACTOR}clip_ratio_high": same("clip_ratio_high"),
    f"{ACTOR}clip_ratio_c": same("dual_clip"),
    f"{ACTOR}entropy_coeff": same("entropy_coef"),
    f"{ACTOR}policy_loss.loss_mode": one_of(
        "loss_fn", {"vanilla": "ppo", "gspo": "gspo"}, default="vanilla"
    ),
    f"{ACTOR}loss_agg_mode": one_of("loss_aggregation", AGGREGATIONS, default="token-mean"),
    f"{ACTOR}use_kl_loss": switch(),
    f"{ACTOR}kl_loss_coef": same("kl_penalty_coef", when="kl in loss", default=0.001),
    f"{ACTOR}kl_loss_type": same(
        "kl_estimator", _kl_in_loss, when="kl in loss", default="low_var_kl"
    ),
    f"{ACTOR}optim.lr": same("learning_rate"),
    f"{ACTOR}optim.weight_decay": same("weight_decay", default=0.01),
    f"{ACTOR}optim.lr_warmup_steps": same(
        "learning_rate_warmup_steps", lambda steps: None if steps in (-1, 0) else count(steps)
    ),
    f"{ACTOR}optim.lr_warmup_steps_ratio": same("warmup_ratio", _share),
    f"{ACTOR}optim.warmup_style": one_of(
        "learning_rate_schedule", SCHEDULES, NO_CHOICE, default="constant"
    ),
    f"{ACTOR}optim.min_lr_ratio": same("min_learning_rate_ratio", when="cosine", default=0.0),
    f"{ACTOR}optim.num_cycles": only(0.5, instead="a cosine falls once, to the last step; use 0.5"),
    "critic.optim.lr": same("value_learning_rate"),
    "critic.cliprange_value": same("value_clip"),
    "reward_model.enable": switch(),
    "reward_model.model.path": same(
        "process_reward_model", lambda path: Path(str(path)), when="reward model"
    ),
    "reward_model.enable_EXreward": same(
        "reward_model_sees_results", bool, when="reward model", default=False
    ),
    "reward_model.rm_coef": same("rm_coef", when="reward model"),
    "reward_model.reward_manager": same("reward_manager", _manager),
    "reward_model.model.beta_train": same("prime_beta"),
    "reward_model.model.optim.lr": same("prime_learning_rate"),
    "custom_reward_function.path": only(instead="register it in a file for --reward-module"),
    "verifier.reward_coef": same("verifier_coef"),
    "verifier.port": same("reward_port"),
    "algorithm.adv_estimator": same("algorithm", _estimator),
    "algorithm.core_function": same("core_function"),
    "algorithm.core_algos": same("core_algos"),
    "algorithm.norm_adv_by_std_in_grpo": same(
        "normalize_by_std", lambda is_on: None if is_on else False
    ),
    "algorithm.gamma": same("gae_gamma"),
    "algorithm.lam": same("gae_lambda"),
    "algorithm.use_kl_in_reward": switch(),
    "algorithm.kl_ctrl.kl_coef": same("kl_penalty_coef", when="kl in reward", default=0.001),
    "algorithm.kl_penalty": one_of(
        "kl_estimator", KL_ESTIMATORS, when="kl in reward", default="kl"
    ),
    "algorithm.reward_dpo_coef": same("prime_process_coef"),
    "algorithm.reward_gt_coef": same("prime_outcome_coef"),
    "algorithm.prefinetune_epoch": only(0, instead="`cua-train sql sft` imitates first; use 0"),
    "trainer.default_local_dir": same("output_dir", own_folder),
    "trainer.experiment_name": same("training_name"),
    "trainer.project_name": same("wandb_project", when="wandb"),
    "trainer.total_epochs": same("epochs"),
    "trainer.total_training_steps": same("num_steps"),
    "trainer.save_freq": same("save_every", _every),
    "trainer.test_freq": same("eval_every", _every),
    "trainer.val_before_train": same("skip_baseline", lambda is_first: not is_first),
    "trainer.resume_mode": one_of(
        "behavior_if_log_dir_exists",
        {"auto": None, "disable": "raise"},
        "cannot be honoured: the training's name continues it; use auto or disable",
    ),
    "trainer.critic_warmup": only(
        0, instead="policy and value head are trained from the first step"
    ),
    "trainer.device": same("device"),
}

NO_SERVICE: Final = "this process executes completions, without a service"
ONE_DEVICE: Final = "one process computes on one device, in passes that fit its memory"
OWN_SAMPLER: Final = "the policy samples in this process, without a server"
OWN_PROMPT: Final = "prompts are the data set's, in the policy's own chat template"
OWN_MARKS: Final = "the reward model's folder names its marker and labels"
NEVER_CUT: Final = "prompts are never cut; one that is too long is refused"
EVENTS: Final = "every figure and rollout is an event; `cua-project track` mirrors them"
CHECKPOINTS: Final = "a training continues by its name, and its checkpoints are kept"
SPEED: Final = "the speed, not the result"

IGNORED: Final[Table] = without_effect(
    {
        "data.": {
            OWN_PROMPT: (
                "tokenizer reward_fn_key image_key video_key return_raw_input_ids return_raw_chat "
                "return_full_prompt"
            ),
            NEVER_CUT: "max_prompt_length filter_overlong_prompts truncation",
            "prompts are checked when the tasks are loaded": "filter_overlong_prompts_workers",
            "evaluations run as many episodes at once as the training": "val_batch_size",
            "every epoch has an order by seed": "shuffle",
        },
        POLICY: {
            "the policy is loaded by transformers": "external_lib",
            "the policy's config.json has it": "override_config",
            "code of a policy's folder is never executed": "trust_remote_code",
            f"padding changes {SPEED}": "use_remove_padding",
            f"fused kernels change {SPEED}": "use_liger",
            "weights are read where they are": "use_shm",
            ONE_DEVICE: "enable_activation_offload",
        },
        ACTOR: {
            ONE_DEVICE: (
                "strategy ppo_micro_batch_size ppo_micro_batch_size_per_gpu use_dynamic_bsz "
                "ppo_max_token_len_per_gpu ulysses_sequence_parallel_size fsdp_config."
            ),
            "optimiser steps take a step's rollouts in order": "shuffle",
            f"compilation changes {SPEED}": "use_torch_compile",
            CHECKPOINTS: "checkpoint.",
            "the trainer fills it in, there as here": "optim.total_training_steps",
        },
        ROLLOUT: {
            OWN_SAMPLER: (
                "name mode use_fire_sampling gpu_memory_utilization enforce_eager "
                "free_cache_engine load_format layered_summon max_num_batched_tokens "
                "max_model_len max_num_seqs disable_log_stats enable_chunked_prefill "
                "engine_kwargs."
            ),
            ONE_DEVICE: (
                "tensor_model_parallel_size log_prob_micro_batch_size "
                "log_prob_micro_batch_size_per_gpu log_prob_use_dynamic_bsz "
                "log_prob_max_token_len_per_gpu"
            ),
            NEVER_CUT: "prompt_length",
            "rollouts and updates compute in the same type": "dtype",
            "a temperature of 0 is greedy": "val_kwargs.do_sample",
            "a question is one turn": "multi_turn.",
        },
        "reward_model.": {
            "a reward model is loaded by transformers, on the policy's device": "model.",
            ONE_DEVICE: (
                "strategy micro_batch_size micro_batch_size_per_gpu use_dynamic_bsz "
                "forward_max_token_len_per_gpu ulysses_sequence_parallel_size"
            ),
            "completions are scored whole": "max_length",
            NO_SERVICE: "launch_reward_fn_async port",
            OWN_MARKS: "candidate_tokens step_tag_id",
        },
        "algorithm.kl_ctrl.": {
            "the weight of the KL penalty is fixed": "type horizon target_kl",
        },
        "trainer.": {
            ONE_DEVICE: "balance_batch nnodes n_gpus_per_node ray_wait_register_center_timeout",
            "the log has every figure; with wandb in the list they are mirrored there": "logger",
            EVENTS: (
                "log_val_generations val_generations_to_log_to_wandb rollout_data_dir "
                "validation_data_dir"
            ),
            CHECKPOINTS: (
                "resume_from_path default_hdfs_dir remove_previous_ckpt_in_save "
                "del_local_ckpt_after_load max_actor_ckpt_to_keep max_critic_ckpt_to_keep"
            ),
        },
        "": {
            EVENTS: "data_logger.",
            "the reference is the policy before its training": "actor_rollout_ref.ref.",
            "the value head reads the policy's own network": "critic.",
            ONE_DEVICE: "actor_rollout_ref.hybrid_engine ray_init.",
            "the outcome is that of the executed rows, or of --reward-function": "verifier.type",
        },
    }
)
