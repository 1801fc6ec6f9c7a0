"""The scripted oracle as a learner: its version counts updates and survives a restart."""

from pathlib import Path

from producer.policy.learner import UpdateSettings
from producer.policy.oracle import NoisyOracle

SETTINGS = UpdateSettings(
    loss="ppo", learning_rate=1.0, num_substeps=1, temperature=1.0, kl_penalty_coef=0.0, seed=0
)


def test_a_restored_oracle_has_the_saved_version(tmp_path: Path) -> None:
    oracle = NoisyOracle(noise=0.0, seed=0)
    assert oracle.update([], SETTINGS).num_tokens == 0
    oracle.save_state(tmp_path)
    restored = NoisyOracle(noise=0.0, seed=0)
    restored.load_state(tmp_path)
    assert (oracle.version, restored.version) == (1, 1)
