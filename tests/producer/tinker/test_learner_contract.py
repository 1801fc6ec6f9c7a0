"""The rules of every Learner, kept by the one at Tinker; a checkpoint is named by its path."""

from collections.abc import Callable
from pathlib import Path

import pytest

from producer.policy.learner import Learner
from producer.policy.remote_checkpoint import read_remote
from tests.producer.policy.test_learner_contract import (
    test_a_saved_state_restores_version_and_behaviour,
    test_every_update_raises_the_version_by_one_an_empty_one_too,
    test_forgetting_an_unknown_episode_changes_nothing,
    test_no_requests_give_no_completions,
    test_the_same_request_and_seed_give_the_same_completion,
    test_there_is_one_completion_per_request_in_order,
)
from tests.producer.tinker.opened import through_sdk

__all__ = [
    "test_a_saved_state_restores_version_and_behaviour",
    "test_every_update_raises_the_version_by_one_an_empty_one_too",
    "test_forgetting_an_unknown_episode_changes_nothing",
    "test_no_requests_give_no_completions",
    "test_the_same_request_and_seed_give_the_same_completion",
    "test_there_is_one_completion_per_request_in_order",
]

pytestmark = [
    pytest.mark.usefixtures("sdk_connections"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.fixture
def open_learner(small_policy: Path, stand_in: str) -> Callable[[], Learner]:
    """Opens the learner anew, as another process would."""
    return lambda: through_sdk(small_policy, stand_in)


def test_a_checkpoint_names_weights_to_train_and_to_sample(
    small_policy: Path, stand_in: str, tmp_path: Path
) -> None:
    learner = through_sdk(small_policy, stand_in)
    digest = learner.save_checkpoint(tmp_path / "step-000000")
    assert len(bytes.fromhex(digest)) == 32
    saved = read_remote(tmp_path / "step-000000")
    assert saved is not None
    assert saved.sampler_weights == saved.weights.replace("/weights/", "/sampler_weights/")
    # The state after the same step is the checkpoint.
    learner.save_state(tmp_path)
    assert read_remote(tmp_path) == saved
