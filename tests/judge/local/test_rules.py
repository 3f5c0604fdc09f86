"""The rules of language that the local judge knows, each on a claim that follows and one that does not."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_worked import check_twins, supported
from steelyard.judge import LocalJudge, StaticEmbedder
from steelyard.questions import Answer, Embedder, Noncommittal, Request, Supported, View, YesNo
from steelyard.record import Context
from steelyard.text import affirms, evades, is_polar, statements, states, unhedged

DEPOT = (
    "The depot at Harrow stores 40 kg of copper and 12 km of cable. It was opened on 3 May 1931. "
    "The tunnel is 5000 m long and lies at -5 metres. In winter it is heated to 18 degrees Celsius."
)
GARDEN = (
    "The roses in the garden were planted by Edith Lowe, and the ponds were dug by Martin Shaw. "
    "Cats may enter the orchard but not the glasshouse. All the benches were painted in 1988, and some of "
    "the paths were repaired in 1995. Because frost had killed the vines, the terrace was closed. "
    "The fountain was built before the gate was moved."
)


def ask(claim: str, *texts: str, question: str = "") -> YesNo:
    view = View(question=question or None, contexts=tuple(Context(text=text) for text in texts))
    asked = Request(view=view, questions={"s1": Supported(claim=claim)})
    answer: Answer = asyncio.run(LocalJudge().answer(asked)).answers["s1"]
    assert isinstance(answer, YesNo)
    assert answer.probability is not None
    assert answer.value == (answer.probability >= 0.5)
    return answer


TWINS = [
    (kind, true, false, row["text"])
    for row in map(json.loads, Path(__file__).with_name("twins.jsonl").read_text("utf-8").splitlines())
    for kind, true, false in row["twins"]
]


@pytest.mark.parametrize(
    ("true", "false", "text"), [twin[1:] for twin in TWINS], ids=[kind for kind, *_ in TWINS]
)
def test_a_claim_that_follows_and_its_twin_that_does_not(true: str, false: str, text: str) -> None:
    check_twins(true, false, text)


def test_a_row_of_a_table_is_read_by_itself() -> None:
    table = "| Town | Station | Height |\n|---|---|---|\n| Arlen | yes | 410 |\n| Bremm | no | 85 |"
    assert "another row" in ask("Bremm lies at 410.", table).reason


PRICES = (
    "| Plan | Price per month | Users | Power in 2020 | Power in 2021 |\n|---|---|---|---|---|\n"
    "| Basic | 5 euros | 1 | 310 | 325 |\n| Team | 18 euros | 10 | 145 | 150 |\n"
    "| Campus | 90 euros | 400 | 98 | 91 |"
)


def test_a_row_of_a_table_is_shown_with_its_header() -> None:
    (evidence,) = ask("The Team plan costs 18 euros per month.", PRICES).evidence
    assert "| Team | 18 euros | 10 | 145 | 150 |" in evidence.text
    assert "Campus" not in evidence.text


def test_rows_that_look_like_a_table_and_are_none_are_read_all_the_same() -> None:
    for text in ("|", "||||", "| |\n| |", "|a", "| a |\n|b|c|d|\n|", "|\n" * 50 + "| x | y |"):
        assert not ask("The tunnel is 5000 metres long.", text).value


def test_the_number_of_a_list_item_is_not_a_number_of_the_claim() -> None:
    assert ask("1. The tunnel is 5000 metres long.", DEPOT).value


@pytest.mark.parametrize(
    ("question", "reply", "follows"),
    [
        ("Were the ponds dug by Martin Shaw?", "Yes.", True),
        ("Were the ponds dug by Martin Shaw?", "No.", False),
        ("May cats enter the glasshouse?", "No, they may not.", True),
        ("May cats enter the glasshouse?", "Yes, they may.", False),
    ],
)
def test_a_bare_reply_is_judged_by_what_was_asked(question: str, reply: str, follows: bool) -> None:
    assert ask(reply, GARDEN, question=question).value == follows
    assert [one.text for one in statements(reply, question)] == [reply]
    assert statements(reply, "What is there to see?") == []


def test_what_stands_behind_a_hedge_is_a_statement() -> None:
    hedged = "I do not know much about it, but it was opened in 1931."
    assert states(hedged)
    assert not evades(hedged)
    assert unhedged(hedged) == "it was opened in 1931."
    assert unhedged("The depot: it stores 40 kg.") == "The depot: it stores 40 kg."
    assert evades("I do not know, but please ask someone else.")


def test_polar_questions_and_replies_to_them() -> None:
    assert is_polar("Is it open?")
    assert not is_polar("How many are open?")
    assert (affirms("Yes, it is."), affirms("Nein."), affirms("Yes, it opened in 1931.")) == (
        True,
        False,
        None,
    )


@pytest.mark.parametrize(
    "answer", ["...", "-", "N/A", "It depends on many things.", "Das weiß ich leider nicht."]
)
def test_an_answer_that_says_nothing_evades(answer: str) -> None:
    asked = Request(view=View(question="When?", answer=answer), questions={"q1": Noncommittal()})
    found = asyncio.run(LocalJudge().answer(asked)).answers["q1"]
    assert isinstance(found, YesNo)
    assert found.value


_PROBABILITIES = """
import asyncio
from steelyard.judge import LocalJudge
from steelyard.probing import load_probes
from steelyard.questions import Request, Supported, View
from steelyard.record import Context

