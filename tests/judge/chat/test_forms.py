"""What a server can take: schemas, JSON mode, options and log probabilities, or none of them."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from judge.asked import ONE, RATING, answered, ask, request
from judge_server import Fault, JudgeServer, Received
from steelyard.errors import JudgeRejected
from steelyard.judge import ChatJudge
from steelyard.questions import Level, Noncommittal, Supported, Unanswered, YesNo


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


@pytest.mark.parametrize("said", [" True", "YES", "false ", "No"])
def test_a_verdict_in_words_is_what_it_says(said: str) -> None:
    with JudgeServer(lambda got: f'{{"q1": {{"context": 0, "verdict": "{said}"}}}}') as server:
        reply = ask(server)
    assert reply.answers["q1"] == YesNo(value=said.strip().lower() in ("true", "yes"))


def test_a_request_that_is_bad_in_any_form_teaches_nothing() -> None:
    with JudgeServer() as server:
        server.refuse = lambda body: "bad in every way"
        with pytest.raises(JudgeRejected) as caught:
            ask(server)
        assert len(server.received) == caught.value.requests == 3
    with JudgeServer() as server:
        judge = ChatJudge("m", base_url=server.url)
        server.faults += [Fault(status=400)] * 3
        with pytest.raises(JudgeRejected):
            answered(judge, ONE)
        answered(judge, ONE)
        assert "json_schema" in server.received[-1].body["response_format"]


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
