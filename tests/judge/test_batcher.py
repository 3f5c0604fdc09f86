"""The batcher, by what it sends: a real ChatJudge against a server that keeps every request."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.asked import closing
from judge.fusing import RECORD, Asks, ask, deep, embeds, scored, shallow, three
from judge_server import Fault, JudgeServer, Received, filled
from steelyard.errors import ConfigurationError, RateLimited
from steelyard.judge import ChatJudge
from steelyard.questions import (
    Answer,
    Capabilities,
    Choose,
    Claims,
    Embed,
    MetricRun,
    Noncommittal,
    Part,
    Question,
    QuestionBatcher,
    Rating,
    Relevant,
    Request,
    Supported,
    Texts,
    Useful,
    Vector,
    View,
    YesNo,
    keyed,
    require,
)
from steelyard.questions._packing import fitted, size_of
from steelyard.questions._question import PARTS
from steelyard.record import Context, Record
from steelyard.scores import Usage
from steelyard.testing import ScriptedJudge


def raises(record: Record) -> MetricRun:
    """Raises in the middle."""
    yield [Claims()]
    raise KeyError("a user's mistake")


@given(asked=st.frozensets(st.sampled_from(sorted(PARTS))))
def test_a_view_shows_the_parts_that_are_asked_for_and_no_other(asked: frozenset[Part]) -> None:
    one = (Context(text="c"),)
    record = Record(question="q", contexts=one, answer="a", reference="r", reference_contexts=one)
    view = View.of(record, asked)
    assert {part for part in PARTS if getattr(view, part) is not None} == asked
    assert View.of(Record(), asked) == View()


METRICS = [Asks(f.__name__, f) for f in (shallow, deep, embeds, raises)]


def parts(prompt: str) -> set[str]:
    """Which parts of the record a prompt shows."""
    found = {"question": RECORD.question, "answer": RECORD.answer, "reference": RECORD.reference or ""}
    return {name for name, text in found.items() if f" {name}\n{text}\n" in prompt} | (
        {"contexts"} if "Einstein was born in Ulm." in prompt.split(" question")[0] else set()
    )


def test_metrics_of_different_depth_share_trips() -> None:
    with JudgeServer() as server:
        scores, usage = ask(server, METRICS)
    assert {name: score.value for name, score in scores.items()} == {
        "shallow": 1.0,
        "deep": 1.0,
        "embeds": 3.0,
        "raises": None,
    }
    assert scores["raises"].cause == "metric_error"
    assert "KeyError" in scores["raises"].explanation
    # Claims need the question and Questions must not see it; then all verdicts at once; then the vectors.
    first, second, third, fourth = server.received
    assert sorted([parts(first.text) >= {"question"}, parts(second.text) >= {"question"}]) == [False, True]
    # Whether the answer evades goes along with the claims, which see the same.
    assert sorted([len(first.questions), len(second.questions)]) == [1, 2]
    assert [len(third.questions), parts(third.text)] == [5, {"question", "contexts", "answer"}]
    assert fourth.path == "/v1/embeddings"
    assert len(fourth.body["input"]) == 3
    assert usage.requests == 4
    assert usage.questions == 1 + 1 + 6 + 3


def test_record_mode_asks_once_to_extract_and_once_to_judge() -> None:
    with JudgeServer() as server:
        scores, usage = ask(server, METRICS, fuse="record")
    assert scores["deep"].value == 1.0
    assert [len(request.questions) for request in server.received[:2]] == [3, 5]
    assert usage.requests == 3


def test_off_asks_one_by_one() -> None:
    with JudgeServer() as server:
        scores, usage = ask(server, METRICS, fuse="off")
    assert scores["deep"].value == 1.0
    chats = [request for request in server.received if "messages" in request.body]
    assert [len(request.questions) for request in chats] == [1] * 8
    assert usage.requests == 9


def test_what_several_metrics_ask_is_asked_once() -> None:
    with JudgeServer() as server:
        scores, usage = ask(server, [Asks("one", deep), Asks("two", deep), Asks("three", raises)])
    assert [len(request.questions) for request in server.received] == [1, 3]
    assert usage.questions == 4
    assert scores["deep"].value == 1.0


def test_every_verdict_lands_at_its_own_claim() -> None:
    claims = ["First is new.", "Second is old.", "Third is new.", "Fourth is old."]

    def think(request: Received) -> Any:
        first, *_ = request.questions
        if first.startswith("q"):
            return {first: {"claims": claims}}
        # Keys in another order than asked.
        return {
            key: {"reason": "", "context": 0, "verdict": "new" in line}
            for key, line in reversed(request.questions.items())
        }

    seen: dict[str, bool] = {}

    def watch(record: Record) -> MetricRun:
        (found,) = require((yield [Claims()]), Texts)
        answers = require((yield [Supported(claim=claim) for claim in found.items]), YesNo)
        seen.update({claim: a.value for claim, a in zip(found.items, answers, strict=True)})
        return scored("watch", 1.0)

    with JudgeServer(think) as server:
        ask(server, [Asks("watch", watch)])
    assert seen == {claim: "new" in claim for claim in claims}


def test_more_questions_than_fit_go_in_several_requests() -> None:
    def many(record: Record) -> MetricRun:
        answers = require((yield [Supported(claim=f"Claim {n}.") for n in range(25)]), YesNo)
        return scored("many", float(len(answers)))

    with JudgeServer() as server:
        scores, _ = ask(server, [Asks("many", many)], max_questions=10)
    assert scores["many"].value == 25
    assert sorted(len(request.questions) for request in server.received) == [5, 10, 10]


def test_material_that_no_request_can_hold_fails_unsent() -> None:
    with JudgeServer() as server:
        scores, usage = ask(server, [Asks("three", three)], max_characters=20)
        assert server.received == []
    assert [scores["three"].status, scores["three"].cause] == ["failed", "too_large"]
    assert usage.requests == 0


def test_independent_repeats_do_not_share_a_request() -> None:
    def twice(record: Record) -> MetricRun:
        needs: frozenset[Part] = frozenset({"answer"})
        ratings = [
            Rating(instruction=f"Rate {n}.", levels=((0, "bad"), (1, "good")), needs=needs, sample=n)
            for n in (1, 2)
        ]
        answers = yield ratings
        return scored("twice", float(len(answers)))

    with JudgeServer() as server:
        ask(server, [Asks("twice", twice)])
    assert [len(request.questions) for request in server.received] == [1, 1]


def test_a_repeat_carries_an_extraction_that_may_see_the_same() -> None:
    def rated(record: Record) -> MetricRun:
        needs: frozenset[Part] = frozenset({"answer", "contexts"})
        levels = ((0.0, "bad"), (1.0, "good"))
        yield [Rating(instruction=f"Rate {n}.", levels=levels, needs=needs, sample=n) for n in (1, 2)]
        return scored("rated", 1.0)

    with JudgeServer() as server:
        _, usage = ask(server, [Asks("embeds", embeds), Asks("rated", rated)])
    shared = next(request for request in server.received if "different questions" in request.text)
    assert len(shared.questions) == 2
    assert parts(shared.text) == {"answer", "contexts"}
    # Whether the answer evades and the first rating have requests of their own, then the vectors.
    assert usage.requests == 4


def test_a_judge_that_raises_fails_by_name() -> None:
    def broken(question: Question, request: Request) -> None:
        raise ZeroDivisionError("in a judge of the user's")

    batcher = QuestionBatcher(judge=ScriptedJudge(broken))
    (score,) = asyncio.run(batcher.run(RECORD, [Asks("three", three)]))
    assert [score.status, score.cause] == ["failed", "judge_error"]
    assert batcher.usage.requests == 1


def test_a_fuse_mode_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="fuse='views' is not one of 'view', 'record', 'off'"):
        QuestionBatcher(judge=ScriptedJudge(lambda question, request: None), fuse="views")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "metric",
    [
        lambda record: 1 / 0,
        lambda record: iter(()),
        lambda record: None,
    ],
)
def test_a_metric_that_is_no_generator_fails_alone(metric: Any) -> None:
    yes = ScriptedJudge(lambda question, request: YesNo(value=True))
    bad, good = asyncio.run(
        QuestionBatcher(judge=yes).run(RECORD, [Asks("bad", metric), Asks("three", three)])
    )
    assert [bad.status, bad.cause] == ["failed", "metric_error"]
    assert good.value == 1.0


def test_a_question_that_cannot_be_compared_fails_its_metric_alone() -> None:
    def unhashable(record: Record) -> MetricRun:
        yield [Choose(instruction="Which?", options=["a", "b"], needs=frozenset())]  # type: ignore[arg-type]
        raise AssertionError("never asked")

    yes = ScriptedJudge(lambda question, request: YesNo(value=True))
    metrics = [Asks("bad", unhashable), Asks("three", three)]
    bad, good = asyncio.run(QuestionBatcher(judge=yes).run(RECORD, metrics))
    assert [bad.status, bad.cause] == ["failed", "metric_error"]
    assert good.value == 1.0


def test_what_the_judge_cannot_answer_is_not_applicable_and_not_sent() -> None:
    judge = ScriptedJudge(lambda question, request: YesNo(value=True))
    judge.capabilities = Capabilities(kinds=frozenset({Supported}))
    (score,) = asyncio.run(QuestionBatcher(judge=judge).run(RECORD, [Asks("deep", deep)]))
    assert [score.status, score.cause] == ["not_applicable", "unsupported"]
    assert judge.requests == []


async def test_the_deadline_ends_everything() -> None:
    with JudgeServer(latency=120) as server:
        async with aclosing(ChatJudge("m", base_url=server.url)) as judge:
            started = time.monotonic()
            batcher = QuestionBatcher(judge=judge, deadline=started + 0.2)
            (score,) = await batcher.run(RECORD, [Asks("deep", deep)])
            assert time.monotonic() - started < 60
    assert [score.status, score.cause] == ["failed", "deadline"]


def test_a_long_retry_after_is_handed_up() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "600"}))
        batcher = QuestionBatcher(judge=(judge := ChatJudge("m", base_url=server.url)))
        (score,) = closing(judge, batcher.run(RECORD, [Asks("three", three)]))
        assert len(server.received) == 1
    assert [score.status, score.cause] == ["failed", "rate_limited"]
    assert batcher.retry_after == 600


def test_of_several_waits_the_longest_is_handed_up() -> None:
    waits = iter((600.0, 5.0, None))

    def busy(question: Question, request: Request) -> Answer:
        error = RateLimited("slow down", retry_after=next(waits))
        raise error

    batcher = QuestionBatcher(judge=ScriptedJudge(busy), fuse="off")
    asyncio.run(batcher.run(RECORD, [Asks("three", three)]))
    assert next(waits, 0.0) == 0.0 and batcher.retry_after == 600


def test_the_schema_asks_for_every_key() -> None:
    with JudgeServer() as server:
        ask(server, METRICS)
    for request in server.received[:3]:
        schema = request.schema
        assert schema is not None
        assert schema["required"] == list(schema["properties"])
        asked = {key for key in schema["properties"] if not key.startswith(("q901_", "q902_"))}
        assert asked == request.questions.keys() and asked < schema["properties"].keys()
        assert filled(schema).keys() == schema["properties"].keys()


def test_keys_say_what_they_are_about() -> None:
    asked: list[Question] = [
        Supported(claim="A a."),
        Supported(claim="B b.", passage=1),
        Useful(context=1),
        Claims(),
        Relevant(text="A a.", of="answer"),
        Relevant(text="C c.", of="answer"),
    ]
    assert list(keyed(asked)) == ["s1a", "s2c2", "c2", "q4", "s1b", "s3b"]
    assert list(keyed([Supported(claim="A a."), Supported(claim="B b.")])) == ["s1", "s2"]
    both: list[Question] = [Useful(context=0), Useful(context=0, toward="reference")]
    assert list(keyed(both)) == ["c1", "c1a"]


@given(
    sizes=st.lists(st.integers(0, 40_000), min_size=1, max_size=4),
    characters=st.integers(500, 60_000),
    seed=st.integers(0, 99),
)
def test_a_view_that_was_cut_leaves_room_for_the_questions(
    sizes: list[int], characters: int, seed: int
) -> None:
    draw = random.Random(seed)
    # Stretches that bear on the question and others, in any order: what is kept has gaps everywhere.
    texts = [
        "".join(f"{draw.choice(['Ulm', 'Rain'])} {'is ' * 200}here. " for _ in range(size // 600))
        for size in sizes
    ]
    view = View(question="Where?", answer="Here.", contexts=tuple(Context(text=text) for text in texts))
    shown, left_out = fitted(view, [Supported(claim="Ulm.")], characters=characters)
    if left_out is None:
        return
    kept = [context.text for context in shown.contexts or ()]
    assert len(kept) == len(texts)
    assert size_of(shown) <= characters * 4 // 5
    marked = [int(count) for text in kept for count in re.findall(r"\[\.\.\. (\d+) characters", text)]
    assert sum(marked) == left_out


def test_long_contexts_are_cut_by_what_bears_on_the_questions() -> None:
    filler = "The weather was mild and nothing else was noted on that day. " * 60
    text = f"{filler}Einstein was born in Ulm in 1879. {filler}"
    record = replace(RECORD, contexts=(Context(text=text), Context(text=filler)))

    def evades_too(record: Record) -> MetricRun:
        yield [Noncommittal()]
        return (yield from three(record))

    with JudgeServer() as server:
        judge = ChatJudge("m", base_url=server.url, max_characters=4000)
        run = QuestionBatcher(judge=judge).run(record, [Asks("three", evades_too)])
        (score,) = closing(judge, run)
        _, got = server.received
    assert score.value == 1.0
    assert "Einstein was born in Ulm in 1879." in got.text
    assert len(got.text) < 4500
    assert re.search(r"\[\.\.\. \d+ characters left out \.\.\.\]", got.text)
    assert len(text) + len(filler) - 4000 < score.left_out < len(text) + len(filler)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_vectors_that_are_not_one_a_text_are_no_answer(count: int) -> None:
    class Short:
        name = "short"

        async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
            return [[1.0, 0.0]] * count, Usage()

        async def aclose(self) -> None: ...

    def vectors(record: Record) -> MetricRun:
        found = require((yield [Embed(text=text) for text in ("a", "b", "c")]), Vector)
        return scored("vectors", float(len(found)))

    judge = ScriptedJudge(lambda question, request: None)
    batcher = QuestionBatcher(judge=judge, embedder=Short())
    (score,) = asyncio.run(batcher.run(RECORD, [Asks("vectors", vectors)]))
    assert (score.status, score.cause) == ("failed", "malformed_reply")
    assert f"{count} vectors for 3 texts" in (score.explanation or "")


def test_one_metric_fails_without_the_others() -> None:
    with JudgeServer() as server:
        server.faults += [Fault(content='{"q1": {"claims": "not a list"}}')] * 2
        scores, _ = ask(server, [Asks("deep", deep), Asks("shallow", shallow)])
    assert scores["deep"].cause == "malformed_answer"
    assert scores["shallow"].value == 1.0


def test_fewer_questions_than_asked_for_are_enough() -> None:
    def two(request: Received) -> Any:
        asked_to_write = "different questions" in request.text
        return {"q1": {"questions": ["One?", "Two?"]} if asked_to_write else {"verdict": False}}

    with JudgeServer(two) as server:
        scores, _ = ask(server, [Asks("embeds", embeds)])
        assert len(server.prompts) == 2
    assert scores["embeds"].value == 2.0