async def main():
    for probe in load_probes().probes[::9]:
        view = View(question=probe.question, contexts=tuple(Context(text=text) for text in probe.contexts))
        reply = await LocalJudge().answer(Request(view=view, questions={"s1": Supported(claim=probe.claim)}))
        print(reply.answers["s1"].probability)

asyncio.run(main())
"""


def test_probabilities_do_not_depend_on_the_order_of_sets() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", _PROBABILITIES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != b""


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("Yes, the depot was opened in 1931.", "the depot was opened in 1931."),
        ("Yes Bank is a bank in Mumbai.", "Yes Bank is a bank in Mumbai."),
        ("In addition, the gate was painted.", "the gate was painted."),
        ("Right whales live long.", "Right whales live long."),
        ("It is worth noting that the gate was painted.", "the gate was painted."),
    ],
)
def test_an_opening_that_replies_or_leads_over_is_not_part_of_a_claim(sentence: str, left: str) -> None:
    assert unhedged(sentence) == left


def test_an_answer_that_opens_with_a_reply_is_as_sure_as_one_that_does_not() -> None:
    plain = ask("the depot at Harrow stores 40 kg of copper.", DEPOT).probability
    assert ask("Yes, the depot at Harrow stores 40 kg of copper.", DEPOT).probability == plain


@pytest.mark.parametrize("hidden", ["\u00ad", "\u200b", "\ufe0f", "\u3164", "\U000e0041", "\u180e", "\u202e"])
def test_what_cannot_be_seen_does_not_part_a_word(hidden: str) -> None:
    text = "The ferry does not cross the river in winter."
    assert supported(text.replace("not", f"n{hidden}ot"), text).value
    crossed = text.replace("does not cross", "crosses")
    assert not supported(crossed, text.replace("not", f"n{hidden}ot")).value


EMBEDDER = StaticEmbedder()


def embed(*texts: str) -> list[list[float]]:
    vectors, usage = asyncio.run(EMBEDDER.embed(texts))
    assert usage.requests == 1
    return [list(vector) for vector in vectors]


def cosine(one: list[float], other: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other))


def test_it_is_an_embedder_of_256_dimensions() -> None:
    assert isinstance(EMBEDDER, Embedder)
    assert EMBEDDER.name == "static:wordllama-l2-256"
    assert [len(vector) for vector in embed("one", "two words", "")] == [256, 256, 256]


def test_similar_questions_are_nearer_than_others() -> None:
    asked, same, other = embed(
        "When was Einstein born?", "What is Albert Einstein's date of birth?", "How do I cook green tea?"
    )
    assert cosine(asked, same) > cosine(asked, other) + 0.3


def test_a_text_longer_than_one_slice_has_the_mean_of_all_its_tokens() -> None:
    short, long = embed("the ferry sailed to the harbour", "the ferry sailed to the harbour " * 200)
    assert long == pytest.approx(short, abs=0.02)


def test_an_empty_text_is_zero() -> None:
    (vector,) = embed("")
    assert set(vector) == {0.0}


@given(st.text(max_size=100))
def test_any_text_has_a_finite_vector_and_always_the_same(text: str) -> None:
    first, second = embed(text, text)
    assert first == second
    assert all(map(math.isfinite, first))


def test_half_a_surrogate_pair_is_no_failure() -> None:
    assert len(embed("\ud800 broken")[0]) == 256
