"""ChatJudge against a loopback server: the wire, the faults, the manners it learns."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from judge_server import Fault, JudgeServer, Received
from steelyard.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRejected,
    JudgeUnavailable,
    MalformedReply,
    RateLimited,
)
from steelyard.judge import ChatJudge
from steelyard.judge.middleware import RetryPolicy
from steelyard.questions import (
    Choose,
    ChosenOption,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Level,
    Noncommittal,
    Predicate,
    Question,
    Rating,
    Relevant,
    Reply,
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
from steelyard.scores import Evidence

VIEW = View(
    question="Where was Einstein born?",
    contexts=(Context(text="Einstein was born in Ulm."), Context(text="Ulm lies on the Danube.")),
    answer="In Ulm.",
)
NEEDS = frozenset[Any]({"answer"})
RATING = Rating(instruction="How good?", levels=((0, "bad"), (1, "fair"), (2, "good")), needs=NEEDS)


def request(*questions: Question, view: View = VIEW) -> Request:
    return Request(view=view, questions={f"q{n}": q for n, q in enumerate(questions, start=1)})


ONE = request(Supported(claim="Einstein was born in Ulm."))


def ask(server: JudgeServer | str, what: Request = ONE, *, times: int = 1, **options: Any) -> Reply:
    """The last of so many replies by one judge."""
    url = server if isinstance(server, str) else server.url

    async def main(judge: ChatJudge) -> Reply:
        try:
            for _ in range(times - 1):
                await judge.answer(what)
            return await judge.answer(what)
        finally:
            await judge.aclose()

    return asyncio.run(main(ChatJudge("m", base_url=url, **options)))


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backoff without the waiting; Retry-After is waited for."""
    monkeypatch.setattr("steelyard.judge.chat._judge.RetryPolicy", partial(RetryPolicy, first_wait=0.0))


def test_every_kind_comes_back_in_its_own_form() -> None:
    asked = request(
        Supported(claim="A."),
        Contradicted(claim="B."),
        Useful(context=1),
        Relevant(text="C."),
        Same(claim="D.", among="answer", of="reference"),
        Noncommittal(),
        Predicate(criterion="Is it short?", needs=NEEDS),
        RATING,
        Choose(instruction="Which?", options=("red", "blue"), needs=NEEDS),
        Claims(),
        Entities(of="answer"),
        GeneratedQuestions(count=2),
    )
    with JudgeServer() as server:
        reply = ask(server, asked)
    forms = [type(answer) for answer in reply.answers.values()]
    assert forms == [YesNo] * 7 + [Level, ChosenOption] + [Texts] * 3
    assert reply.answers["q8"] == Level(value=2, reason="because")
    assert reply.answers["q9"] == ChosenOption(value="red", reason="because")
    assert reply.answers["q12"] == Texts(items=("One.", "Two."))


def test_the_body_on_the_wire() -> None:
    with JudgeServer() as server:
        ask(server, api_key="sk-mine", max_tokens=99)
    (got,) = server.received
    assert got.path == "/v1/chat/completions"
    assert got.headers["authorization"] == "Bearer sk-mine"
    assert got.body["model"] == "m"
    assert got.body["temperature"] == 0
    assert got.body["max_tokens"] == 99
    assert got.body["response_format"]["json_schema"]["strict"] is True
    assert got.questions == {"q1": "Einstein was born in Ulm."}


def test_usage_is_the_server_s() -> None:
    with JudgeServer() as server:
        usage = ask(server).usage
    assert usage.requests == 1
    assert usage.prompt_tokens > usage.cached_tokens > 0
    assert usage.completion_tokens > 0
    assert usage.seconds > 0


def test_a_yes_names_its_context() -> None:
    with JudgeServer(lambda r: {"q1": {"reason": "there", "context": 2, "verdict": True}}) as server:
        answer = ask(server).answers["q1"]
    assert answer == YesNo(value=True, reason="there", evidence=(Evidence(context=1),))


