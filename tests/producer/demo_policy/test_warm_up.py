"""The default policy's making.

What it imitates, what it is told a screen shows, and that a recipe makes one policy.
"""

import hashlib
import math
import os
import random
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image

from producer.demo_policy.build import PolicySize, build_policy, image_processor
from producer.demo_policy.demonstrations import Demonstration, SpokenTurn, demonstrate, spoken_name
from producer.demo_policy.examples import CHUNK, NOTHING, encode_demonstrations, encode_episodes
from producer.demo_policy.grounding import alignment_loss
from producer.demo_policy.imitation import Phase, Pointer
from producer.demo_policy.learning_rate import share_of_rate
from producer.demo_policy.warm_up import WarmUpRecipe, ensure_demo_policy
from producer.environments.android_sim.screens.widget import Element
from producer.errors import StopRequestedError
from producer.policy.torch_policy.network import load_base
from producer.tasks.demo import demo_tasks
from tests.support.rounding import rounding_of_sum

TASKS = {task.task_id: task for task in demo_tasks()}
OPEN_SETTINGS = TASKS["train_01_open_settings"]
TINY = WarmUpRecipe(
    task_ids=("train_01_open_settings",),
    num_episodes=4,
    seeing_steps=2,
    phases=(Phase(1, 0, 2), Phase(1, 2, 1)),
)
MAKE_TINY = """
import sys, torch
from pathlib import Path
from producer.demo_policy.warm_up import ensure_demo_policy
from tests.producer.demo_policy.test_warm_up import TINY
torch.set_num_threads(1)
print(ensure_demo_policy(Path(sys.argv[1]), lambda *said: None, TINY))
"""


@pytest.mark.slow
def test_a_recipe_makes_the_same_policy_in_every_process(tmp_path: Path) -> None:
    made = []
    for number in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": number, "TZ": f"UTC-{number}"}
        done = subprocess.run(
            [sys.executable, "-c", MAKE_TINY, str(tmp_path / number)],
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        folder = Path(done.stdout.strip())
        files = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
        }
        made.append((folder.name, files))
    assert made[0] == made[1]
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= made[0][1].keys()


@pytest.mark.slow
def test_a_making_that_is_stopped_leaves_no_policy_and_the_next_begins_anew(tmp_path: Path) -> None:
    def stop_at_the_second_step(policy: str, done: int, total: int, loss: float | None) -> None:  # noqa: ARG001  # the interface's
        if done == 2:
            raise StopRequestedError

    with pytest.raises(StopRequestedError):
        ensure_demo_policy(tmp_path, stop_at_the_second_step, TINY)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
    left_by_a_kill = (
        next(tmp_path.glob(".demo-*.lock"))
        .name.removesuffix(".lock")
        .replace(".demo", ".making-demo")
        + "-left"
    )
    (tmp_path / left_by_a_kill).mkdir()
    said: list[tuple[int, int, bool]] = []
    folder = ensure_demo_policy(
        tmp_path, lambda _policy, done, total, loss: said.append((done, total, loss is None)), TINY
    )
    assert said == [(0, 4, True)] + [(done, 4, False) for done in (1, 2, 3, 4)]
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [folder]
    assert (
        ensure_demo_policy(tmp_path, lambda *_said: pytest.fail("it is there already"), TINY)
        == folder
    )


def test_only_a_chunk_of_episodes_is_held_as_pictures() -> None:
    drawn: list[weakref.ref[Image.Image]] = []
    most = 0

    def demonstrations() -> Iterator[Demonstration]:
        nonlocal most
        for seed in range(3 * CHUNK):
            one = demonstrate(OPEN_SETTINGS, seed, noise=0.0, max_turns=2)
            drawn.extend(weakref.ref(screen) for screen in one.screens)
            most = max(most, sum(screen() is not None for screen in drawn))
            yield one

    episodes = encode_demonstrations(demonstrations(), image_processor(PolicySize()))
    assert len(episodes) == 3 * CHUNK
    assert 2 * CHUNK <= most <= 2 * 2 * CHUNK


def test_a_demonstration_is_the_same_twice_and_names_what_it_touches() -> None:
    first, second = (demonstrate(OPEN_SETTINGS, 3, noise=0.3, max_turns=6) for _ in range(2))
    assert first.turns == second.turns
    assert [one.tobytes() for one in first.screens] == [one.tobytes() for one in second.screens]
    clicks = [
        turn.text
        for turn in demonstrate(OPEN_SETTINGS, 3, noise=0.0, max_turns=6).turns
        if turn.text.startswith("click(")
    ]
    assert clicks
    assert all(text.startswith("click(settings ") for text in clicks)


@pytest.mark.parametrize(
    ("name", "label", "spoken"),
    [
        ("settings_icon", "Settings", "settings"),
        ("wifi_switch", "", "wifi"),
        ("dialer_icon", "", "phone"),
        ("row", "Screen time-out after 30 s", "screen time-out after"),
        ("icon", "", ""),
    ],
)
def test_an_element_is_called_by_at_most_three_words_without_numbers_and_kinds(
    name: str, label: str, spoken: str
) -> None:
    assert spoken_name(Element(name, label, (0, 0, 10, 10), None)) == spoken


