"""Recomputes a training's numbers from `cua-project tail --json` alone. Imports nothing of ours.

    cua-project tail --json --offset start --training NAME > events.jsonl
    python tests/oracles/recompute.py events.jsonl
    python tests/oracles/recompute.py events.jsonl --loss --blobs FOLDER

The first recomputes group means and advantages, the second one step's loss with plain transformers
and peft.

Prints one JSON object; exit 1 when a number differs by more than its tolerance.
"""

import argparse
import base64
import io
import json
import math
import struct
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

TOLERANCE = 1e-4
"""Of an advantage, which the log has in float64."""
STD_EPSILON = 0.05  # of --advantage-by-std, in the words of its documentation


def read(path: Path) -> list[dict[str, Any]]:
    """Events in the order of the log."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(events, key=lambda event: (event["topic"], event["partition"], event["offset"]))


def numbers(text: str, kind: str) -> list[Any]:
    """base64 of little-endian int32 (`i`) or float32 (`f`)."""
    raw = base64.b64decode(text)
    return list(struct.unpack(f"<{len(raw) // 4}{kind}", raw))


def check_groups(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean, sd and success of finished groups and advantages of samples, from RolloutFinished."""
    config = next(
        event["data"]["config"]
        for event in events
        if event["type"] == "cua.training.created" and event["data"]["kind"] == "rl"
    )
    rewards = {
        event["subject"].partition("/")[2]: event["data"]
        for event in events
        if event["type"] == "cua.rollout.finished"
    }
    worst, num_groups, num_samples = 0.0, 0, 0
    for event in events:
        data = event["data"]
        if event["type"] == "cua.group.finished":
            own = [rewards[rollout]["reward"] for rollout in data["rollout_ids"]]
            mean = sum(own) / len(own)
            sd = math.sqrt(sum((reward - mean) ** 2 for reward in own) / len(own))
            solved = sum(rewards[rollout]["task_success"] for rollout in data["rollout_ids"])
            worst = max(
                worst,
                abs(mean - data["reward_mean"]),
                abs(sd - data["reward_std"]),
                abs(solved - data["success_count"]),
            )
            num_groups += 1
        elif event["type"] == "cua.step.samples_chosen":
            own = [rewards[sample["rollout_id"]]["reward"] for sample in data["samples"]]
            mean = sum(own) / len(own)
            sd = math.sqrt(sum((reward - mean) ** 2 for reward in own) / len(own))
            for sample, reward in zip(data["samples"], own, strict=True):
                expected = (
                    (reward - mean) / (sd + STD_EPSILON)
                    if config["advantage_by_std"]
                    else reward - mean
                )
                worst = max(worst, abs(sample["advantage"] - expected))
                num_samples += 1
    return {
        "groups": num_groups,
        "samples": num_samples,
        "largest_difference": worst,
        "equal": worst < TOLERANCE,
    }


def sequence(turns: list[dict[str, Any]]) -> tuple[list[int], list[int], list[float], list[str]]:
    """One rollout as (tokens, indices of sampled tokens, their log-probs, screenshot refs)."""
    tokens: list[int] = []
    places: list[int] = []
    logprobs: list[float] = []
    refs: list[str] = []
    for turn in turns:
        record = turn["data"]["tokens"]
        assert (record["prompt_extends"] is None) == (not tokens), (
            "a prompt that does not extend the turn before is another sequence"
        )
        tokens += numbers(record["prompt_tokens"], "i")
        completion = numbers(record["completion_tokens"], "i")
        places += range(len(tokens), len(tokens) + len(completion))
        tokens += completion
        logprobs += numbers(record["completion_logprobs"], "f")
        # Version 1 repeats the images of the prompt that is extended.
        is_whole = turn["dataschema"].endswith(":1")
        refs = record["prompt_images"] if is_whole else refs + record["prompt_images"]
    return tokens, places, logprobs, refs


