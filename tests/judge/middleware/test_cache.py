"""The cache of a judge: what it keeps, for which question, and what it never keeps."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from judge.middleware.busy import ONE, Busy, ask, down
from judge_server import JudgeServer
from steelyard.errors import ConfigurationError, JudgeUnavailable
from steelyard.judge import ChatJudge
from steelyard.judge.middleware import Cache, CircuitBreaker, Retry
from steelyard.judge.middleware._cache import uncached
from steelyard.judge.middleware._failures import layers
from steelyard.metrics import Faithfulness, score_record
from steelyard.online import Monitor
from steelyard.questions import (
    Answer,
    Choose,
    ChosenOption,
    Level,
    Rating,
    Reply,
    Request,
    Supported,
    Texts,
    Unanswered,
    View,
    YesNo,
)
from steelyard.record import Context, Record
from steelyard.scores import Evidence, Usage
from steelyard.testing import ScriptedJudge

LEVELS = ((0, "bad"), (0.5, "so so"), (1, "good"))

MANY = Request(
    view=View(question="Q?", contexts=(Context(text="c", id="1"),)),
    questions={
        "q1": Supported(claim="a"),
        "q2": Rating(instruction="?", levels=LEVELS, needs=frozenset({"question", "contexts"})),
        "q3": Choose(instruction="?", options=("x", "y"), needs=frozenset({"question", "contexts"})),
    },
)

GOOD: dict[str, Answer] = {
    "q1": YesNo(value=True, probability=0.75, reason="r", evidence=(Evidence(context=0, notes={"n": 1}),)),
    "q2": Level(value=0.5, probabilities={0: 0.25, 0.5: 0.75}),
    "q3": ChosenOption(value="x", probabilities={"x": 1.0}),
}


class Fixed(Busy):
    """A judge with a reply for everything."""

    capabilities = ScriptedJudge(lambda question, request: None).capabilities

    def __init__(self, answers: dict[str, Answer]) -> None:
        super().__init__()
        self.answers = answers

    async def answer(self, request: Request) -> Reply:
        await super().answer(request)
        return Reply(answers=self.answers, usage=Usage(requests=1, prompt_tokens=10))


@pytest.fixture(params=["memory", "file"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return None if request.param == "memory" else tmp_path / "deep" / "replies.db"


class TestCache:
    def test_asks_once_and_answers_alike(self, path: Path | None) -> None:
        inner = Fixed(GOOD)
        judge = Cache(inner, path=path)
        first, second = (asyncio.run(judge.answer(MANY)) for _ in range(2))
        asyncio.run(judge.aclose())
        assert first.answers == second.answers == GOOD
        assert second.usage == Usage()
        assert (inner.calls, judge.hits, judge.misses) == (1, 1, 1)

    def test_alike_at_the_same_time_asks_once(self, path: Path | None) -> None:
        inner = Busy(seconds=0.01)
        judge = Cache(inner, path=path)
        asyncio.run(ask(judge, 10))
        asyncio.run(judge.aclose())
        assert inner.calls == 1

    def test_the_second_in_line_asks_if_the_first_failed(self, path: Path | None) -> None:
        inner = Busy(down(), None, seconds=0.01)
        judge = Cache(inner, path=path)
        replies = asyncio.run(ask(judge, 3))
        asyncio.run(judge.aclose())
        assert [type(reply) for reply in replies] == [JudgeUnavailable, Reply, Reply]
        assert inner.calls == 2

    @pytest.mark.parametrize(
        "poor",
        [
            {},
            {"q1": Unanswered(cause="refused")},
            {"q2": Level(value=7)},
            {"q3": Texts(items=())},
            {"q1": YesNo(value=True, probability=float("nan"))},
        ],
    )
    def test_poor_replies_are_not_kept(self, poor: dict[str, Answer]) -> None:
        inner = Fixed({**GOOD, **poor} if poor else {})
        judge = Cache(inner)
        for _ in range(2):
            asyncio.run(judge.answer(MANY))
        assert inner.calls == 2

    def test_another_judge_or_wording_is_asked(self, path: Path | None, tmp_path: Path) -> None:
        shared = tmp_path / "shared.db"
        for name, version in (("a", "1"), ("b", "1"), ("a", "2")):
            inner = Busy()
            inner.name, inner.prompt_version = name, version
            judge = Cache(inner, path=shared)
            asyncio.run(judge.answer(ONE))
            asyncio.run(judge.aclose())
            assert inner.calls == 1

    def test_a_file_outlives_the_process(self, tmp_path: Path) -> None:
        first, second = Fixed(GOOD), Fixed({})
        for inner in (first, second):
            judge = Cache(inner, path=tmp_path / "replies.db")
            assert asyncio.run(judge.answer(MANY)).answers == GOOD
            asyncio.run(judge.aclose())
        assert (first.calls, second.calls) == (1, 0)
        if os.name == "posix":
            assert stat.S_IMODE((tmp_path / "replies.db").stat().st_mode) == 0o600

    async def test_the_least_recently_used_go_first(self, path: Path | None) -> None:
        inner = Busy()
        judge = Cache(inner, path=path, entries=3)

        for claim in ("a", "b", "c", "a", "d"):
            await judge.answer(Request(view=ONE.view, questions={"q1": Supported(claim=claim)}))
            await asyncio.sleep(0.002)
        await judge.aclose()
        before = inner.calls
        for claim in ("a", "c", "d"):
            await judge.answer(Request(view=ONE.view, questions={"q1": Supported(claim=claim)}))
        assert inner.calls == before
        await judge.answer(Request(view=ONE.view, questions={"q1": Supported(claim="b")}))
        assert inner.calls == before + 1
        await judge.aclose()

    @pytest.mark.parametrize("content", [b"no database at all, but long enough to look like one" * 50, None])
    def test_a_file_that_does_not_work_is_said_once(
        self, content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "replies.db"
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)
        inner = Busy()
        judge = Cache(inner, path=path)
        for _ in range(3):
            assert isinstance(asyncio.run(ask(judge))[0], Reply)
        asyncio.run(judge.aclose())
        assert inner.calls == 3
        assert len(caplog.records) == 1

    def test_a_row_that_is_no_reply_is_asked_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "replies.db"
        improbable = '{"q1": {"value": true, "probability": 7}}'
        for bad in (
            '{"q1": ["YesNo", {"value": "yes"}]}',
            "[]",
            '{"q1": ["Bomb", {}]}',
            "not JSON",
            improbable,
        ):
            judge = Cache(Busy(), path=path)
            asyncio.run(judge.answer(ONE))
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("UPDATE replies SET body = ?", (bad,))
            connection.close()
            assert asyncio.run(judge.answer(ONE)).answers == {"q1": YesNo(value=True)}
            assert judge.misses >= 1
            asyncio.run(judge.aclose())

    async def test_a_duplicate_record_is_judged_once(self) -> None:
        record = Record(id="1", question="Q?", contexts=(Context(text="c"),), answer="One. Two.")
        with JudgeServer() as server:
            async with aclosing(Cache(ChatJudge("m", base_url=server.url))) as judge:
                for id_ in ("1", "2"):
                    made = await score_record(record.replace(id=id_), [Faithfulness()], judge=judge)
                    assert made.scores[0].value == 1.0
            assert made.usage.requests == 0
            assert len(server.received) == 2

    def test_a_cache_needs_room(self) -> None:
        with pytest.raises(ConfigurationError):
            Cache(Busy(), entries=0)


async def test_tenants_share_nothing_that_was_kept() -> None:
    record = Record(question="Q?", contexts=(Context(text="c"),), answer="One. Two.")
    asked = []
    with JudgeServer() as server:
        async with aclosing(Cache(ChatJudge("m", base_url=server.url))) as judge:
            for tenant in ("acme", "bolt", None, "acme"):
                await score_record(record.replace(tenant=tenant), [Faithfulness()], judge=judge)
                asked.append(len(server.received))
    assert asked == [2, 4, 6, 6]


def test_the_judges_of_a_monitor_are_all_counted_whatever_they_are_for() -> None:
    def made(name: str) -> CircuitBreaker:
        return CircuitBreaker(Cache(ScriptedJudge(lambda question, request: YesNo(value=True), name=name)))

    judge, screen, own = (made(name) for name in ("judge", "screen", "own"))
    metrics = [Faithfulness(claims="whole"), Faithfulness(name="mine", claims="whole", judge=own)]
    monitor = Monitor(metrics=metrics, judge=judge, screen=screen, sinks=[])
    for number in range(2):
        passages = (Context(text="It lies in Rome."),)
        monitor.submit(Record(id=f"{number}", question="Where?", answer="In Rome.", contexts=passages))
    assert monitor.flush(60) == 0
    hits = [breaker.judge.hits for breaker in (judge, screen, own) if isinstance(breaker.judge, Cache)]
    assert hits == [1, 1, 1] and monitor.stats().cache_hits == 3
    assert monitor.stats().breakers == dict.fromkeys(("judge", "screen", "own"), "closed")
    monitor.close()


def test_to_ask_a_judge_without_its_caches_leaves_the_judge_as_it_was() -> None:
    judge = CircuitBreaker(Cache(Retry(ScriptedJudge(lambda question, request: YesNo(value=True)))))
    whole = [type(one) for one in layers(judge)]
    assert [type(one) for one in layers(uncached(judge))] == [CircuitBreaker, Retry, ScriptedJudge]
    assert [type(one) for one in layers(judge)] == whole == [CircuitBreaker, Cache, Retry, ScriptedJudge]


@pytest.mark.parametrize(("asked", "wait"), [(None, 30.0), (0.0, 30.0), (5.0, 30.0), (90.0, 90.0)])
def test_a_breaker_waits_its_own_time_at_least_and_longer_where_a_server_asks_it_to(
    asked: float | None, wait: float
) -> None:
    def away(question: object, request: object) -> Answer:
        error = JudgeUnavailable("away", cause="unreachable")
        error.retry_after = asked
        raise error

    now = [0.0]
    breaker = CircuitBreaker(ScriptedJudge(away), failures=1, reset_after=30.0, clock=lambda: now[0])
    with pytest.raises(JudgeUnavailable):
        asyncio.run(breaker.answer(ONE))
    found = []
    for now[0] in (0.0, wait - 1, wait):
        found.append(breaker.state)
    assert found == ["open", "open", "half_open"]
