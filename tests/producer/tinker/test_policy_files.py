"""Prompts made from a policy's files alone are those of its processor in process."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from producer.environments.environment import Screenshot
from producer.errors import NotFoundError, UsageError
from producer.policy.tinker_policy.policy_files import PolicyFiles, read_policy_files
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.render import Grid, Renderer
from producer.policy.torch_policy.screen_encoder import num_screen_tokens
from tests.support.checkpoints import ARCHITECTURES, VISUAL, change_json, write_checkpoint

SIZES = ((90, 160), (360, 640), (1092, 2408), (2408, 1092), (33, 31))
SYSTEM = "You act on a phone."


def renderer_of(files: PolicyFiles) -> Renderer:
    processor = files.processor if files.sees_screens else files.tokenizer
    return Renderer(processor, files.image_token, SYSTEM)


@pytest.mark.parametrize("model_type", [name for name in ARCHITECTURES if name != "llama"])
def test_the_files_give_the_prompts_of_the_network(tmp_path: Path, model_type: str) -> None:
    write_checkpoint(tmp_path, model_type)
    network, files = load_network(str(tmp_path), 2, 0), read_policy_files(str(tmp_path))
    assert files.model_type == network.base.config.model_type
    assert files.sees_screens is (model_type in VISUAL)
    assert set(files.end_tokens) == network.end_tokens
    assert (files.image_token, files.max_context_tokens) == (
        network.image_token,
        network.max_context_tokens,
    )
    ours = Renderer(network.processor, network.image_token, SYSTEM)
    theirs = renderer_of(files)
    grid = Grid(1, 7) if files.sees_screens else None
    text = None if files.sees_screens else "rows: 3"
    assert theirs.first_turn("Turn on Wi-Fi", grid) == ours.first_turn("Turn on Wi-Fi", grid)
    for stopped in (True, False):
        assert theirs.next_turn(grid, stopped=stopped, text=text) == ours.next_turn(
            grid, stopped=stopped, text=text
        )
    for size in SIZES if files.sees_screens else ():
        expected = num_screen_tokens(network.processor.image_processor, size)
        assert files.num_image_tokens(Screenshot(b"", *size)) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config.json": {"model_type": "llama"}}, "of the family 'llama', whose prompts are not"),
        ({"config.json": {"image_token_id": None}}, "its config.json has no image_token_id"),
        ({"preprocessor_config.json": {"size": None}}, "its image processor's settings lack size"),
    ],
)
def test_files_that_are_not_enough_are_refused(
    tmp_path: Path, changes: dict[str, dict[str, object]], message: str
) -> None:
    write_checkpoint(tmp_path, "qwen3_vl")
    for name, change in changes.items():
        change_json(tmp_path / name, **change)
    with pytest.raises(UsageError, match=message):
        read_policy_files(str(tmp_path))


def test_a_folder_without_a_policy_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is not a policy"):
        read_policy_files(str(tmp_path))
