"""Renders docs/settings.md from the configuration and the test of each field: `make docs`."""

import sys

from producer.commands.flags import description_of, shown_default
from producer.config import TOPICS
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "settings.md"
HEAD = """# Settings of `cua-train run`

Every field of the configuration with its default, what it does, and the test that shows that. The
flag is the field's name with dashes; a `--config` file has the names as they are.
`cua-train convert FILE` prints another project's file with these names. Where the demo policy has
another default it stands behind `demo`. Written by `make docs` from `producer/config/` and
`tests/support/settings_page.py`.
"""
SHOWN_BY: dict[str, str] = {
    "model_name": "tests/producer/training/test_policies_of_the_hub.py::test_every_architecture"
    "_with_a_tower_trains_and_its_adapter_loads_in_plain_peft",
    "base_url": "tests/producer/training/test_server_sampling.py::test_log_probs_of_two_servers"
    "_that_fail_now_and_then_are_those_of_the_learner",
    "adapters_dir": "tests/producer/training/test_server_sampling.py::test_log_probs_of_two"
    "_servers_that_fail_now_and_then_are_those_of_the_learner",
    "provider": "tests/producer/tinker/test_training.py::test_a_training_through_the_sdk_keeps_its"
    "_checkpoints_at_tinker_and_no_key_anywhere",
    "train_type": "tests/producer/training/test_all_weights.py::test_its_checkpoint_is_a_whole"
    "_policy_that_transformers_loads_and_a_run_begins_from",
    "lora_rank": "tests/producer/training/test_policies_of_the_hub.py::test_a_training_from_an"
    "_adapter_has_its_rank_and_continues_with_it",
    "lora_alpha": "tests/producer/policy/test_adapters.py::test_the_scale_is_twice_the_rank"
    "_unless_it_is_given",
    "lora_dropout": "tests/producer/training/test_dbbench_reinforce.py::test_dropout_changes_the"
    "_update_by_its_seed_alone_and_never_what_is_sampled",
    "target_modules": "tests/producer/policy/test_adapters.py::test_an_adapter_of_other_targets"
    "_than_asked_is_refused",
    "load_checkpoint_path": "tests/producer/training/test_policies_of_the_hub.py::test_a_training"
    "_from_an_adapter_has_its_rank_and_continues_with_it",
    "renderer_name": "tests/producer/policy/test_formats.py::test_the_other_names_are_what_they"
    "_say",
    "max_tokens": "tests/producer/policy/test_sampling.py::test_max_tokens_bounds_each_request_by"
    "_itself",
    "temperature": "tests/producer/policy/test_sampling.py::test_temperature_divides_the_logits"
    "_and_zero_takes_the_likeliest_token_untempered",
    "top_p": "tests/producer/policy/test_verl_settings.py::test_top_p_draws_among_the_likeliest"
    "_tokens_that_reach_it_and_keeps_the_log_probs",
    "ppo_epochs": "tests/producer/policy/test_verl_settings.py::test_two_epochs_are_two_updates_of"
    "_the_same_batch",
    "learning_rate_schedule": "tests/producer/training/test_samples.py::test_a_cosine_falls_from"
    "_its_warm_up_to_the_lowest_rate_as_verls",
    "min_learning_rate_ratio": "tests/producer/training/test_samples.py::test_a_cosine_falls_from"
    "_its_warm_up_to_the_lowest_rate_as_verls",
    "weight_decay": "tests/producer/policy/test_verl_settings.py::test_an_update_decays_the_trained"
    "_weights",
    "entropy_coef": "tests/producer/policy/test_verl_settings.py::test_the_bonus_takes_the_weighted"
    "_mean_entropy_off_the_loss",
    "reward_port": "tests/producer/training/test_rewardsql.py::test_the_files_of_its_readme"
    "_train_with_its_flags",
    "reward_model_sees_results": "tests/producer/training/test_rewardsql.py::test_with_enable"
    "_exreward_the_reward_model_reads_what_each_step_returns",
    "oracle_noise": "tests/producer/agents/android/test_demo_tasks.py"
    "::test_a_noisy_oracle_says_the_same_for_the_same_seed_and_is_an_oracle_without_noise",
    "ablate": "tests/producer/training/test_settings.py::test_devices_are_blanked_where_it_is"
    "_asked_for",
    "tasks": "tests/producer/tasks/test_sources.py::test_a_list_is_its_sources_one_after_the_other",
    "eval_tasks": "tests/producer/training/test_judged_run.py::test_episodes_that_nobody_judges"
    "_count_in_no_success_rate",
    "judge": "tests/producer/training/test_judged_run.py::test_the_agents_own_report_is_the"
    "_verdict_and_the_reward",
    "judge_model": "tests/producer/training/test_judged_run.py::test_a_judge_of_ones_own_is_named"
    "_by_the_validator_and_its_verdicts",
    "box_type": "tests/producer/agents/gbox/test_agent.py"
    "::test_a_linux_box_has_no_tasks_that_ask_a_phone",
    "seed": "tests/producer/training/test_run.py::test_the_same_configuration_says_the_same_under"
    "_any_name_and_other_things_with_another_seed",
    "max_turns": "tests/producer/rollouts/test_engine.py::test_running_out_of_turns_is_an_outcome"
    "_that_is_judged",
    "max_recent_turns": "tests/producer/policy/test_context.py::test_every_prompt_begins_with_the"
    "_instruction_and_shows_the_turns_since_the_anchor",
    "rollouts_by": "tests/producer/workers/test_workers.py::test_workers_share_the_rollouts_and"
    "_their_results_are_those_of_one_process",
    "max_concurrent_rollouts": "tests/producer/rollouts/test_engine.py::test_no_more_devices"
    "_exist_at_once_than_allowed_and_every_plan_has_one_result",
    "max_task_time_seconds": "tests/producer/training/test_settings.py::test_an_episode_ends"
    "_unsolved_when_its_time_is_over",
    "max_turn_time_seconds": "tests/producer/rollouts/test_engine.py::test_a_device_that_hangs_is"
    "_given_up_while_the_others_go_on",
    "validate_every_turn": "tests/producer/rollouts/test_reward_of_episode.py::test_the_first"
    "_turn_after_which_the_task_was_solved_is_known_if_the_validator_is_asked",
    "reward": "tests/producer/test_rewards.py::test_a_reward_by_name",
    "reward_correct": "tests/producer/foreign_files/test_agent_peft_recipe.py"
    "::test_the_rewards_of_a_session_are_free_numbers",
    "reward_incorrect": "tests/producer/foreign_files/test_agent_peft_recipe.py"
    "::test_the_rewards_of_a_session_are_free_numbers",
    "reward_timeout": "tests/producer/foreign_files/test_agent_peft_recipe.py"
    "::test_the_rewards_of_a_session_are_free_numbers",
    "reward_sha256": "tests/producer/test_rewards.py::test_a_training_continues_with_the_same"
    "_function_only",
    "turn_cost": "tests/producer/test_rewards.py::test_costs_come_off_any_reward",
    "parse_error_cost": "tests/producer/rollouts/test_engine.py::test_actions_that_cannot_be"
    "_parsed_or_done_are_counted_and_cost",
    "num_steps": "tests/producer/training/test_run.py::test_a_complete_training_is_left_alone_and"
    "_goes_on_when_more_steps_are_asked_for",
    "groups_per_batch": "tests/producer/training/test_settings.py::test_a_training_sees_as_many"
    "_tasks_and_attempts_as_its_batch_says",
    "group_size": "tests/producer/training/test_settings.py::test_a_training_sees_as_many_tasks"
    "_and_attempts_as_its_batch_says",
    "num_substeps": "tests/producer/policy/test_update.py::test_substeps_split_the_batch_and_each"
    "_takes_a_step",
    "group_by_prefix": "tests/producer/policy/test_prefix_clusters.py::test_what_begins_alike"
    "_shares_an_optimiser_step_where_asked",
    "control": "tests/producer/training/test_controls.py::test_a_wrong_sign_negates_the_advantages"
    "_and_not_the_recorded_rewards",
    "mask_truncated": "tests/producer/training/test_batch_metrics.py::test_rollouts_with_a_cut"
    "_completion_are_left_out_and_still_compared",
    "max_steps_off_policy": "tests/producer/training/test_off_policy.py::test_whatever_the"
    "_latencies_nothing_older_than_allowed_is_trained_on",
    "stream_minibatch": "tests/producer/training/test_unread_fields.py::test_a_training_with"
    "_streamed_minibatches_has_the_bits_of_one_without",
    "num_minibatches": "tests/producer/training/test_unread_fields.py::test_they_may_change_when"
    "_a_training_continues",
    "learning_rate": "tests/producer/policy/test_update.py::test_the_optimiser_takes_the_learning"
    "_rate_of_each_update",
    "learning_rate_warmup_steps": "tests/producer/training/test_samples.py::test_the_learning"
    "_rate_rises_over_its_warm_up_and_is_a_function_of_the_step",
    "max_gradient_norm": "tests/producer/policy/test_update.py::test_the_gradient_is_reported"
    "_before_it_is_clipped",
    "advantage": "tests/producer/training/test_samples.py::test_every_advantage_that_a_run"
    "_accepts_gives_one_number_per_sample",
    "advantage_by_std": "tests/producer/training/test_samples.py::test_division_by_the_standard"
    "_deviation_is_a_setting",
    "remove_constant_reward_groups": "tests/producer/training/test_samples.py::test_a_group_of"
    "_one_reward_is_kept_on_request",
    "refill_rounds": "tests/producer/training/test_refill.py::test_rounds_end_when_every_group"
    "_has_a_signal_or_no_task_is_left",
    "loss_fn": "tests/producer/policy/test_algorithms_in_update.py::test_a_clipping_bound_and_a"
    "_dual_clip_reach_the_loss",
    "clip_ratio_low": "tests/producer/training/test_samples.py::test_a_loss_s_own_clipping_bounds"
    "_apply_unless_others_are_given",
    "clip_ratio_high": "tests/producer/training/test_samples.py::test_a_loss_s_own_clipping"
    "_bounds_apply_unless_others_are_given",
    "dual_clip": "tests/producer/policy/test_algorithms_in_update.py::test_a_clipping_bound_and_a"
    "_dual_clip_reach_the_loss",
    "importance_cap": "tests/producer/policy/test_algorithms_in_update.py::test_importance_weights"
    "_are_of_the_policy_before_the_update_and_truncated_at_the_cap",
    "loss_aggregation": "tests/producer/policy/test_algorithms_in_update.py::test_aggregation"
    "_scales_the_same_losses",
    "kl_penalty_coef": "tests/producer/policy/test_update.py::test_the_kl_penalty_pulls_towards"
    "_the_base_policy",
    "kl_estimator": "tests/producer/training/test_samples.py::test_every_setting_of_the_update"
    "_reaches_it",
    "kl_in": "tests/producer/policy/test_algorithms_in_update.py::test_a_kl_penalty_in_the_loss"
    "_pulls_towards_the_base_policy",
    "compute_post_kl": "tests/producer/policy/test_algorithms_in_update.py::test_the_post_update"
    "_kl_is_what_the_next_update_would_measure",
    "device": "tests/producer/policy/test_compute_settings.py::test_a_device_that_is_not_there_is"
    "_refused_with_what_is",
    "dtype": "tests/producer/policy/test_compute_settings.py::test_weights_have_the_dtype_and_the"
    "_adapter_float32",
    "cpu_threads": "tests/producer/training/test_cpu_threads.py::test_a_training_that_goes_on"
    "_elsewhere_has_the_threads_of_the_machine_that_began_it",
    "gradient_checkpointing": "tests/producer/policy/test_compute_settings.py::test_layers_are"
    "_checkpointed_in_the_backward_passes_alone_and_as_the_field_says",
    "screen_cache_bytes": "tests/producer/policy/test_screen_encoder.py::test_without_room_for"
    "_one_screen_every_screen_is_encoded_again_and_none_is_lost",
    "kv_cache_bytes": "tests/producer/policy/test_compute_settings.py::test_caches_keep_within"
    "_their_bytes_and_what_was_dropped_is_computed_again",
    "eval_every": "tests/producer/training/test_settings.py::test_evaluations_are_made_every_so"
    "_many_steps_and_after_the_last",
    "eval_episodes": "tests/producer/training/test_settings.py::test_evaluations_have_a"
    "_temperature_and_a_number_of_episodes_of_their_own",
    "eval_temperature": "tests/producer/training/test_settings.py::test_evaluations_have_a"
    "_temperature_and_a_number_of_episodes_of_their_own",
    "eval_sampled_episodes": "tests/producer/training/test_evaluations.py::test_each_point_has_a"
    "_greedy_and_a_sampled_evaluation_of_the_same_tasks",
    "skip_baseline": "tests/producer/training/test_settings.py::test_checkpoints_are_saved_every"
    "_so_many_steps_and_after_the_last",
    "baseline_only": "tests/producer/training/test_baseline_only.py::test_a_baseline_is_followed"
    "_by_training_that_keeps_it",
    "training_name": "tests/producer/commands/test_continues.py::test_after_any_flag",
    "log_path": "tests/producer/training/test_run.py::test_a_training_in_a_folder_of_the_users_is"
    "_found_by_its_name_alone",
    "log_dir": "tests/producer/commands/test_continues.py::test_a_log_dir_has_a_folder_for_each"
    "_training",
    "save_every": "tests/producer/training/test_settings.py::test_checkpoints_are_saved_every_so"
    "_many_steps_and_after_the_last",
    "behavior_if_log_dir_exists": "tests/producer/training/test_run.py::test_a_training_that"
    "_exists_can_be_refused_or_skipped",
    "failure_policy": "tests/producer/training/test_groups.py::test_fail_fast_stops_at_the_first"
    "_failed_attempt_and_says_which",
    "max_attempts": "tests/producer/training/test_judged_run.py::test_a_judge_that_stops"
    "_answering_fails_attempts_and_scores_none",
    "min_group_size": "tests/producer/training/test_groups.py::test_a_group_with_too_few_scored"
    "_rollouts_fails_and_is_never_scored_with_zeros",
    "num_groups_to_log": "tests/producer/training/test_run_files.py::test_as_many_groups_as_asked"
    "_for_are_written_with_what_the_policy_said",
    "wandb_project": "tests/consumers/trackers/test_trackers.py::test_a_training_mirrors_itself"
    "_to_the_project_and_name_that_it_was_given",
    "wandb_name": "tests/consumers/trackers/test_trackers.py::test_a_training_mirrors_itself_to"
    "_the_project_and_name_that_it_was_given",
    "environment": "tests/test_contributing.py::test_every_environment_keeps_the_contract_and_can"
    "_be_chosen",
    "dbbench_database": "tests/producer/agents/dbbench/test_same_on_mysql.py"
    "::test_a_run_has_its_sessions_on_the_server_that_is_named",
    "env_url": "tests/producer/agents/openenv/test_environment.py::test_an_episode_is_on_the_first"
    "_server_that_has_room",
    "env_actions": "tests/producer/agents/openenv/test_mappings.py::test_actions_are_sent_as_the"
    "_mapping_says",
    "env_screen": "tests/producer/agents/openenv/test_mistakes.py::test_what_is_wrong_with_a_server"
    "_is_said_before_anything_is_recorded",
    "adb_serials": "tests/producer/agents/adb/test_agent.py"
    "::test_no_more_episodes_run_at_once_than_there_are_phones",
    "adb_server": "tests/producer/agents/adb/test_agent.py"
    "::test_a_server_that_does_not_answer_is_named_and_none_is_started",
    "skill_sequence": "tests/producer/training/test_skills.py::test_each_stage_trains_on_the_tasks"
    "_that_need_its_skill",
    "steps_per_skill": "tests/producer/training/test_skills.py::test_the_steps_follow_from_the"
    "_sequence_and_more_of_them_are_refused",
    "replay_share": "tests/producer/training/test_skills.py::test_replay_draws_its_share_from"
    "_earlier_skills_and_none_in_the_first_stage",
    "gae_gamma": "tests/producer/policy/test_value_head.py::test_an_update_with_values_is_verl_s"
    "_on_plain_transformers_and_peft",
    "gae_lambda": "tests/producer/policy/test_value_head.py::test_an_update_with_values_is_verl_s"
    "_on_plain_transformers_and_peft",
    "value_learning_rate": "tests/producer/training/test_gae.py::test_every_setting_of_the_values"
    "_reaches_the_update_and_is_refused_without_gae",
    "baseline": "tests/producer/algorithms/test_baselines.py::test_a_baseline_is_nothing_the_moving"
    "_average_or_the_group_s_mean",
    "baseline_momentum": "tests/producer/algorithms/test_baselines.py::test_the_moving_average"
    "_begins_at_0_and_moves_by_each_step_s_mean",
    "value_clip": "tests/producer/policy/test_value_head.py::test_a_value_counts_only_so_far_from"
    "_the_one_before_the_update",
    "value_coef": "tests/producer/policy/test_value_head.py::test_a_value_coefficient_trains_the"
    "_adapter_on_the_values_too",
    "step_completions": "tests/producer/rollouts/test_step_labels.py::test_a_label_is_the_share_of"
    "_right_completions_of_the_prefix",
    "prime_learning_rate": "tests/producer/policy/test_reward_adapter.py::test_without_a_step_the"
    "_process_rewards_are_0_and_rloo_of_the_outcomes_is_left",
    "prime_beta": "tests/producer/policy/test_reward_adapter.py::test_an_update_is_that_of_a_plain"
    "_implementation_on_transformers_and_peft",
    "prime_process_coef": "tests/producer/policy/test_reward_adapter.py::test_an_update_is_that_of"
    "_a_plain_implementation_on_transformers_and_peft",
    "prime_outcome_coef": "tests/producer/policy/test_reward_adapter.py::test_an_update_is_that_of"
    "_a_plain_implementation_on_transformers_and_peft",
    "process_reward_model": "tests/producer/training/test_token_credit.py::test_a_group_of_one_outc"
    "ome_is_told_apart_by_its_steps",
    "rm_coef": "tests/producer/training/test_token_credit.py::test_a_token_has_its_ste"
    "ps_score_and_the_outcome_each_with_its_weight",
    "verifier_coef": "tests/producer/training/test_token_credit.py::test_a_token_has_its_ste"
    "ps_score_and_the_outcome_each_with_its_weight",
    "core_function": "tests/producer/training/test_token_credit.py::test_the_process_advanta"
    "ge_of_a_group_by_hand",
    "core_algos": "tests/producer/training/test_token_credit.py::test_a_function_of_the_u"
    "sers_file_comes_first_and_its_hash_is_recorded",
    "core_algos_sha256": "tests/producer/training/test_token_credit.py::test_a_function_of_the_u"
    "sers_file_comes_first_and_its_hash_is_recorded",
    "reward_module": "tests/producer/training/test_own_rewards.py::test_a_reward_function"
    "_of_the_users_gives_the_rollouts_reward",
    "reward_module_sha256": "tests/producer/training/test_own_rewards.py::test_a_file_that"
    "_changed_does_not_continue_a_training",
    "reward_function": "tests/producer/training/test_own_rewards.py::test_what_a_module_lacks"
    "_is_said_before_anything_is_recorded",
    "reward_manager": "tests/producer/training/test_own_rewards.py::test_a_manager_gives"
    "_tokens_their_rewards_and_a_core_function_of_the_users_reads_them",
}
"""Field -> the test that shows what it does."""


def render() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(topic) for topic in TOPICS)])


def _section(topic: str) -> str:
    lines = [
        f"## {topic}",
        "",
        "| field | default | what it does | shown by |",
        "|---|---|---|---|",
    ]
    for name, field in TOPICS[topic].model_fields.items():
        note = description_of(field).replace("|", "\\|")
        path, _, test = SHOWN_BY[name].partition("::")
        shown = f"[{test}](../{path})"
        lines.append(f"| {name} | {shown_default(name)} | {note} | {shown} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE.relative_to(ROOT)}\n")
