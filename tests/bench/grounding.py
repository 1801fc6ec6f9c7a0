"""Grounding accuracy: how often a policy clicks the icon it is named, on unseen home screens.

    python -m tests.bench.grounding FOLDER [--phones 100]

Success depends on it, and the mean loss hides it, since most tokens of an episode are not
coordinates (docs/measurements/demo-policy.md).
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.policy.alignment import encode_patches
from producer.agents.android.policy.demonstrations import DemonstratedTurn, Demonstration
from producer.agents.android.policy.examples import build_examples, encode_demonstrations
from producer.agents.android.policy.imitation import GroundingSampler, target_logits
from producer.agents.android.sim.device.sim import AndroidSim
from producer.policy.torch_policy.loading import load_base
from producer.seeds import derived_seed

HALF_WIDTH, HALF_HEIGHT = 12, 6
"""Of an icon's cell (at least 90 x 80 px), in hundredths of the screen."""
NOT_A_NUMBER = 1000


class Hit(NamedTuple):
    """Whether an icon's predicted x and y are inside its cell."""

    x: bool
    y: bool


def home_screen(phone: int) -> Demonstration:
    """The launcher of a phone, with its icons as grounding targets."""
    task = demo_tasks()[0]
    sim = AndroidSim()
    sim.start(task, derived_seed("pointing-bench", phone))
    icons = tuple(element for element in sim.visible_elements() if element.name.endswith("_icon"))
    turn = DemonstratedTurn(icons, "", is_noise=True)
    demonstration = Demonstration(task, (sim.picture(),), (turn,))
    sim.close()
    return demonstration


def measure(folder: Path, num_phones: int) -> dict[str, float]:
    """Shares of icons whose x, y and both are inside the icon's cell."""
    network, processor = load_base(str(folder))
    image_token = processor.image_token_id
    examples = build_examples(
        encode_demonstrations(
            (home_screen(phone) for phone in range(num_phones)), processor.image_processor
        ),
        processor,
        image_token,
    )
    sampler, rng = GroundingSampler(processor, image_token), random.Random(0)
    number_of = {
        token: int(word)
        for word, token in processor.tokenizer.get_vocab().items()
        if word.isdecimal()
    }
    hits: list[Hit] = []
    for example in examples:
        with torch.no_grad():
            features_IND = encode_patches(network.model.visual, example.patches_INC, example.grid)
            sequence = sampler.sample(example, features_IND, rng)
            logits_MV, targets_M = target_logits(network, [sequence])
        hits += _hits(logits_MV.argmax(-1), targets_M, number_of)
    return {
        "icons": len(hits),
        "x": sum(hit.x for hit in hits) / len(hits),
        "y": sum(hit.y for hit in hits) / len(hits),
        "both": sum(hit.x and hit.y for hit in hits) / len(hits),
    }


def _hits(predicted_M: Tensor, targets_M: Tensor, number_of: dict[int, int]) -> Sequence[Hit]:
    errors = [
        abs(number_of.get(int(predicted), NOT_A_NUMBER) - number_of[int(target)])
        for predicted, target in zip(predicted_M, targets_M, strict=True)
        if int(target) in number_of
    ]
    return [
        Hit(x <= HALF_WIDTH, y <= HALF_HEIGHT)
        for x, y in zip(errors[::2], errors[1::2], strict=True)
    ]


def main() -> int:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a policy, such as CUA_HOME/policies/demo-...")
    parser.add_argument("--phones", type=int, default=100)
    arguments = parser.parse_args()
    sys.stdout.write(json.dumps(measure(arguments.folder, arguments.phones)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