def check_loss(events: list[dict[str, Any]], blobs: Path, number: int) -> dict[str, Any]:
    """Loss of step `number`: -sum of ratio x advantage over the sampled tokens.

    For one substep and the loss importance_sampling.
    """
    import torch
    from peft import PeftModel
    from PIL import Image
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    created = {
        event["data"]["step_id"]: event["data"]
        for event in events
        if event["type"] == "cua.step.created"
    }
    step = next(data for data in created.values() if data["step"] == number)
    stated = next(
        event["data"]
        for event in events
        if event["type"] == "cua.step.finished" and event["data"]["step_id"] == step["step_id"]
    )
    config = next(
        event["data"]["config"]
        for event in events
        if event["type"] == "cua.training.created" and event["data"]["kind"] == "rl"
    )
    adapter = next(
        event["data"]["path"]
        for event in events
        if event["type"] == "cua.checkpoint.saved" and event["data"]["step"] == number - 1
    )
    turns = defaultdict(list)
    for event in events:
        if event["type"] == "cua.rollout.turn_taken":
            turns[event["subject"].partition("/")[2]].append(event)
    samples = [
        sample
        for event in events
        if event["type"] == "cua.step.samples_chosen"
        and event["data"]["step_id"] == step["step_id"]
        for sample in event["data"]["samples"]
        if sample["used"]
    ]
    processor = AutoProcessor.from_pretrained(step["model_path"])
    base = Qwen3VLForConditionalGeneration.from_pretrained(step["model_path"])
    network = PeftModel.from_pretrained(base, adapter).eval()
    loss, drift, num_tokens, weight, largest = 0.0, 0.0, 0, 0.0, 0.0
    for sample in samples:
        tokens, places, old, refs = sequence(turns[sample["rollout_id"]])
        images = [Image.open(io.BytesIO(blob(blobs, ref))) for ref in refs]
        pixels = processor.image_processor(images=images, return_tensors="pt")
        input_ids = torch.tensor([tokens])
        is_image = (input_ids == base.config.image_token_id).int()
        with torch.no_grad():
            logits = network(input_ids=input_ids, mm_token_type_ids=is_image, **pixels).logits[0]
        logprobs = torch.log_softmax(logits / config["temperature"], dim=-1)
        for place, before in zip(places, old, strict=True):
            now = float(logprobs[place - 1, tokens[place]])
            loss -= math.exp(now - before) * sample["advantage"]
            drift = max(drift, abs(now - before))
            num_tokens += 1
            weight += abs(sample["advantage"])
            largest = max(largest, abs(now))
    # Two float32 passes differ by about sqrt(terms) eps of a log-prob's size (four standard
    # deviations each), and the loss sums such.
    terms = sum(
        module.in_features for module in network.modules() if isinstance(module, torch.nn.Linear)
    )
    tolerance = weight * 4 * math.sqrt(terms) * torch.finfo(torch.float32).eps * largest
    return {
        "step": number,
        "samples": len(samples),
        "tokens": num_tokens,
        "loss_recomputed": loss,
        "loss_in_log": stated["loss"],
        "largest_difference_of_logprobs": drift,
        "tolerance": tolerance,
        "equal": abs(loss - stated["loss"]) < tolerance,
    }


def blob(folder: Path, ref: str) -> bytes:
    """A screenshot: blob:sha256:<hex> lies in sha256/<first two>/<rest>."""
    digest = ref.rpartition(":")[2]
    return (folder / "sha256" / digest[:2] / digest[2:]).read_bytes()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("events", type=Path)
    parser.add_argument("--loss", action="store_true")
    parser.add_argument("--blobs", type=Path)
    parser.add_argument("--step", type=int, default=2)
    arguments = parser.parse_args()
    events = read(arguments.events)
    result = (
        check_loss(events, arguments.blobs, arguments.step)
        if arguments.loss
        else check_groups(events)
    )
    sys.stdout.write(json.dumps(result) + "\n")
    return 0 if result["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