def test_a_patch_shows_the_element_that_covers_most_of_it_and_its_middle(tmp_path: Path) -> None:
    build_policy(tmp_path, ["wi-fi on clock"], seed=0)
    _, processor = load_base(str(tmp_path))
    # 360 x 640 becomes 96 x 160 in patches of 16: 6 columns of 60 px, 10 rows of 64 px. The switch
    # covers the patch of row 1, column 2 and a tenth of column 3's, which is too little; the clock
    # covers less of row 1, column 2 than the switch, and half of row 0, column 2.
    switch = Element("wifi_switch", "Wi-Fi", (120, 64, 186, 128), "on")
    clock = Element("clock_icon", "Clock", (120, 32, 180, 96), None)
    turn = SpokenTurn((switch, clock), "click(wi-fi 42,15)", is_noise=False)
    demonstration = Demonstration(OPEN_SETTINGS, (Image.new("RGB", (360, 640)),), (turn,))
    (example,) = encode_episodes(
        encode_demonstrations([demonstration], image_processor(PolicySize())),
        processor,
        processor.image_token_id,
    )
    vocabulary = processor.tokenizer.get_vocab()
    assert (example.grid.rows, example.grid.columns) == (10, 6)
    names, places = example.names_INK[0], example.places_IN2[0]
    shown = {patch: names[patch].tolist() for patch in range(60) if names[patch, 0] != NOTHING}
    nothing = [NOTHING] * 3
    assert shown == {
        2: [vocabulary["clock"], *nothing, NOTHING],
        8: [vocabulary["wi-fi"], vocabulary["on"], *nothing],
    }
    # Middles in hundredths: x 153 of 360 -> 42, y 96 of 640 -> 15; x 150 -> 41, y 64 -> 10.
    assert places[8].tolist() == [42, 15]
    assert places[2].tolist() == [41, 10]
    said = [
        token
        for token, is_imitated in zip(example.tokens, example.is_imitated, strict=True)
        if is_imitated
    ]
    assert processor.tokenizer.convert_ids_to_tokens(said) == [
        "<|unk|>",
        "(",
        "wi-fi",
        "42",
        ",",
        "15",
        ")",
        "<|im_end|>",
    ]


def test_a_row_of_pointing_names_what_is_to_be_touched_and_imitates_each_touch(
    tmp_path: Path,
) -> None:
    build_policy(tmp_path, ["wi-fi find clock click on"], seed=0)
    _, processor = load_base(str(tmp_path))
    elements = (
        Element("wifi_switch", "Wi-Fi", (120, 64, 186, 128), "on"),
        Element("clock_icon", "Clock", (120, 32, 180, 96), None),
        Element("row", "", (0, 300, 360, 364), None),  # has no name of its own
        Element("tab", "Clock 2", (0, 400, 60, 464), None),  # is called as another
    )
    turn = SpokenTurn(elements[:3], "", is_noise=True)
    ambiguous = SpokenTurn(elements, "", is_noise=True)
    shown = Demonstration(OPEN_SETTINGS, (Image.new("RGB", (360, 640)),), (turn,))
    unclear = Demonstration(OPEN_SETTINGS, (Image.new("RGB", (360, 640)),), (ambiguous,))
    examples = encode_episodes(
        encode_demonstrations([shown, unclear], image_processor(PolicySize())),
        processor,
        processor.image_token_id,
    )
    assert [len(one.pointings[0]) for one in examples] == [2, 1]
    row = Pointer(processor, processor.image_token_id).row(
        examples[0], torch.zeros(1, 60, 128), random.Random(0)
    )
    said = processor.tokenizer.convert_ids_to_tokens(row.tokens)
    begin = said.index("click")
    touches = {
        "clock": ["click", "(", "clock", "41", ",", "clock", "10", ")"],
        "wi-fi": ["click", "(", "wi-fi", "42", ",", "wi-fi", "15", ")"],
    }
    order = [word for word in said[said.index("find") + 1 : begin] if word in touches]
    assert sorted(order) == sorted(touches)
    assert said[begin:] == touches[order[0]] + touches[order[1]]
    assert list(row.is_imitated) == [False] * begin + ([False] * 2 + [True] * 6) * 2


def test_seeing_is_scored_by_the_name_s_words_and_by_each_half_for_a_coordinate() -> None:
    embeddings = torch.eye(4)  # tokens 0-3; numbers 0 and 1 are tokens 2 and 3
    numbers = torch.tensor([2, 3])
    features = torch.tensor([[1.0, 0.0, 0.0, 2.0], [9.0, 9.0, 9.0, 9.0], [1.0, 0.0, 0.0, 2.0]])
    names = torch.tensor([[0, 1], [NOTHING, NOTHING], [0, 1]])
    places = torch.tensor([[0, 1], [NOTHING, NOTHING], [0, 1]])
    normaliser = math.log(math.e + 1 + 1 + math.e**2)
    name_loss = ((normaliser - 1) + (normaliser - 0)) / 2
    # x: the feature's first half, (1, 0), with the numbers' first halves, (0, 0) both: even odds.
    # y: (0, 2) with (1, 0) and (0, 1).
    y_loss = math.log(1 + math.e**2) - 2
    expected = 2 * (
        name_loss + 0.5 * math.log(2) + 0.5 * y_loss
    )  # two patches that show the same; the third shows nothing
    assert alignment_loss(features, names, places, embeddings, numbers).item() == pytest.approx(
        expected, rel=0, abs=rounding_of_sum([math.e, 1.0, 1.0, math.e**2] * 2)
    )


def test_the_rate_rises_over_twenty_steps_and_falls_to_a_twentieth() -> None:
    assert share_of_rate(0, 10**9) == pytest.approx(1 / 20)
    assert share_of_rate(19, 10**9) == pytest.approx(1)
    assert share_of_rate(50, 100) == pytest.approx(0.5 * 0.95 + 0.05)
    assert share_of_rate(100, 100) == pytest.approx(0.05)
