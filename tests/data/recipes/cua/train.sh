# The command of the recipe's documents; the policy is one that needs no GPU and no key.
cua-train run \
    --model_name "oracle" \
    --tasks '{"source_type": "demo_training", "category": "settings", "difficulty": "easy", "limit": 2, "seed": 42}' \
    --eval_tasks '{"source_type": "demo_eval", "limit": 2}' \
    --group_size 2 \
    --groups_per_batch 2 \
    --learning_rate 1e-5 \
    --compute_post_kl False \
    --renderer_name qwen3_vl \
    --eval_every 10 \
    --save_every 10 \
    --num_steps 1 \
    --eval_episodes 2 \
    --log_path LOG_PATH \
    --no-monitor
