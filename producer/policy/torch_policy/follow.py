"""What torchrun's ranks other than 0 do: repeat what rank 0 sends."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from producer.policy.compute_settings import PolicySettings
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.open import open_in_process
from producer.policy.torch_policy.ranks import Ranks, State, Update


def follow() -> None:
    """Compute this rank's share of every update until rank 0 ends."""
    ranks = Ranks()
    policy: InProcessPolicy | None = None
    while (message := ranks.receive()) is not None:
        match message:
            case PolicySettings():
                policy = open_in_process(message)
            case State(files=files) if policy is not None:
                _restore(policy, files)
            case Update(trajectories=trajectories, settings=settings) if policy is not None:
                policy.update(trajectories, settings)


def _restore(policy: InProcessPolicy, files: Mapping[str, bytes]) -> None:
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        policy.load_state(Path(folder))
