"""The warm-up of the default policy: its data, its losses, and one policy per recipe."""

import hashlib
import math
import os
import random
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.policy.alignment import alignment_loss
from producer.agents.android.policy.build import PolicySize, build_policy, image_processor
from producer.agents.android.policy.demonstrations import (
    DemonstratedTurn,
    Demonstration,
    demonstrate,
)
from producer.agents.android.policy.examples import (
    EPISODES_PER_CHUNK,
    NO_LABEL,
    build_examples,
    encode_demonstrations,
)
from producer.agents.android.policy.imitation import GroundingSampler
from producer.agents.android.policy.recipe import ImitationPhase, WarmUpRecipe, learning_rate_factor
from producer.agents.android.policy.vocabulary import element_name
from producer.agents.android.sim.screens.widget import Element
from producer.errors import StopRequestedError
from producer.policy.torch_policy.loading import load_base
from tests.support.rounding import rounding_of_sum
from tests.support.warmed_policies import phone_policy

TASKS = {task.task_id: task for task in demo_tasks()}
OPEN_SETTINGS = TASKS["train_01_open_settings"]
TINY = WarmUpRecipe(
    task_ids=("train_01_open_settings",),
    num_episodes=4,
    alignment_steps=2,
    imitation_phases=(
        ImitationPhase(num_steps=1, episodes_per_batch=0, grounding_per_batch=2),
        ImitationPhase(num_steps=1, episodes_per_batch=2, grounding_per_batch=1),
    ),
)
MAKE_TINY = """
import sys, torch
from pathlib import Path
from tests.producer.agents.android.policy.test_warm_up import TINY
from tests.support.warmed_policies import phone_policy
torch.set_num_threads(1)
print(phone_policy(Path(sys.argv[1]), TINY))
"""


def test_renaming_a_field_does_not_throw_away_warm_policies() -> None:
    """The folder's name hashes the recipe, and users keep the folder of the default recipe.

    If this fails, a field was renamed without an entry in `_HASHED_NAMES`. Only another policy, by
    a changed default or a raised VERSION, may change the name.
    """
    assert WarmUpRecipe().policy_name == "demo-2ebedbbb2a61"


def test_another_recipe_is_another_policy() -> None:
    recipe = WarmUpRecipe()
    phases = (replace(recipe.imitation_phases[0], grounding_per_batch=23),)
    names = {
        recipe.policy_name,
        replace(recipe, muon_learning_rate=2e-2).policy_name,
        replace(recipe, imitation_phases=phases).policy_name,
    }
    assert len(names) == 3


@pytest.mark.slow
def test_a_recipe_makes_the_same_policy_in_every_process(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONHASHSEED": "1", "TZ": "UTC-1", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", MAKE_TINY, str(tmp_path / "other")],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        here = phone_policy(tmp_path / "here", TINY)
    finally:
        torch.set_num_threads(num_threads)
    made = [
        (
            folder.name,
            {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()},
        )
        for folder in (here, Path(done.stdout.strip()))
    ]
    assert made[0] == made[1]
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= made[0][1].keys()


@pytest.mark.slow
def test_an_aborted_warm_up_leaves_no_policy_and_the_next_starts_over(tmp_path: Path) -> None:
    def stop_at_the_second_step(policy: str, done: int, total: int, loss: float | None) -> None:  # noqa: ARG001  # the interface's
        if done == 2:
            raise StopRequestedError

    with pytest.raises(StopRequestedError):
        phone_policy(tmp_path, TINY, stop_at_the_second_step)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
    progress: list[tuple[int, int, bool]] = []
    folder = phone_policy(
        tmp_path,
        TINY,
        lambda _policy, done, total, loss: progress.append((done, total, loss is None)),
    )
    assert progress == [(0, 4, True)] + [(done, 4, False) for done in (1, 2, 3, 4)]
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [folder]
    again = phone_policy(tmp_path, TINY, lambda *_progress: pytest.fail("it was made again"))
    assert again == folder


