"""What a second thread costs a policy this small.

CPU-seconds of preprocessing and encoding screens, with one thread and with two.

python -m tests.bench.threads FOLDER [--phones 100]
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

from producer.demo_policy.examples import encode_demonstrations
from producer.demo_policy.grounding import encode_screens
from producer.policy.torch_policy.network import load_base
from tests.bench.pointing import home_screen


def main() -> int:
    """The command line: a JSON object per number of threads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of a policy, as below CUA_HOME/policies")
    parser.add_argument("--phones", type=int, default=100)
    arguments = parser.parse_args()
    network, processor = load_base(str(arguments.folder))
    screens = [home_screen(phone) for phone in range(arguments.phones)]
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        seen = encode_demonstrations(screens, processor.image_processor)
        seen_s = time.process_time()
        with torch.no_grad():
            for one in seen:
                encode_screens(
                    network.model.visual, one.patches_INC, one.grid.rows, one.grid.columns
                )
        ended_s = time.process_time()
        report = {
            "threads": num_threads,
            "screens": len(screens),
            "preprocessing_cpu_s": round(seen_s - cpu_s, 3),
            "encoding_cpu_s": round(ended_s - seen_s, 3),
            "seconds": round(time.perf_counter() - wall_s, 3),
        }
        sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
