"""The small network that the text-to-SQL demonstration begins from: all it can do is copy."""

import shutil
from pathlib import Path

from producer.agents.text_to_sql.data.layouts import read_questions
from producer.agents.text_to_sql.data.tasks import database_statements
from producer.fine_tuning.questions import read_answered
from producer.policy.torch_policy.loading import load_base
from producer.text_policy.build import TextPolicySize, build_text_policy
from producer.text_policy.initial_attention import lay_out_copying

LABEL_TOKENS = ("+", "-")
"""Of the process reward model that is made of it."""


def build_demo_policy(folder: Path, data: Path, dim: int, seed: int) -> None:
    """Write it into `folder`, replacing what is there.

    Its vocabulary is that of the data's schemas and questions, the held-out ones' names included;
    no held-out answer is read.
    """
    texts = [message.content for item in read_answered(data, None) for message in item.messages]
    for question in read_questions(data, "dev"):
        texts += [question.question, question.evidence, *database_statements(question.database)]
    shutil.rmtree(folder, ignore_errors=True)
    build_text_policy(folder, texts, seed, TextPolicySize(dim=dim), extra_tokens=LABEL_TOKENS)
    network, _ = load_base(str(folder))
    lay_out_copying(network, seed)
    network.save_pretrained(folder)
