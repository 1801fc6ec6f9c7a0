"""Every supervised stage, tiny, in a process of its own: what each came to, as JSON.

python -m tests.support.supervised_bits FOLDER
"""

import json
import sys
import threading
from hashlib import sha256
from pathlib import Path

from producer.agents.dbbench.policy.recipe import TextRecipe
from producer.fine_tuning.run import fine_tune
from producer.fine_tuning.sql_demo import SqlDemo, SqlDemoRecipe
from schemas.installation import read_installation
from tests.support.warmed_policies import text_policy

DEMO = SqlDemoRecipe(
    templates=("count",),
    train_databases=2,
    dev_databases=2,
    sft_epochs=4,
    labelled_questions=4,
    completions=2,
    step_completions=2,
    prm_epochs=2,
    rl_steps=1,
    groups_per_batch=2,
    group_size=2,
    lora_rank=4,
    max_tokens=8,
    n=2,
    limit=4,
)
"""The network is as wide as the real one: products of smaller ones have one thread anyway."""
WARM_UP = TextRecipe(num_entries=22, num_steps=2, batch_size=4)
PAIRS = [
    {"prompt": f"Show {at}", "chosen": "SELECT title FROM book", "rejected": "SELECT id FROM book"}
    for at in range(8)
]


def main(folder: Path) -> None:
    """Print stage -> figures without times, and weights file -> its sha256."""
    installation = read_installation({"CUA_HOME": str(folder)})
    demo = SqlDemo(0, installation, DEMO, threading.Event())
    stages = demo.run()
    for figures in stages.values():
        del figures["seconds"], figures["cpu_seconds"]
        figures.pop("output", None)
    warmed = text_policy(folder / "policies", WARM_UP)
    pairs = folder / "pairs.json"
    pairs.write_text(json.dumps(PAIRS), encoding="utf-8")
    pairwise = fine_tune(
        "pairwise_reward",
        {
            "training_name": "pairs",
            "model_name": str(demo.folder / "base"),
            "data_path": [str(pairs)],
            "output_dir": folder / "pairwise",
            "batch_size": 4,
            "device": "cpu",
        },
        installation=installation,
    )
    stages["pairwise"] = {"loss": pairwise.train_loss_last}
    places = {
        **{name: demo.folder / name for name in ("base", "sft", "prm")},
        **{name: demo.folder / name for name in ("grpo-outcome", "grpo-process")},
        "warm-up": warmed,
        "pairwise": folder / "pairwise",
    }
    weights = {
        name: sha256(next(place.glob("*.safetensors")).read_bytes()).hexdigest()
        for name, place in places.items()
    }
    labels = sha256((demo.folder / "steps.json").read_bytes()).hexdigest()
    print(json.dumps({"stages": stages, "weights": weights, "labels": labels}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
