"""Samples, trains and saves once by Tinker, where torch cannot be imported: `URL FOLDER OUTPUT`."""

import sys
from pathlib import Path

ABSENT = ("torch", "torchvision", "peft", "safetensors")


def main(url: str, folder: str, output: Path) -> None:
    import io
    from uuid import UUID

    from PIL import Image

    from producer.algorithms.settings import UpdateSettings
    from producer.environments.environment import Screenshot
    from producer.policy.compute_settings import PolicySettings
    from producer.policy.learner import RolloutOutcome, Trajectory
    from producer.policy.policy import SampleRequest, Turn
    from producer.policy.remote_checkpoint import read_remote
    from producer.policy.tinker_policy.open import open_tinker
    from producer.policy.tinker_policy.service import TinkerService
    from producer.task import Task
    from tests.support.tinker_key import KEY

    settings = PolicySettings(folder, 2, renderer_name="compact", screen_px=(90, 160))
    policy = open_tinker(TinkerService(KEY, url), settings, max_tokens=4)
    buffer = io.BytesIO()
    Image.new("RGB", (90, 160), "red").save(buffer, "PNG")
    shot = Screenshot(buffer.getvalue(), 90, 160)
    task = Task("task", "task", "Turn on Wi-Fi", None, None, 5, None, None)
    request = SampleRequest(UUID(int=1), task, (), shot, temperature=1.0, max_tokens=4, seed=1)
    (completion,) = policy.sample([request])
    assert completion.tokens is not None, completion.failure
    outcome = RolloutOutcome(0, 1.0, is_right=True)
    one = Trajectory(task, (Turn(shot, completion),), 1.0, outcome)
    result = policy.update([one], UpdateSettings(seed=0))
    policy.save_state(output)
    saved = read_remote(output)
    assert saved is not None
    print(result.num_tokens, saved.weights)  # noqa: T201  # what the test reads


if __name__ == "__main__":
    for absent in ABSENT:
        sys.modules[absent] = None  # type: ignore[assignment]  # as if it were not installed
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