@pytest.mark.parametrize(
    ("fault", "error", "cause"),
    [
        (Fault(status=401), JudgeRejected, "unauthorized"),
        (Fault(status=403), JudgeRejected, "unauthorized"),
        (Fault(status=404, code="model_not_found"), JudgeRejected, "unknown_model"),
        (Fault(status=400, code="model_not_found"), JudgeRejected, "unknown_model"),
        (Fault(status=429, code="insufficient_quota"), JudgeRejected, "quota_exceeded"),
        (Fault(status=413), JudgeRejected, "too_large"),
        (Fault(status=429, headers={"retry-after": "600"}), RateLimited, "rate_limited"),
        (Fault(raw=b"<html>502</html>"), MalformedReply, "malformed_reply"),
        (Fault(raw=b"[1, 2]"), MalformedReply, "malformed_reply"),
        (Fault(raw=b'{"choices": []}'), MalformedReply, "malformed_reply"),
        (Fault(status=307, headers={"location": "http://127.0.0.1:1/v1"}), JudgeRejected, "redirected"),
    ],
)
def test_what_will_not_pass_is_named_at_once(fault: Fault, error: type[JudgeError], cause: str) -> None:
    with JudgeServer() as server:
        server.faults += [fault] * 3
        with pytest.raises(error) as caught:
            ask(server)
        assert len(server.received) == caught.value.requests == 1
    assert caught.value.cause == cause


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault(status=500), "server_error"),
        (Fault(status=503, headers={"retry-after": "0"}), "server_error"),
        (Fault(status=429, headers={"retry-after": "0.01"}), "rate_limited"),
        (Fault(status=429), "rate_limited"),
        (Fault(drop=True), "unreachable"),
        (Fault(hang=5), "timeout"),
        (Fault(drip=0.05), "timeout"),
    ],
    ids=["500", "503", "429", "429 without a wait", "dropped", "hang", "drip"],
)
def test_what_may_pass_is_asked_again_and_counted(fault: Fault, cause: str) -> None:
    with JudgeServer() as server:
        server.faults += [fault] * 2
        reply = ask(server, timeout=0.5, retries=2)
        assert len(server.received) == 3
        assert reply.usage.requests == 3
        assert isinstance(reply.answers["q1"], YesNo)
        server.faults += [fault] * 2
        with pytest.raises(JudgeUnavailable) as caught:
            ask(server, timeout=0.5, retries=1)
    assert caught.value.cause == cause
    assert caught.value.requests == 2


def test_retry_after_is_kept() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "0.4"}))
        started = time.monotonic()
        ask(server)
    assert time.monotonic() - started >= 0.4


