"""Traffic control: each wrapper alone, with a clock or a server that misbehaves on cue."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from judge.middleware.busy import ONE, Busy, ask, down
from judge_server import Fault, JudgeServer
from steelyard.errors import (
    Cause,
    ConfigurationError,
    JudgeError,
    JudgeRejected,
    JudgeUnavailable,
    MalformedReply,
    RateLimited,
)
from steelyard.judge import ChatJudge
from steelyard.judge.middleware import (
    AdaptiveConcurrency,
    Cache,
    CircuitBreaker,
    RateLimit,
    Retry,
    RetryPolicy,
)
from steelyard.metrics import Faithfulness, score_record
from steelyard.questions import Judge, Reply, Request, View, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Usage


def limited(after: float | None = None) -> RateLimited:
    return RateLimited("slow down", retry_after=after)


def rejected(cause: Cause = "unauthorized") -> JudgeRejected:
    return JudgeRejected("no", cause=cause)


@pytest.mark.parametrize(
    "wrap",
    [
        AdaptiveConcurrency,
        Retry,
        CircuitBreaker,
        Cache,
        lambda judge: RateLimit(judge, requests_per_minute=60, tokens_per_minute=10_000),
    ],
)
def test_a_wrapper_is_the_judge_it_wraps(wrap: Callable[[Judge], Judge]) -> None:
    inner = Busy()
    judge = wrap(inner)
    assert isinstance(judge, Judge)
    assert (judge.name, judge.prompt_version) == (inner.name, inner.prompt_version)
    assert judge.capabilities is inner.capabilities
    reply = asyncio.run(judge.answer(ONE))
    assert reply.answers == {"q1": YesNo(value=True)}
    asyncio.run(judge.aclose())
    assert inner.closed == 1


class TestRetry:
    def test_counts_every_request(self) -> None:
        inner = Busy(down(), limited(0), None)
        judge = Retry(inner, RetryPolicy(first_wait=0))
        assert asyncio.run(judge.answer(ONE)).usage.requests == 3

    def test_the_last_error_goes_up_with_the_whole_bill(self) -> None:
        inner = Busy(*[down() for _ in range(9)])
        with pytest.raises(JudgeUnavailable) as caught:
            asyncio.run(Retry(inner, RetryPolicy(retries=2, first_wait=0)).answer(ONE))
        assert caught.value.requests == inner.calls == 3

    @pytest.mark.parametrize("error", [rejected(), MalformedReply("?"), limited(600)])
    def test_what_will_not_pass_soon_is_not_waited_for(self, error: JudgeError) -> None:
        inner = Busy(error)
        with pytest.raises(type(error)):
            asyncio.run(Retry(inner).answer(ONE))
        assert inner.calls == 1


class TestAdaptiveConcurrency:
    def test_starts_at_the_most(self) -> None:
        inner = Busy(seconds=0.005)
        asyncio.run(ask(AdaptiveConcurrency(inner, most=5), 20))
        assert inner.peak == 5

    async def test_halves_once_for_a_round_of_failures_and_recovers(self) -> None:
        inner = Busy(*[limited() for _ in range(16)], seconds=0.002)
        judge = AdaptiveConcurrency(inner, most=16)
        with pytest.raises(ConfigurationError, match="at least 1"):
            AdaptiveConcurrency(inner, most=1, least=2)

        await ask(judge, 16)
        assert judge.concurrency == 8
        inner.peak = 0
        await ask(judge, 100)
        assert 8 <= inner.peak < 16
        await ask(judge, 400)
        assert judge.concurrency == 16

    async def test_every_place_that_came_back_is_used_while_others_wait(self) -> None:
        inner = Busy(*[limited() for _ in range(3)], seconds=0.001)
        judge = AdaptiveConcurrency(inner, most=4)
        for _ in range(3):
            await ask(judge)
        assert judge.concurrency == 1
        inner.peak = 0
        await ask(judge, 40)
        assert inner.peak == 4

    def test_in_one_loop_after_the_other(self) -> None:
        judge = AdaptiveConcurrency(Busy(seconds=0.001), most=1)
        for _ in range(3):
            assert len(asyncio.run(ask(judge, 3))) == 3

    async def test_goes_down_to_the_least(self) -> None:
        judge = AdaptiveConcurrency(Busy(*[down("timeout") for _ in range(40)]), most=16, least=2)
        for _ in range(10):
            await ask(judge)
        assert judge.concurrency == 2

    def test_a_broken_server_is_no_congestion(self) -> None:
        judge = AdaptiveConcurrency(Busy(*[down() for _ in range(10)]), most=16)
        asyncio.run(ask(judge, 10))
        assert judge.concurrency == 16

    async def test_who_leaves_while_waiting_takes_no_place_along(self) -> None:
        inner = Busy(seconds=0.02)
        judge = AdaptiveConcurrency(inner, most=1)
        jobs = [asyncio.ensure_future(judge.answer(ONE)) for _ in range(6)]
        await asyncio.sleep(0)
        for job in jobs[1:4]:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        assert inner.calls == 3
        # Cancelled in the very moment in which its turn comes, and before it can take it.
        second: list[asyncio.Task[Reply]] = []

        async def first() -> None:
            await judge.answer(ONE)
            second[0].cancel()

        leaving = asyncio.create_task(first())
        await asyncio.sleep(0)
        second.append(asyncio.create_task(judge.answer(ONE)))
        await asyncio.gather(leaving, *second, return_exceptions=True)
        assert second[0].cancelled()
        assert isinstance((await asyncio.wait_for(judge.answer(ONE), 1)), Reply)

    async def test_on_the_wire(self) -> None:
        with JudgeServer(latency=0.02) as server:
            server.faults += [Fault(status=429, headers={"retry-after": "0"})] * 8
            judge = ChatJudge("m", base_url=server.url, concurrency=8)
            await ask(judge, 8)
            server.peak = 0
            await ask(judge, 16)
            await judge.aclose()
            assert server.peak < 8


class Dear(Busy):
    async def answer(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        return Reply(answers={}, usage=Usage(requests=1, prompt_tokens=1000))


class TestRateLimit:
    def test_requests(self) -> None:
        started = time.monotonic()
        asyncio.run(ask(RateLimit(Busy(), requests_per_minute=10, period=0.5), 16))
        # Ten at once, six more at ten in half a second.
        assert 0.25 <= time.monotonic() - started < 20  # in a minute it would be 36

    @pytest.mark.parametrize(("requests", "period", "least", "most"), [(2, 1000, 0, 60), (3, 0.5, 0.15, 60)])
    async def test_tokens_are_charged_afterwards_too(
        self, requests: int, period: float, least: float, most: float
    ) -> None:
        """The first is estimated at some 200 and costs 1000; the second is charged with the rest."""
        judge = RateLimit(Dear(), tokens_per_minute=1500, period=period)
        started = time.monotonic()
        for _ in range(requests):
            await judge.answer(ONE)
        assert least <= time.monotonic() - started < most

    async def test_what_was_underestimated_is_charged_once(self) -> None:
        class Once(Busy):
            async def answer(self, request: Request) -> Reply:
                self.calls += 1
                return Reply(answers={}, usage=Usage(requests=1, prompt_tokens=1000 * (self.calls == 1)))

        judge = RateLimit(Once(), tokens_per_minute=1500, period=1000)
        async with asyncio.timeout(60):
            for _ in range(3):
                await judge.answer(ONE)

    async def test_what_several_at_once_were_underestimated_is_charged_for_each(self) -> None:
        judge = RateLimit(Dear(), tokens_per_minute=2000, period=10_000)
        await ask(judge, 2)
        # Each was estimated at some 200, so that 1,600 are owed and 1,600 left.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await judge.answer(ONE)

    async def test_the_passages_of_a_request_are_charged_beforehand(self) -> None:
        long = Context(text="The tower is high. " * 200)
        request = replace(ONE, view=View(contexts=(long,), reference_contexts=(long,)))
        judge = RateLimit(Busy(), tokens_per_minute=1500, period=0.5)
        started = time.monotonic()
        for _ in range(3):
            await judge.answer(request)
        # Some 1,900 tokens each, of which 1,500 pass in half a second.
        assert time.monotonic() - started > 0.8

    def test_more_than_a_minute_s_worth_passes_alone(self) -> None:
        judge = RateLimit(Busy(), tokens_per_minute=10, period=0.05)
        assert isinstance(asyncio.run(ask(judge))[0], Reply)


class TestBreaker:
    def make(self, *errors: JudgeError | None, **options: Any) -> tuple[CircuitBreaker, Busy, list[float]]:
        now = [0.0]
        inner = Busy(*errors)
        return CircuitBreaker(inner, failures=3, reset_after=10, clock=lambda: now[0], **options), inner, now

    def one(self, judge: Judge) -> Reply | BaseException:
        return asyncio.run(ask(judge))[0]

    def test_opens_after_failures_in_a_row(self, caplog: pytest.LogCaptureFixture) -> None:
        judge, inner, _ = self.make(down(), down(), None, down(), down(), down())
        for _ in range(6):
            self.one(judge)
        assert judge.state == "open"
        for _ in range(10):
            error = self.one(judge)
            assert isinstance(error, JudgeUnavailable)
            assert (error.cause, error.requests, error.retry_after) == ("breaker_open", 0, 10)
        assert inner.calls == 6
        assert [record.levelname for record in caplog.records] == ["WARNING"]

    def test_tries_once_when_the_time_has_come(self, caplog: pytest.LogCaptureFixture) -> None:
        judge, inner, now = self.make(down(), down(), down(), down(), None)
        for _ in range(3):
            self.one(judge)
        now[0] = 10
        assert judge.state == "half_open"
        self.one(judge)
        assert (judge.state, inner.calls) == ("open", 4)
        now[0] = 20
        inner.seconds = 0.01
        replies = asyncio.run(ask(judge, 5))
        assert [isinstance(reply, Reply) for reply in replies] == [True, False, False, False, False]
        assert (judge.state, inner.calls) == ("closed", 5)
        assert "answers again" in caplog.text

    async def test_a_failure_of_a_request_sent_before_it_opened_keeps_it_open_no_longer(self) -> None:
        judge, inner, now = self.make(*[down()] * 4)

        inner.seconds = 0.5
        first = asyncio.create_task(judge.answer(ONE))
        await asyncio.sleep(0)
        assert inner.inside == 1
        inner.seconds = 0.0
        await ask(judge, 3)
        now[0] = 5
        with pytest.raises(JudgeUnavailable):
            await first
        assert (judge.state, inner.calls) == ("open", 4)
        now[0] = 10
        assert judge.state == "half_open"

    def test_waits_as_long_as_the_server_wants(self) -> None:
        judge, _, now = self.make(limited(600), limited(600), limited(600))
        for _ in range(3):
            self.one(judge)
        states = []
        for now[0] in (599, 600):
            states.append(judge.state)
        assert states == ["open", "half_open"]

    @pytest.mark.parametrize("cause", ["unauthorized", "unknown_model", "quota_exceeded"])
    def test_a_rejection_is_for_good_and_one_line(
        self, cause: Cause, caplog: pytest.LogCaptureFixture
    ) -> None:
        judge, inner, now = self.make(rejected(cause))
        for _ in range(20):
            error = self.one(judge)
            assert isinstance(error, JudgeRejected)
            assert error.cause == cause
        now[0] = 1e9
        assert (judge.state, inner.calls) == ("rejected", 1)
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        judge.reset()
        assert isinstance(self.one(judge), Reply)

    def test_a_bad_request_or_nonsense_is_no_failure_of_the_judge(self) -> None:
        judge, inner, _ = self.make(*[MalformedReply("?") for _ in range(5)], *[rejected("bad_request")] * 5)
        for _ in range(10):
            self.one(judge)
        assert (judge.state, inner.calls) == ("closed", 10)

    def test_a_reply_ends_a_row_of_failures_however_bad_it_is(self) -> None:
        judge, inner, _ = self.make(down(), down(), MalformedReply("?"), down(), down())
        for _ in range(5):
            self.one(judge)
        assert (judge.state, inner.calls) == ("closed", 5)

    async def told(self, server: JudgeServer, *answers: str) -> list[str]:
        """What a breaker around a real server says of some answers."""
        judge = CircuitBreaker(ChatJudge("m", base_url=server.url))
        told = []
        for answer in answers:
            record = Record(contexts=(Context(text="c"),), answer=answer)
            (score,) = (await score_record(record, [Faithfulness()], judge=judge)).scores
            told.append(f"{score.cause} {score.explanation}")
        await judge.aclose()
        return told

    async def test_with_a_real_server(self, caplog: pytest.LogCaptureFixture) -> None:
        with JudgeServer() as server:
            server.faults += [Fault(status=401)] * 10
            told = await self.told(server, *["One. Two."] * 5)
            assert [one.split()[0] for one in told] == ["unauthorized"] * 5
            assert len(server.received) == 1
        assert len(caplog.records) == 1

    @pytest.mark.parametrize("answer", ["Anna Berg owes 512 crowns.", "Anna B."])
    async def test_a_rejection_that_quotes_its_turn_is_told_without_it(
        self, answer: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        with JudgeServer() as server:
            server.faults += [Fault(status=401, message=f"bad input: {answer!r}")] * 10
            _, another = await self.told(server, answer, "One. Two.")
        assert another.startswith("unauthorized") and "`steelyard doctor`" in another
        assert "Anna" not in another + caplog.text

    def test_a_rejection_in_a_servers_own_words_is_told_in_them(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        judge, _, _ = self.make(JudgeRejected("there is no model m-7 here", cause="unknown_model"))
        self.one(judge)
        assert "there is no model m-7 here" in caplog.text
