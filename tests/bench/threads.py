"""CPU-seconds of preprocessing and encoding screens, with one torch thread and with two.

    python -m tests.bench.threads FOLDER [--phones 100]

For a policy this small a second thread costs more than it brings.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

from producer.agents.android.policy.alignment import encode_patches
from producer.agents.android.policy.examples import encode_demonstrations
from producer.policy.torch_policy.loading import load_base
from tests.bench.grounding import home_screen


def main() -> int:
    """Print one JSON object per number of threads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a policy, such as CUA_HOME/policies/demo-...")
    parser.add_argument("--phones", type=int, default=100)
    arguments = parser.parse_args()
    network, processor = load_base(str(arguments.folder))
    screens = [home_screen(phone) for phone in range(arguments.phones)]
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        episodes = encode_demonstrations(screens, processor.image_processor)
        preprocessed_s = time.process_time()
        with torch.no_grad():
            for episode in episodes:
                encode_patches(network.model.visual, episode.patches_INC, episode.grid)
        ended_s = time.process_time()
        report = {
            "threads": num_threads,
            "screens": len(screens),
            "preprocessing_cpu_s": round(preprocessed_s - cpu_s, 3),
            "encoding_cpu_s": round(ended_s - preprocessed_s, 3),
            "seconds": round(time.perf_counter() - wall_s, 3),
        }
        sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