def test_a_date_in_retry_after_is_understood() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(status=429, headers={"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}))
        with pytest.raises(RateLimited) as caught:
            ask(server)
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 1e8


def test_nobody_there() -> None:
    with pytest.raises(JudgeUnavailable, match=r"127\.0\.0\.1:9") as caught:
        ask("http://127.0.0.1:9/v1", retries=1)
    assert caught.value.cause == "unreachable"
    assert caught.value.requests == 2


def test_a_server_without_schemas_is_asked_in_json_mode_from_then_on() -> None:
    def think(got: Received) -> Any:
        assert '"additionalProperties":false' in got.text
        return "```json\n" + '{"q1": {"reason": "r", "context": 1, "verdict": true}}' + "\n```"

    with JudgeServer(think) as server:
        server.refuse = lambda body: "json_schema is not supported" if "json_schema" in str(body) else None
        reply = ask(server, times=2)
    kinds = [r.body.get("response_format", {}).get("type") for r in server.received]
    assert kinds == ["json_schema", "json_object", "json_object"]
    assert isinstance(reply.answers["q1"], YesNo)
    assert reply.usage.requests == 1


def test_a_server_without_json_mode_is_asked_in_words() -> None:
    with JudgeServer(lambda got: ' {"q1": {"context": 0, "verdict": "no"}}\n') as server:
        server.refuse = lambda body: "unknown field" if "response_format" in body else None
        reply = ask(server, times=2)
    kinds = [r.body.get("response_format", {}).get("type") for r in server.received]
    assert kinds == ["json_schema", "json_object", None, None]
    assert reply.answers["q1"] == YesNo(value=False)


def test_a_request_that_is_bad_in_any_form_teaches_nothing() -> None:
    with JudgeServer() as server:
        server.refuse = lambda body: "bad in every way"
        with pytest.raises(JudgeRejected):
            ask(server)
        assert len(server.received) == 3

    async def main(server: JudgeServer) -> None:
        judge = ChatJudge("m", base_url=server.url)
        server.faults += [Fault(status=400)] * 3
        with pytest.raises(JudgeRejected):
            await judge.answer(ONE)
        await judge.answer(ONE)
        await judge.aclose()
        assert "json_schema" in server.received[-1].body["response_format"]

    with JudgeServer() as server:
        asyncio.run(main(server))


def test_a_full_context_window_is_no_matter_of_form() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(status=400, message="This model's maximum context length is 8 tokens"))
        with pytest.raises(JudgeRejected) as caught:
            ask(server)
        assert len(server.received) == 1
    assert caught.value.cause == "bad_request"


@pytest.mark.parametrize(
    ("option", "message", "then"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0", {}),
        ("max_tokens", "Use 'max_completion_tokens' instead of max_tokens", {"max_completion_tokens": 50}),
        ("logprobs", "logprobs are not supported with reasoning models", {}),
    ],
)
def test_an_option_the_model_dislikes_is_left_out(option: str, message: str, then: dict[str, Any]) -> None:
    with JudgeServer() as server:
        server.refuse = lambda body: message if option in body else None
        reply = ask(server, times=2, max_tokens=50, logprobs=True)
    assert [option in r.body for r in server.received] == [True, False, False]
    assert server.received[-1].body.items() >= then.items()
    assert "json_schema" in server.received[-1].body["response_format"]
    assert reply.usage.requests == 1


def test_a_server_that_ignores_the_schema_gets_it_in_words_next() -> None:
    with JudgeServer(
        lambda got: '{"q1": true}' if "additionalProperties" in got.text else "Yes, it is."
    ) as server:
        reply = ask(server, times=2)
    assert isinstance(reply.answers["q1"], YesNo)
    assert ["additionalProperties" in r.text for r in server.received] == [False, True]


def test_a_refusal_answers_nothing_and_is_paid_for() -> None:
    with JudgeServer() as server:
        server.faults.append(
            Fault(edit=lambda body: body["choices"][0].update(finish_reason="content_filter"))
        )
        reply = ask(server)
    assert reply.answers == {"q1": Unanswered(cause="refused", detail="the model refused")}
    assert reply.usage.prompt_tokens > 0


def tokens_of(content: str) -> list[dict[str, Any]]:
    """Tokens of a reply; every verdict was drawn with probability .8, every level with .5."""
    found = []
    for piece in re.findall(r" ?\w+|\W", content):
        options = {"true": {"true": 0.8, "false": 0.2}, "2": {"2": 0.5, "1": 0.3, "0": 0.2}}
        weights = options.get(piece.strip(), {piece.strip(): 1.0})
        blank = piece[: len(piece) - len(piece.lstrip())]
        top = [{"token": blank + word, "logprob": math.log(p)} for word, p in weights.items()]
        found.append({"token": piece, "logprob": top[0]["logprob"], "top_logprobs": top})
    return found


def test_log_probabilities_become_probabilities() -> None:
    asked = request(Supported(claim="A."), Noncommittal(), RATING)
    with JudgeServer() as server:
        server.logprobs = tokens_of
        answers = ask(server, asked, logprobs=True).answers
    for key in ("q1", "q2"):
        answer = answers[key]
        assert isinstance(answer, YesNo)
        assert answer.probability == pytest.approx(0.8)
    level = answers["q3"]
    assert isinstance(level, Level)
    assert level.probabilities == {2: pytest.approx(0.5), 1: pytest.approx(0.3), 0: pytest.approx(0.2)}


def test_a_quoted_verdict_lends_no_probability() -> None:
    reason = 'it says \\"verdict\\": true'
    with JudgeServer(
        lambda got: f'{{"q1": {{"reason": "{reason}", "context": 1, "verdict": false}}}}'
    ) as server:
        server.logprobs = tokens_of
        answer = ask(server, logprobs=True).answers["q1"]
    assert isinstance(answer, YesNo)
    assert answer.value is False
    assert answer.probability == pytest.approx(0.0)


def test_log_probabilities_that_do_not_spell_the_reply_are_left_aside() -> None:
    with JudgeServer() as server:
        server.logprobs = lambda content: tokens_of(content)[1:]
        answer = ask(server, logprobs=True).answers["q1"]
    assert isinstance(answer, YesNo)
    assert answer.probability is None


def test_tokens_may_split_letters_and_have_markup_around_them() -> None:
    def split(content: str) -> list[dict[str, Any]]:
        found = [{"token": "<start>", "logprob": 0.0}]
        for token in tokens_of(content):
            whole = token["token"].encode()
            for at in range(len(whole)) if len(whole) > 1 and not whole.isascii() else [None]:
                piece = whole if at is None else whole[at : at + 1]
                found.append({**token, "token": piece.decode("utf-8", "replace"), "bytes": list(piece)})
        return [*found, {"token": "<end>", "logprob": 0.0}]

    with JudgeServer(lambda got: '{"q1": {"reason": "Größe 😀", "context": 1, "verdict": true}}') as server:
        server.logprobs = split
        answer = ask(server, logprobs=True).answers["q1"]
    assert isinstance(answer, YesNo)
    assert answer.probability == pytest.approx(0.8)


def test_a_distribution_over_something_else_is_no_probability() -> None:
    def elsewhere(content: str) -> list[dict[str, Any]]:
        return [{**token, "logprob": -3.0, "top_logprobs": []} for token in tokens_of(content)]

    with JudgeServer() as server:
        server.logprobs = elsewhere
        answer = ask(server, logprobs=True).answers["q1"]
    assert isinstance(answer, YesNo)
    assert answer.probability is None


def test_log_probabilities_are_not_asked_for_unless_wanted() -> None:
    with JudgeServer() as server:
        ask(server)
    assert "logprobs" not in server.received[0].body


def test_without_reasons_the_schema_is_smaller_and_the_wording_another() -> None:
    with JudgeServer() as server:
        ask(server, reasons=False)
    assert "reason" not in str(server.received[0].body)
    brief = ChatJudge("m", base_url="http://127.0.0.1:9", reasons=False)
    assert brief.prompt_version != ChatJudge("m", base_url="http://127.0.0.1:9").prompt_version


def test_repeats_in_the_same_words_are_drawn_not_copied() -> None:
    with JudgeServer() as server:
        ask(server, request(Noncommittal(sample=1)))
        ask(server, request(Noncommittal(sample=2)))
    assert [r.body["temperature"] for r in server.received] == [0, 0.7]


def crowd(server: JudgeServer, count: int, **options: Any) -> None:
    async def main() -> None:
        judge = ChatJudge("m", base_url=server.url, **options)
        await asyncio.gather(*(judge.answer(ONE) for _ in range(count)))
        await judge.aclose()

    asyncio.run(main())


def test_requests_in_flight_and_connections_are_limited() -> None:
    with JudgeServer(latency=0.02) as server:
        crowd(server, 40, concurrency=4)
    assert server.peak == 4
    assert server.connections <= 4


def test_one_judge_in_several_loops_one_after_the_other() -> None:
    with JudgeServer() as server:
        judge = ChatJudge("m", base_url=server.url)

        async def once() -> Reply:
            try:
                return await judge.answer(ONE)
            finally:
                await judge.aclose()

        for _ in range(3):
            assert isinstance(asyncio.run(once()).answers["q1"], YesNo)


def test_a_cancelled_request_leaves_nothing_behind() -> None:
    async def main(server: JudgeServer) -> None:
        judge = ChatJudge("m", base_url=server.url, concurrency=1)
        server.faults.append(Fault(hang=5))
        first = asyncio.ensure_future(judge.answer(ONE))
        await asyncio.sleep(0.1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert isinstance((await judge.answer(ONE)).answers["q1"], YesNo)
        await judge.aclose()

    with JudgeServer() as server:
        asyncio.run(main(server))


class TestKeys:
    """Where a key goes, and where it does not."""

    def sent(self, **options: Any) -> Received:
        with JudgeServer() as server:
            ask(server, **options)
        return server.received[0]

    def test_a_key_in_the_environment_is_not_sent_elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: gateway-secret")
        assert "secret" not in str(self.sent().headers)

    def test_a_key_that_was_given_is(self) -> None:
        assert self.sent(api_key="sk-given").headers["authorization"] == "Bearer sk-given"

    def test_the_environment_as_a_whole_names_a_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def main(judge: ChatJudge) -> None:
            await judge.answer(ONE)
            await judge.aclose()

        with JudgeServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
            asyncio.run(main(ChatJudge("m")))
        assert server.received[0].headers["authorization"] == "Bearer sk-env"

    def test_no_key_is_found_out_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
            ChatJudge("m")

    def test_no_secret_in_words(self) -> None:
        judge = ChatJudge("m", base_url="http://127.0.0.1:9/v1", api_key="sk-secret")
        assert "secret" not in f"{judge!r} {judge.name} {judge.__dict__!r}"
        with pytest.raises(JudgeUnavailable) as caught:
            asyncio.run(closing(judge, judge.answer(ONE)))
        assert "secret" not in str(caught.value)


async def closing(judge: ChatJudge, doing: Awaitable[Reply]) -> Reply:
    try:
        return await doing
    finally:
        await judge.aclose()


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"retries": -1},
        {"concurrency": 0},
        {"base_url": "localhost:8000"},
        {"model": " "},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ChatJudge(**{"model": "m", "base_url": "http://127.0.0.1:9", **options})


def test_one_judge_in_many_threads_at_once() -> None:
    def work(judge: ChatJudge) -> list[Reply]:
        async def main() -> list[Reply]:
            try:
                return list(await asyncio.gather(*(judge.answer(ONE) for _ in range(5))))
            finally:
                await judge.aclose()

        return [reply for _ in range(3) for reply in asyncio.run(main())]

    with JudgeServer() as server, ThreadPoolExecutor(8) as threads:
        judge = ChatJudge("m", base_url=server.url, concurrency=2)
        replies = [reply for found in threads.map(work, [judge] * 8) for reply in found]
    assert len(replies) == 120
    assert all(isinstance(reply.answers["q1"], YesNo) for reply in replies)


def test_reasoning_at_length_comes_first_and_is_nobodys_answer() -> None:
    def think(got: Received) -> Any:
        assert got.schema is not None
        assert next(iter(got.schema["properties"])) == "thoughts"
        return {"thoughts": "Long. " * 50, "q1": {"reason": "so", "context": 1, "verdict": True}}

    with JudgeServer(think) as server:
        reply = ask(server, reasoning="long")
        (prompt,) = server.prompts
    assert reply.answers == {"q1": YesNo(value=True, reason="so", evidence=(Evidence(context=0),))}
    assert "15 words" not in prompt
    assert ChatJudge("m", base_url=server.url, reasoning="long").prompt_version.endswith("-long")


def test_contradicting_wishes_for_reasoning_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="contradict"):
        ChatJudge("m", base_url="http://127.0.0.1:1/v1", reasons=False, reasoning="long")
    with pytest.raises(ConfigurationError, match="'none', 'short', 'long'"):
        ChatJudge("m", base_url="http://127.0.0.1:1/v1", reasoning="deep")  # type: ignore[arg-type]


