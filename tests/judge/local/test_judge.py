"""What the local judge answers, and what it says it cannot."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from local_worked import EINSTEIN, FRANCE, JUDGE, ask, supported
from minimal_pairs import minimal_pairs
from steelyard.judge import LocalJudge
from steelyard.questions import (
    Answer,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Judge,
    Noncommittal,
    Rating,
    Relevant,
    Request,
    Same,
    Supported,
    Texts,
    Unanswered,
    Useful,
    View,
    YesNo,
)
from steelyard.record import Context

TAJ_MAHAL = (
    "The Taj Mahal is an ivory-white marble mausoleum on the right bank of the river Yamuna in the Indian "
    "city of Agra. It was commissioned in 1631 by the Mughal emperor Shah Jahan to house the tomb of his "
    "favorite wife, Mumtaz Mahal."
)


def yes(answer: Answer) -> bool:
    assert isinstance(answer, YesNo)
    return answer.value


def items(answer: Answer) -> tuple[str, ...]:
    assert isinstance(answer, Texts)
    return answer.items


def test_it_is_a_judge_that_says_what_it_is() -> None:
    assert isinstance(JUDGE, Judge)
    assert JUDGE.name == "local-lexical"
    assert JUDGE.prompt_version
    assert JUDGE.capabilities.independent
    assert not JUDGE.capabilities.calibrated
    assert Rating not in JUDGE.capabilities.kinds
    assert GeneratedQuestions not in JUDGE.capabilities.kinds


def test_what_it_cannot_answer_is_unsupported_even_when_asked() -> None:
    answer = ask(GeneratedQuestions(), answer="Paris.")
    assert isinstance(answer, Unanswered)
    assert answer.cause == "unsupported"


@pytest.mark.parametrize(
    "question",
    [
        Supported(claim="Paris."),
        Supported(claim="Paris.", by="reference"),
        Contradicted(claim="Paris."),
        Same(claim="Paris.", among="reference", of="answer"),
        Useful(context=0),
        Relevant(text="Paris."),
        Noncommittal(),
    ],
)
def test_without_material_there_is_no_answer(question: Supported) -> None:
    answer = ask(question)
    assert isinstance(answer, Unanswered)
    assert answer.cause.startswith("missing_")


@pytest.mark.parametrize("passage", [-1, 1, 99])
def test_a_passage_that_is_not_there_has_no_answer(passage: int) -> None:
    assert isinstance(ask(Supported(claim="Paris.", passage=passage), contexts=("Paris.",)), Unanswered)


def test_supported_by_each_part_and_by_one_passage() -> None:
    claim = "Paris is the capital of France."
    contexts = (EINSTEIN, FRANCE)
    assert yes(ask(Supported(claim=claim), contexts=contexts))
    assert not yes(ask(Supported(claim=claim, passage=0), contexts=contexts))
    answer = ask(Supported(claim=claim, passage=1), contexts=contexts)
    assert isinstance(answer, YesNo)
    assert answer.value
    assert answer.evidence[0].context == 1
    assert yes(ask(Supported(claim=claim, by="reference"), reference=FRANCE))
    assert yes(ask(Supported(claim=claim, by="answer", of="reference"), answer=FRANCE))
    known = (Context(text=EINSTEIN), Context(text=FRANCE))
    answer = ask(Supported(claim=claim, by="reference_contexts"), reference_contexts=known)
    assert isinstance(answer, YesNo)
    assert answer.value
    assert answer.evidence[0].context is None
    assert answer.evidence[0].notes["in"] == "reference_contexts"
    assert answer.evidence[0].notes["passage"] == 1


def test_same_looks_in_the_other_text() -> None:
    assert yes(
        ask(Same(claim="Einstein was born in 1879.", among="reference", of="answer"), reference=EINSTEIN)
    )
    assert not yes(
        ask(Same(claim="Einstein was born in 1879.", among="reference", of="answer"), reference=FRANCE)
    )


@pytest.mark.parametrize(
    ("claim", "context", "contradicted"),
    [
        ("Paris is not the capital of France.", "Paris is the capital of France.", True),
        ("Sales rose sharply last year.", "Sales fell sharply last year.", True),
        ("The bridge was opened in 1921.", "The bridge was opened in 1911.", True),
        ("The bridge was opened in 1911.", "The bridge was opened in 1911.", False),
        ("The bridge was opened in 1921.", "The old bridge was opened.", False),
        ("The bridge has a toll of 5 pounds.", "The ferry was built in 1911.", False),
        ("Nobody has seen a unicorn.", "The bridge was opened in 1911.", False),
    ],
)
def test_contradiction_is_a_turn_at_high_overlap_and_never_silence(
    claim: str, context: str, contradicted: bool
) -> None:
    answer = ask(Contradicted(claim=claim), contexts=(context,))
    assert yes(answer) == contradicted
    assert isinstance(answer, YesNo)
    assert bool(answer.evidence) == contradicted


def test_a_passage_is_useful_if_the_answer_comes_from_it() -> None:
    contexts = (FRANCE, EINSTEIN)
    parts: dict[str, Any] = {
        "question": "When was Einstein born?",
        "answer": "Albert Einstein was born on 14 March 1879.",
    }
    assert not yes(ask(Useful(context=0), contexts=contexts, **parts))
    assert yes(ask(Useful(context=1), contexts=contexts, **parts))
    assert yes(
        ask(Useful(context=1, toward="reference"), contexts=contexts, question="Who?", reference=EINSTEIN)
    )


def test_a_short_answer_must_stand_where_the_question_is_answered() -> None:
    contexts = ("Paris is the capital of France.", "Paris Hilton sold perfume.")
    parts: dict[str, Any] = {"question": "What is the capital of France?", "answer": "Paris"}
    assert yes(ask(Useful(context=0), contexts=contexts, **parts))
    first, second = (ask(Useful(context=place), contexts=contexts, **parts) for place in (0, 1))
    assert isinstance(first, YesNo)
    assert isinstance(second, YesNo)
    assert (first.probability or 0) > (second.probability or 1) + 0.2


RELEVANCE = [
    (
        "When was Einstein born?",
        "Einstein was born on 14 March 1879.",
        "France won the match on 12 July 1998.",
    ),
    ("What is the capital of France?", "The capital of France is Paris.", "He enjoyed the quiet evening."),
    ("How many lanes does the bridge have?", "The bridge has two lanes.", "It rained all week."),
    ("Why was the bridge closed?", "A storm had damaged the bridge.", "Green tea contains less caffeine."),
    ("Who was the engineer of the bridge?", "Its engineer was Martha Keene.", "Tomas Reyes likes tea."),
    ("Does green tea help to lose weight?", "It had no effect on weight in most studies.", "Paris is old."),
    ("What does the ferry company pay for?", "It paid for taxis and hot meals.", "The steel was expensive."),
]


@pytest.mark.parametrize(("question", "relevant", "irrelevant"), RELEVANCE)
def test_relevance(question: str, relevant: str, irrelevant: str) -> None:
    first = ask(Relevant(text=relevant), question=question)
    second = ask(Relevant(text=irrelevant), question=question)
    assert (yes(first), yes(second)) == (True, False), (first, second)


def test_a_bare_date_answers_when_but_not_in_a_context() -> None:
    assert yes(ask(Relevant(text="In 1879.", of="answer"), question="When was Einstein born?"))
    assert not yes(ask(Relevant(text="In 1879."), question="When was Einstein born?"))


def test_claims_are_the_sentences_that_state_something() -> None:
    answer = "I found:\n\n- Paris is in France.\n- Ulm is in Germany.\n\nDo you want more? I don't know why."
    assert items(ask(Claims(), answer=answer)) == ("- Paris is in France.", "- Ulm is in Germany.")
    assert items(ask(Claims(), answer="I don't know.")) == ()
    assert items(ask(Claims(), answer="Yes. Of course! Paris is.")) == ("Paris is.",)
    assert items(ask(Claims(of="reference"), reference=EINSTEIN)) == (EINSTEIN,)


def test_entities_are_names_numbers_and_dates() -> None:
    found = items(ask(Entities(), reference=TAJ_MAHAL))
    assert {"Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal"} <= set(found)
    assert set(found) <= {
        "Taj Mahal",
        "Yamuna",
        "Agra",
        "1631",
        "Shah Jahan",
        "Mumtaz Mahal",
        "Indian",
        "Mughal",
    }
    contexts = ("Albert Einstein was born on 14 March 1879.", "Paris and paris. ALBERT EINSTEIN in the U.S.")
    assert items(ask(Entities(of="contexts"), contexts=contexts)) == (
        "Albert Einstein",
        "14 March 1879",
        "Paris",
        "U.S",
    )
    assert items(ask(Entities(), reference="nothing of the kind here")) == ()


@pytest.mark.parametrize(
    ("answer", "evades"),
    [
        ("I don't know.", True),
        ("I’m sorry, but the context does not mention the price.", True),
        ("There is no information about that in the documents.", True),
        ("It is unclear.", True),
        ("Paris is the capital of France.", False),
        ("Nobody knows the trouble I have seen. It was a song. She sang it in Boston for years.", False),
        ("The Senate did not know. It voted on Tuesday, with 51 votes for the bill and 49 against.", False),
    ],
)
def test_noncommittal(answer: str, evades: bool) -> None:
    assert yes(ask(Noncommittal(), answer=answer)) == evades


def test_one_judge_serves_several_loops_and_threads() -> None:
    found: list[float | None] = []

    def work() -> None:
        found.extend(supported("Einstein was born in Germany.", EINSTEIN).probability for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert len(set(found)) == 1


def test_it_lets_the_loop_run_while_it_works() -> None:
    async def run() -> int:
        turns = 0
        view = View(contexts=tuple(Context(text=f"{number}. " + FRANCE * 20) for number in range(10)))
        questions = {f"q{number}": Supported(claim=f"{EINSTEIN} {number}") for number in range(10)}
        working = asyncio.create_task(LocalJudge().answer(Request(view=view, questions=questions)))
        while not working.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(working.result().answers) == 10
        return turns

    assert asyncio.run(run()) > 20


def test_a_turn_takes_no_more_than_its_share_of_a_core() -> None:
    ask(Supported(claim=EINSTEIN), contexts=(FRANCE,))  # whatever is loaded at first
    judge = LocalJudge(max_share=0.2)
    view = View(contexts=tuple(Context(text=f"{number}. " + FRANCE * 10) for number in range(4)))
    questions = {f"q{number}": Supported(claim=f"{EINSTEIN} {number}") for number in range(4)}
    work, clock = time.process_time(), time.perf_counter()
    asyncio.run(judge.answer(Request(view=view, questions=questions)))
    share = (time.process_time() - work) / (time.perf_counter() - clock)
    assert share < 0.3


def test_importing_it_loads_no_library() -> None:
    code = (
        "import sys; from steelyard.judge import LocalJudge, StaticEmbedder; LocalJudge(); StaticEmbedder();"
        "print(*{'numpy', 'tokenizers', 'safetensors', 'wordllama'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_using_it_never_imports_the_package_it_takes_its_vectors_from() -> None:
    code = (
        "import asyncio, socket, sys\n"
        "socket.socket.connect = lambda *a: sys.exit('network')\n"
        "from steelyard.judge import LocalJudge; LocalJudge().warm(); print('wordllama' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_texts_that_nobody_asks_for_any_more_are_few_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    # The garbage collector visits each of them while the whole application stands still.
    now = 100.0
    monkeypatch.setattr("steelyard.judge.local._material.time", SimpleNamespace(monotonic=lambda: now))
    judge = LocalJudge()
    question = Supported(claim="The bridge was built in 1432.")

    def about(*texts: str) -> Request:
        return Request(
            view=View(contexts=tuple(Context(text=text) for text in texts)), questions={"q": question}
        )

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    asyncio.run(judge.answer(about("The duke sold a bridge.")))
    before = objects()
    passages = [f"Bridge {number} was built in {number} by masons from Lyon. " * 40 for number in range(100)]
    for _ in range(3):
        # However much was forgotten before, what is asked about now is remembered.
        asyncio.run(judge.answer(about(*passages)))
        under_way = objects() - before
        now += 10
        asyncio.run(judge.answer(about("The mill was sold by a duke.")))
        assert under_way > 10_000
        assert objects() - before < under_way / 3


def test_claims_that_differ_in_one_thing_are_told_apart_by_kind() -> None:
    right: dict[str, list[bool]] = defaultdict(list)
    for pair in minimal_pairs(3):
        right[pair.kind] += [
            supported(pair.true, pair.text).value,
            not supported(pair.false, pair.text).value,
        ]
    every = [hit for hits in right.values() for hit in hits]
    assert sum(every) >= 0.8 * len(every)
    shares = {kind: sum(hits) / len(hits) for kind, hits in right.items()}
    # Who did it to whom, the items of a list, other words and what follows of two facts are beyond it.
    beyond = {"role", "list", "paraphrase", "inference", "exception"}
    assert {kind for kind, share in shares.items() if share < 0.7} <= beyond, shares


def test_numbers_units_and_negations_are_found_almost_always() -> None:
    of_these = ("number", "unit", "negation")
    pairs = [pair for pair in minimal_pairs(3, seed=2) if pair.kind in of_these]
    missed = [pair.false for pair in pairs if supported(pair.false, pair.text).value]
    alarms = [pair.true for pair in pairs if not supported(pair.true, pair.text).value]
    assert len(missed) <= 0.05 * len(pairs), missed
    assert len(alarms) <= 0.15 * len(pairs), alarms
