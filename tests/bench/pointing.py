"""How well a policy points at what it is told the name of, on home screens of phones that nothing was trained on.

    python -m tests.bench.pointing FOLDER [--phones 100]

What success rests on: an episode's other tokens say little about it, and the mean loss hides it (docs/decisions/policy.md).
"""

import argparse
import json
import random
import sys
from pathlib import Path

import torch

from producer.demo_policy.demonstrations import Demonstration, SpokenTurn
from producer.demo_policy.examples import encode_demonstrations, encode_episodes
from producer.demo_policy.grounding import encode_screens
from producer.demo_policy.imitation import Pointer, imitated_logits
from producer.environments.android_sim import AndroidSim
from producer.policy.torch_policy.network import load_base
from producer.seeds import derived_seed
from producer.tasks.demo import demo_tasks

HALF_WIDTH, HALF_HEIGHT = 12, 6
"""Of an icon's cell (90 x 80 px at least), in hundredths of the screen."""


def home_screen(phone: int) -> Demonstration:
    """The launcher of a phone, with its icons as what can be pointed at."""
    task = demo_tasks()[0]
    sim = AndroidSim()
    sim.start(task, derived_seed("pointing-bench", phone))
    icons = tuple(element for element in sim.visible_elements() if element.name.endswith("_icon"))
    demonstration = Demonstration(task, (sim.picture(),), (SpokenTurn(icons, "", is_noise=True),))
    sim.close()
    return demonstration


def measure(folder: Path, num_phones: int) -> dict[str, float]:
    """Shares of icons whose x and y come out within the icon's cell."""
    network, processor = load_base(str(folder))
    examples = encode_episodes(
        encode_demonstrations(
            (home_screen(phone) for phone in range(num_phones)), processor.image_processor
        ),
        processor,
        processor.image_token_id,
    )
    pointer, rng = Pointer(processor, processor.image_token_id), random.Random(0)
    digits = {
        token: int(piece)
        for piece, token in processor.tokenizer.get_vocab().items()
        if piece.isdecimal()
    }
    right_x = right_y = right = total = 0
    for example in examples:
        with torch.no_grad():
            features = encode_screens(
                network.model.visual, example.patches_INC, example.grid.rows, example.grid.columns
            )
            logits, targets = imitated_logits(network, [pointer.row(example, features, rng)])
        said = [digits.get(int(token), 1000) for token in logits.argmax(-1)]
        off = [
            abs(one - digits[int(token)])
            for one, token in zip(said, targets, strict=True)
            if int(token) in digits
        ]
        for x, y in zip(
            (one <= HALF_WIDTH for one in off[::2]),
            (one <= HALF_HEIGHT for one in off[1::2]),
            strict=True,
        ):
            right_x, right_y, right, total = right_x + x, right_y + y, right + (x and y), total + 1
    return {"icons": total, "x": right_x / total, "y": right_y / total, "both": right / total}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of a policy, as below CUA_HOME/policies")
    parser.add_argument("--phones", type=int, default=100)
    arguments = parser.parse_args()
    sys.stdout.write(json.dumps(measure(arguments.folder, arguments.phones)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
