"""Process rewards: cross-entropy over two label tokens at the step markers, and their scorer."""

import math
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from producer.errors import NotFoundError, UsageError
from producer.policy.torch_policy.loading import open_base
from producer.supervised.sequences import StepMarks, label_tokens, mark_steps, step_texts
from producer.supervised.step_scorer import MarkedSteps, StepCrossEntropy, StepScorer
from producer.text_policy.build import TextPolicySize, build_text_policy

SIZE = TextPolicySize(dim=32, layers=2, heads=2, ffn=64)
MARKS = StepMarks(" и", ("+", "-"))
STEPS = ["WITH a AS (SELECT name FROM orders)", "SELECT count(*) FROM a"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prm")
    build_text_policy(folder, [*STEPS, "How many?"] * 5, 3, SIZE, extra_tokens=["+", "-"])
    MARKS.write(folder)
    return folder


def test_texts_between_markers_are_tokenised_alone(folder: Path) -> None:
    tokenizer = open_base(str(folder)).processor
    texts = step_texts("How many?", STEPS)
    assert texts == [f"How many?\n\n{STEPS[0]}", f"\n\n{STEPS[1]}"]
    marked = mark_steps(tokenizer, MARKS, texts)
    marker = tokenizer.encode(" и", add_special_tokens=False)
    assert len(marker) > 1  # this policy writes it in several tokens
    for at in marked.markers:
        assert list(marked.tokens[at - len(marker) + 1 : at + 1]) == marker
    # A step's tokens do not depend on the steps behind it.
    assert mark_steps(tokenizer, MARKS, texts[:1]).tokens == marked.tokens[: marked.markers[0] + 1]


def test_the_loss_is_the_cross_entropy_over_the_two_tokens_alone(folder: Path) -> None:
    base = open_base(str(folder))
    marked = mark_steps(base.processor, MARKS, step_texts("How many?", STEPS))
    right, wrong = label_tokens(base.processor, MARKS)
    plain = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        logits_TV = plain(torch.tensor([marked.tokens])).logits[0]
    objective = StepCrossEntropy((right, wrong))
    for labels in ((1.0, 0.0), (0.25, 0.75)):
        expected = 0.0
        for at, label in zip(marked.markers, labels, strict=True):
            r, w = float(logits_TV[at, right]), float(logits_TV[at, wrong])
            expected -= label * (r - math.log(math.exp(r) + math.exp(w)))
            expected -= (1 - label) * (w - math.log(math.exp(r) + math.exp(w)))
        item = MarkedSteps(*marked, labels)
        assert objective.loss_sum(base.network, [item]).item() == pytest.approx(expected, abs=1e-5)
        assert objective.num_targets(item) == 2


def test_padding_and_neighbours_change_no_loss(folder: Path) -> None:
    base = open_base(str(folder))
    objective = StepCrossEntropy(label_tokens(base.processor, MARKS))
    items = [
        MarkedSteps(*mark_steps(base.processor, MARKS, step_texts("How many?", steps)), labels)
        for steps, labels in ((STEPS, (1.0, 0.5)), (STEPS[1:], (0.0,)))
    ]
    alone = sum(objective.loss_sum(base.network, [item]).item() for item in items)
    assert objective.loss_sum(base.network, items).item() == pytest.approx(alone, abs=1e-4)


def test_a_score_is_the_probability_of_the_right_token_of_the_two(folder: Path) -> None:
    scorer = StepScorer.load(folder, device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = []
    expected = []
    plain = AutoModelForCausalLM.from_pretrained(folder)
    ids = [tokenizer.convert_tokens_to_ids(item) for item in ("+", "-")]
    for text in ("How many?\n\n" + STEPS[0], "\n\n" + STEPS[1]):
        tokens += tokenizer.encode(text, add_special_tokens=False)
        tokens += tokenizer.encode(" и", add_special_tokens=False)
        with torch.no_grad():
            logits_V = plain(torch.tensor([tokens])).logits[0, -1]
        expected.append(float(logits_V[ids].softmax(dim=0)[0]))
    assert scorer.score_steps("How many?", STEPS) == pytest.approx(expected, abs=1e-5)


def test_many_are_scored_as_each_alone_and_the_same_each_time(folder: Path) -> None:
    scorer = StepScorer.load(folder, device="cpu")
    asked = [("How many?", STEPS), ("How many?", []), ("Which?", STEPS[1:])] * 3
    scored = scorer.score_many(asked)
    assert [len(item) for item in scored] == [2, 0, 1] * 3
    assert scorer.score_many(asked) == scored
    for (prompt, steps), found in zip(asked, scored, strict=True):
        assert found == pytest.approx(scorer.score_steps(prompt, steps), abs=1e-5)
    # A prefix of the steps has the scores of the whole: a step is judged by what is before it.
    whole = scorer.score_steps("How many?", STEPS)
    assert scorer.score_steps("How many?", STEPS[:1]) == pytest.approx(whole[:1], abs=1e-5)


def test_label_tokens_are_one_token_each(folder: Path) -> None:
    tokenizer = open_base(str(folder)).processor
    with pytest.raises(UsageError, match=r"reward_tokens: 'right' is \d+ tokens"):
        label_tokens(tokenizer, StepMarks(" и", ("right", "-")))


def test_a_folder_without_a_process_reward_model_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="holds no process reward model"):
        StepScorer.load(tmp_path)
    (tmp_path / "step_scorer.json").write_text("[]")
    with pytest.raises(NotFoundError, match="holds no process reward model"):
        StepScorer.load(tmp_path)