def test_a_server_that_takes_no_lengths_of_lists_gets_none() -> None:
    wish = Request(view=VIEW, questions={"q1": GeneratedQuestions()})
    with JudgeServer() as server:
        server.refuse = lambda body: "minItems is not supported" if "minItems" in str(body) else None
        reply = ask(server, wish)
        last = server.received[-1]
    assert isinstance(reply.answers["q1"], Texts)
    assert last.body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("question", "answer", "written"),
    [
        ("Wann wurde die Mühle gebaut?", "Sie wurde 1742 gebaut.", "Wann entstand die Mühle?"),
        ("茶厂建于哪一年？", "茶厂建于1956年。", "茶厂是什么时候建立的？"),
        ("متى تأسست المدرسة؟", "تأسست المدرسة عام 1948.", "في أي عام تأسست المدرسة؟"),
    ],
)
def test_the_language_of_the_material_is_asked_for_and_kept(question: str, answer: str, written: str) -> None:
    view = View(question=question, answer=answer)
    asked: dict[str, Question] = {"q1": Claims(), "q2": GeneratedQuestions(count=1)}

    def think(got: Received) -> Any:
        assert "in its language" in got.text
        assert "in the language of the answer" in got.text
        assert question in got.text
        assert answer in got.text
        return {"q1": {"claims": [answer]}, "q2": {"questions": [written]}}

    with JudgeServer(think) as server:
        reply = ask(server, Request(view=view, questions=asked))
    assert reply.answers == {"q1": Texts(items=(answer,)), "q2": Texts(items=(written,))}


def test_the_second_rating_sees_the_material_in_reverse_order() -> None:
    usual, swapped = (replace(RATING, needs=NEEDS | {"question"}, swapped=flag) for flag in (False, True))
    with JudgeServer() as server:
        for rating in (usual, swapped):
            ask(server, Request(view=VIEW, questions={"q1": rating}))
        first, second = server.prompts
    heads = [re.findall(r"(?m)^(?:<<<)?\w+ (context c\d|question|answer)$", text) for text in (first, second)]
    assert heads[0] == ["context c1", "context c2", "question", "answer"]
    assert heads[1] == ["answer", "question", "context c1", "context c2"]