def test_only_a_chunk_of_episodes_is_held_as_images() -> None:
    images: list[weakref.ref[Image.Image]] = []
    most = 0

    def demonstrations() -> Iterator[Demonstration]:
        nonlocal most
        for seed in range(3 * EPISODES_PER_CHUNK):
            one = demonstrate(OPEN_SETTINGS, seed, noise=0.0, max_turns=2)
            images.extend(weakref.ref(screen) for screen in one.screens)
            most = max(most, sum(screen() is not None for screen in images))
            yield one

    episodes = encode_demonstrations(demonstrations(), image_processor(PolicySize()))
    assert len(episodes) == 3 * EPISODES_PER_CHUNK
    assert 2 * EPISODES_PER_CHUNK <= most <= 2 * 2 * EPISODES_PER_CHUNK


def test_a_demonstration_is_deterministic_and_names_what_it_clicks() -> None:
    first, second = (demonstrate(OPEN_SETTINGS, 3, noise=0.3, max_turns=6) for _ in range(2))
    assert first.turns == second.turns
    assert [screen.tobytes() for screen in first.screens] == [
        screen.tobytes() for screen in second.screens
    ]
    clicks = [
        turn.text
        for turn in demonstrate(OPEN_SETTINGS, 3, noise=0.0, max_turns=6).turns
        if turn.text.startswith("click(")
    ]
    assert clicks
    assert all(text.startswith("click(settings ") for text in clicks)


@pytest.mark.parametrize(
    ("name", "label", "expected"),
    [
        ("settings_icon", "Settings", "settings"),
        ("wifi_switch", "", "wifi"),
        ("dialer_icon", "", "phone"),
        ("row", "Screen time-out after 30 s", "screen time-out after"),
        ("icon", "", ""),
    ],
)
def test_an_element_s_name_has_at_most_three_words_without_numbers_and_kinds(
    name: str, label: str, expected: str
) -> None:
    assert element_name(Element(name, label, (0, 0, 10, 10), None)) == expected


def test_a_patch_is_labelled_with_the_element_that_covers_most_of_it_and_its_center(
    tmp_path: Path,
) -> None:
    build_policy(tmp_path, ["wi-fi on clock"], seed=0)
    _, processor = load_base(str(tmp_path))
    # 360 x 640 becomes 96 x 160 in patches of 16: 6 columns of 60 px, 10 rows of 64 px. The switch
    # covers the patch of row 1, column 2 and a tenth of column 3's, which is too little; the clock
    # covers less of row 1, column 2 than the switch, and half of row 0, column 2.
    switch = Element("wifi_switch", "Wi-Fi", (120, 64, 186, 128), "on")
    clock = Element("clock_icon", "Clock", (120, 32, 180, 96), None)
    turn = DemonstratedTurn((switch, clock), "click(wi-fi 42,15)", is_noise=False)
    demonstration = Demonstration(OPEN_SETTINGS, (Image.new("RGB", (360, 640)),), (turn,))
    (example,) = build_examples(
        encode_demonstrations([demonstration], image_processor(PolicySize())),
        processor,
        processor.image_token_id,
    )
    vocabulary = processor.tokenizer.get_vocab()
    assert (example.grid.rows, example.grid.columns) == (10, 6)
    names, centers = example.names_INK[0], example.centers_IN2[0]
    labels = {patch: names[patch].tolist() for patch in range(60) if names[patch, 0] != NO_LABEL}
    padding = [NO_LABEL] * 3
    assert labels == {
        2: [vocabulary["clock"], *padding, NO_LABEL],
        8: [vocabulary["wi-fi"], vocabulary["on"], *padding],
    }
    # Centers in hundredths: x 153 of 360 -> 42, y 96 of 640 -> 15; x 150 -> 41, y 64 -> 10.
    assert centers[8].tolist() == [42, 15]
    assert centers[2].tolist() == [41, 10]
    targets = [
        token
        for token, is_target in zip(example.tokens, example.loss_mask, strict=True)
        if is_target
    ]
    assert processor.tokenizer.convert_ids_to_tokens(targets) == [
        "<|unk|>",
        "(",
        "wi-fi",
        "42",
        ",",
        "15",
        ")",
        "<|im_end|>",
    ]


