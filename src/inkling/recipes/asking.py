"""A model asks itself: it answers, with the book open, the question that known pairs ask, for every other document.

    Where was ‹head› born?          the commonest form of the pairs' questions, with the head of the document in it

Answers are the model's own, greedy, and may be wrong. Nothing but the documents, the pairs and the model is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from inkling.errors import UsageError
from inkling.models.answering import AnsweringConfig, answer_prompts
from inkling.models.gpt_model import Transformer
from inkling.recipes.documents import Pair, encode
from inkling.text.documents import split_head
from inkling.text.questions import prompt, subject_of

Say = Callable[[str], None]
LONGEST_ANSWER = 16  # tokens


def question_form(questions: Sequence[str]) -> tuple[str, str]:
    """What stands before and behind the subject in most of the questions."""
    forms: Counter[tuple[str, str]] = Counter()
    for question, subject in zip(questions, subject_of(questions), strict=True):
        before, found, behind = question.partition(subject)
        if found and subject != question:
            forms[before, behind] += 1
    if not forms:
        raise UsageError(
            "The questions have no form in common, such as 'Where was … born?', so none can be made about other "
            "documents; leave --ask out."
        )
    return forms.most_common(1)[0][0]


def ask_itself(
    model: Transformer, lines: Sequence[str], pairs: Sequence[Pair], say: Say = lambda _: None
) -> list[Pair]:
    """A question and the model's answer for every document that no pair is about."""
    before, behind = question_form([question for question, _ in pairs])
    known = {subject.casefold() for subject in subject_of([question for question, _ in pairs])}
    split = [split_head(line) for line in lines]
    documents = [(head, body) for head, body in split if body and head.strip().casefold() not in known]
    questions = [f"{before}{head.strip()}{behind}" for head, _ in documents]
    prompts = encode(model.tokeniser, [prompt(question) for question in questions])
    texts = encode(model.tokeniser, [head + body for head, body in documents])
    room = model.config.context - LONGEST_ANSWER - 1
    opened = [
        np.concatenate([text[: max(0, room - len(asked))], asked]) for text, asked in zip(texts, prompts, strict=True)
    ]
    answers = answer_prompts(model, [ids.tolist() for ids in opened], AnsweringConfig(tokens=LONGEST_ANSWER))
    found = [
        (question, answer.text.strip())
        for question, answer in zip(questions, answers, strict=True)
        if answer.ended and answer.text.strip()
    ]
    say(f"Asked itself {len(questions):,} questions about documents, and has an answer to {len(found):,} of them.")
    return found
