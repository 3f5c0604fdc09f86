"""The same questions are put in the same words in every release, whatever they are put together with.

Whoever means to change the words, and so `PROMPT_VERSION`, writes them anew with
`OUTPUTS=write pytest tests/judge/chat/test_same_prompts.py` and sees what models are shown.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

from judge.chat.test_kinds import ONE_OF_EACH
from steelyard.judge.chat._prompts import PROMPT_VERSION, Reasoning, render, schema
from steelyard.questions import Contradicted, Part, Question, Rating, Request, Same, Supported, Useful, View
from steelyard.record import Context

KEPT = Path(__file__).with_name("same_prompts.txt")
VIEW = View(
    question="Where was Einstein\nborn?",
    contexts=(Context(text="Einstein was born in Ulm."), Context(text="Ulm lies \ud800 on the Danube.")),
    answer="In Ulm.",
    reference="In Ulm, in 1879.",
    reference_contexts=(Context(text="Ulm is his birthplace."),),
)
ANSWER: frozenset[Part] = frozenset({"answer"})
LEVELS = ((0.0, "bad"), (1.0, "good"))
TWICE = Same(claim="He was born.", among="reference", of="answer", listed=("Ulm is a city.", "He  was born."))
TOGETHER: dict[str, tuple[Question, ...]] = {
    "claims for and against": (
        *(Supported(claim=claim) for claim in ("It is in Ulm.", "It is  in Ulm.", "He was born.")),
        *(Contradicted(claim=claim) for claim in ("It is in Ulm.", "He was born.")),
        Supported(claim="It is in Ulm.", by="reference"),
        Supported(claim="It is in Ulm.", passage=1),
        Supported(claim="It is in Ulm.", of="reference", by="reference_contexts"),
    ),
    "claims among others": (
        TWICE,
        replace(TWICE, claim="Ulm is a city."),
        Same(claim="Ulm is a city.", among="answer", of="reference", listed=("He was born.", "He was born.")),
        Same(claim="It is in Ulm.", among="answer", of="reference"),
    ),
    "passages and ratings": (
        Useful(context=0),
        Useful(context=1, toward="reference"),
        Rating(instruction="How good?", levels=LEVELS, needs=ANSWER),
        Rating(instruction="How good?", levels=LEVELS, needs=ANSWER, sample=1),
    ),
    "a rating the other way round": (
        Rating(instruction="How good?", levels=LEVELS, needs=ANSWER, swapped=True),
    ),
}


def put(request: Request) -> str:
    """The user's message, with a name in place of the fence's secret."""
    user = render(request).user
    fence = re.search(r"<<<(\w+)", user)
    return user.replace(fence[1], "FENCE") if fence else user


def pages() -> Iterator[str]:
    yield PROMPT_VERSION
    for question in ONE_OF_EACH:
        view = View(contexts=VIEW.contexts[:1] if VIEW.contexts else None)
        yield f"# {question.kind}\n{put(Request(view=view, questions={'s1': question}))}"
    for name, asked in TOGETHER.items():
        keyed = {f"s{n // 2}{'ab'[n % 2]}": one for n, one in enumerate(asked)}
        yield f"# {name}\n{put(Request(view=VIEW, questions=keyed))}"
    keyed = {f"s{n}": one for n, one in enumerate(ONE_OF_EACH)}
    request = Request(view=View(answer="So </data>."), questions=keyed, attempt=2)
    yield f"# all again\n{put(request)}"
    for reasoning in get_args(Reasoning):
        system = render(replace(request, view=View()), reasoning=reasoning, nonce="x7").system
        shape = schema(request, reasoning=reasoning)
        yield f"# reasons: {reasoning}\n{re.sub('<<<.*?>>>', 'FENCE', system)}\n{json.dumps(shape)}"


def test_the_same_questions_are_put_in_the_same_words() -> None:
    found = "\n\n".join(pages()) + "\n"
    if os.environ.get("OUTPUTS") == "write":
        KEPT.write_text(found, encoding="utf-8")
    assert found == KEPT.read_text("utf-8"), "if that was meant, write them anew"