def test_a_grounding_sequence_lists_element_names_and_clicks_each_in_order(tmp_path: Path) -> None:
    build_policy(tmp_path, ["wi-fi find clock click on"], seed=0)
    _, processor = load_base(str(tmp_path))
    elements = (
        Element("wifi_switch", "Wi-Fi", (120, 64, 186, 128), "on"),
        Element("clock_icon", "Clock", (120, 32, 180, 96), None),
        Element("row", "", (0, 300, 360, 364), None),  # without a name
        Element("tab", "Clock 2", (0, 400, 60, 464), None),  # with another's name
    )
    turn = DemonstratedTurn(elements[:3], "", is_noise=True)
    ambiguous = DemonstratedTurn(elements, "", is_noise=True)
    shown = Demonstration(OPEN_SETTINGS, (Image.new("RGB", (360, 640)),), (turn,))
    unclear = Demonstration(OPEN_SETTINGS, (Image.new("RGB", (360, 640)),), (ambiguous,))
    examples = build_examples(
        encode_demonstrations([shown, unclear], image_processor(PolicySize())),
        processor,
        processor.image_token_id,
    )
    assert [len(example.grounding_targets[0]) for example in examples] == [2, 1]
    sequence = GroundingSampler(processor, processor.image_token_id).sample(
        examples[0], torch.zeros(1, 60, 128), random.Random(0)
    )
    words = processor.tokenizer.convert_ids_to_tokens(sequence.tokens)
    begin = words.index("click")
    clicks = {
        "clock": ["click", "(", "clock", "41", ",", "clock", "10", ")"],
        "wi-fi": ["click", "(", "wi-fi", "42", ",", "wi-fi", "15", ")"],
    }
    order = [word for word in words[words.index("find") + 1 : begin] if word in clicks]
    assert sorted(order) == sorted(clicks)
    assert words[begin:] == clicks[order[0]] + clicks[order[1]]
    assert list(sequence.loss_mask) == [False] * begin + ([False] * 2 + [True] * 6) * 2


def test_alignment_loss_scores_the_name_s_words_and_each_half_of_the_feature_for_a_coordinate() -> (
    None
):
    embeddings = torch.eye(4)  # tokens 0-3; numbers 0 and 1 are tokens 2 and 3
    coordinates = torch.tensor([2, 3])
    features = torch.tensor([[1.0, 0.0, 0.0, 2.0], [9.0, 9.0, 9.0, 9.0], [1.0, 0.0, 0.0, 2.0]])
    names = torch.tensor([[0, 1], [NO_LABEL, NO_LABEL], [0, 1]])
    centers = torch.tensor([[0, 1], [NO_LABEL, NO_LABEL], [0, 1]])
    normaliser = math.log(math.e + 1 + 1 + math.e**2)
    name_loss = ((normaliser - 1) + (normaliser - 0)) / 2
    # x: the feature's first half, (1, 0), with the numbers' first halves, (0, 0) both: even odds.
    # y: (0, 2) with (1, 0) and (0, 1).
    y_loss = math.log(1 + math.e**2) - 2
    expected = 2 * (
        name_loss + 0.5 * math.log(2) + 0.5 * y_loss
    )  # two patches with the same label; the other has none
    loss = alignment_loss(
        features, names, centers, embeddings_VD=embeddings, coordinates=coordinates
    )
    assert loss.item() == pytest.approx(
        expected, rel=0, abs=rounding_of_sum([math.e, 1.0, 1.0, math.e**2] * 2)
    )


def test_the_learning_rate_rises_over_twenty_steps_and_falls_to_a_twentieth() -> None:
    assert learning_rate_factor(0, 10**9) == pytest.approx(1 / 20)
    assert learning_rate_factor(19, 10**9) == pytest.approx(1)
    assert learning_rate_factor(50, 100) == pytest.approx(0.5 * 0.95 + 0.05)
    assert learning_rate_factor(100, 100) == pytest.approx(0.05)
