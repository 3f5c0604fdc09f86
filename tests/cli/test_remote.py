"""`steelyard score` with a judge behind a server, and its plan beside what was sent."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import programs
from cli.running import Outcome, Steelyard, write_lines
from judge_server import Fault, JudgeServer, Received, filled
from steelyard.text import sentences
from waiting import until

TEXTS = (
    "Paris is the capital of France. It lies on the Seine. It has about two million inhabitants.",
    "Berlin is the capital of Germany. It lies on the Spree. It has about four million inhabitants.",
    "Rome is the capital of Italy. It lies on the Tiber. It has about three million inhabitants.",
)
RECORDS = [
    {
        "id": f"r{number}",
        "question": "What is the capital, and where does it lie?",
        "contexts": [*TEXTS[number % 3 :], *TEXTS[: number % 3]],
        "answer": TEXTS[number % 3],
        "reference": TEXTS[number % 3],
    }
    for number in range(6)
]


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "turns.jsonl", *RECORDS)


def think(request: Received) -> Any:
    """Claims are the sentences of the text in view; everything else is yes, for ten words of reason."""
    assert request.schema
    reply = filled(request.schema)
    for key, line in request.questions.items():
        answer = reply[key]
        if "claims" in answer:
            assert line in ("claims of the answer", "claims of the reference")
            answer["claims"] = [sentence.text for sentence in sentences(TEXTS[0])]
    # Also of the question whose answer is known.
    for answer in reply.values():
        if "reason" in answer:
            answer["reason"] = "the third context says so in nearly the same words"
    return reply


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(think) as running:
        yield running


def planned(plan: Outcome) -> list[int]:
    """Requests, tokens in and tokens out of all records."""
    line = next(line for line in plan.out.splitlines() if line.startswith("all 6: "))
    return [int(number.replace(",", "")) for number in re.findall(r"[0-9,]+(?= request| token)", line)]


def ask(steelyard: Steelyard, server: JudgeServer, turns: Path, *more: str) -> Outcome:
    where = ("--judge", "openai:m", "--base-url", server.url)
    return steelyard("score", turns, *where, *more)


def test_the_default_suite_of_a_chat_judge(steelyard: Steelyard, server: JudgeServer, turns: Path) -> None:
    outcome = ask(steelyard, server, turns, "--out", "-")
    assert outcome.status == 0, outcome.err
    names = [score["metric"] for score in outcome.lines[0]["scores"]]
    assert names == ["faithfulness", "answer_relevancy", "context_utilization", "context_relevancy"]
    assert all(score["status"] == "scored" for line in outcome.lines for score in line["scores"])
    assert outcome.lines[0]["scores"][0]["provenance"]["judge"] == "chat:m"
    assert "no price is known for 'm'" in outcome.err


def test_fusing_saves_requests(steelyard: Steelyard, server: JudgeServer, turns: Path) -> None:
    sent = {}
    for fuse in ("view", "record", "off"):
        server.received.clear()
        assert ask(steelyard, server, turns, "--fuse", fuse).status == 0
        sent[fuse] = len(server.received)
    assert sent["record"] < sent["view"] < sent["off"]


@pytest.mark.parametrize("fuse", ["view", "record", "off"])
@pytest.mark.parametrize("metrics", ["", "all"])
def test_the_plan_foresees_what_is_sent(
    steelyard: Steelyard, server: JudgeServer, turns: Path, fuse: str, metrics: str
) -> None:
    options = ("--fuse", fuse, "--metrics", metrics)
    plan = ask(steelyard, server, turns, *options, "--plan")
    assert (plan.status, server.received) == (0, [])
    requests, tokens_in, tokens_out = planned(plan)
    lines = ask(steelyard, server, turns, *options, "--out", "-").lines
    texts = [request.text + json.dumps(request.schema, separators=(",", ":")) for request in server.received]
    assert requests == len(server.received)
    assert tokens_in == pytest.approx(sum(map(len, texts)) / 4, rel=0.02)
    assert tokens_out == pytest.approx(sum(line["usage"]["completion_tokens"] for line in lines), rel=0.15)


def test_a_plan_needs_no_key_and_knows_prices(steelyard: Steelyard, turns: Path) -> None:
    plan = steelyard("score", turns, "--judge", "openai", "--plan")
    assert plan.status == 0
    price = re.search(r"per record: .* about \$([0-9.]+)", plan.out)
    assert price and float(price[1]) > 0
    assert "4 characters a token" in plan.out
    assert "gpt-4o-mini" in plan.out.replace(" ", "-")


def test_a_plan_for_the_local_judge_is_short(steelyard: Steelyard, turns: Path) -> None:
    plan = steelyard("score", turns, "--plan")
    assert plan.status == 0
    assert "no requests" in plan.out


def test_a_plan_names_bad_lines_too(steelyard: Steelyard, tmp_path: Path) -> None:
    plan = steelyard(
        "score", write_lines(tmp_path / "in.jsonl", RECORDS[0], "{"), "--judge", "openai", "--plan"
    )
    assert plan.status == 1
    assert "line 2: not JSON" in plan.err


def test_an_unreachable_judge_is_a_cause_not_a_crash(steelyard: Steelyard, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in.jsonl", RECORDS[0])
    where = ("--judge", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
    outcome = steelyard("score", path, *where, "--out", "-")
    assert outcome.status == 1
    assert {score["status"] for score in outcome.lines[0]["scores"]} == {"failed"}
    assert {score["value"] for score in outcome.lines[0]["scores"]} == {None}
    assert "faithfulness failed on 1 record and has no value" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_record_that_fails_beside_others_is_no_fault_of_the_run(
    steelyard: Steelyard, server: JudgeServer, tmp_path: Path
) -> None:
    server.faults.append(Fault(status=401, message="no such key"))
    path = write_lines(tmp_path / "in.jsonl", *(RECORDS[0] | {"id": str(n)} for n in range(2)))
    outcome = ask(steelyard, server, path, "-m", "faithfulness", "--concurrency", "1", "--out", "-")
    assert sorted(line["scores"][0]["status"] for line in outcome.lines) == ["failed", "scored"]
    assert (outcome.status, "has no value" in outcome.err) == (0, False)


def test_a_wrong_key_is_named(
    steelyard: Steelyard, server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-very-secret")
    server.faults.extend([Fault(status=401, message="no such key")] * 50)
    path = write_lines(tmp_path / "in.jsonl", RECORDS[0])
    outcome = ask(steelyard, server, path, "--api-key-env", "OTHER_KEY")
    assert outcome.status == 1
    assert "unauthorized" in outcome.err
    assert server.received[0].headers["authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in outcome.err + outcome.out


def test_a_judge_that_answers_nothing_is_not_asked_to_the_end(
    steelyard: Steelyard, server: JudgeServer, tmp_path: Path
) -> None:
    server.faults.extend([Fault(status=401, message="no such key")] * 10_000)
    path = write_lines(tmp_path / "in.jsonl", *(RECORDS[0] | {"id": str(n)} for n in range(500)))
    outcome = ask(steelyard, server, path, "-m", "faithfulness,context_recall", "--concurrency", "2")
    assert outcome.status == 1
    assert "stopped: the judge answered nothing for the first 20 records" in outcome.err
    assert len(server.received) < 100


def test_concurrency_is_requests_in_flight(steelyard: Steelyard, server: JudgeServer, tmp_path: Path) -> None:
    server.latency = 0.05
    path = write_lines(tmp_path / "in.jsonl", *(RECORDS[0] | {"id": str(n)} for n in range(40)))
    for limit, least in ((4, 4), (30, 20)):
        server.peak = 0
        assert ask(steelyard, server, path, "-m", "faithfulness", "--concurrency", str(limit)).status == 0
        assert least <= server.peak <= limit


def test_a_key_for_openai_is_not_sent_elsewhere(
    steelyard: Steelyard, server: JudgeServer, turns: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    assert ask(steelyard, server, turns).status == 0
    assert not any("sk-openai" in str(request.headers) for request in server.received)


@pytest.mark.parametrize("extractor", [(), ("--extractor", "writer")])
def test_decisions_and_their_plan(
    steelyard: Steelyard, server: JudgeServer, turns: Path, extractor: tuple[str, ...]
) -> None:
    where = ("--judge", "decisions", "--base-url", server.url, *extractor)
    plan = steelyard("score", turns, *where, "--plan")
    outcome = steelyard("score", turns, *where, "--out", "-")
    assert outcome.status == 0, outcome.err
    assert planned(plan)[0] == len(server.received)
    models = {request.body["model"] for request in server.received}
    assert models == {"gpt-6-luna", *extractor[1:]}
    faithfulness = outcome.lines[0]["scores"][0]
    assert (faithfulness["metric"], faithfulness["status"]) == ("faithfulness", "scored")
    assert faithfulness["verdicts"][0]["probability"] == 0.9


def test_an_embedder_on_the_server_and_its_plan(
    steelyard: Steelyard, server: JudgeServer, turns: Path
) -> None:
    def candid(request: Received) -> Any:
        reply = think(request)
        for key in request.questions:
            if "evade" in request.text and "verdict" in reply[key]:
                reply[key]["verdict"] = False
        return reply

    server.chat = candid
    options = ("-m", "answer_relevancy", "--embedder", "vectors")
    plan = ask(steelyard, server, turns, *options, "--plan")
    outcome = ask(steelyard, server, turns, *options, "--out", "-")
    assert outcome.status == 0, outcome.err
    assert planned(plan)[0] == len(server.received)
    assert [r.body["model"] for r in server.received].count("vectors") == len(RECORDS)
    assert outcome.lines[0]["scores"][0]["provenance"]["embedder"] == "openai:vectors"


def test_an_extractor_is_for_decisions(steelyard: Steelyard, turns: Path) -> None:
    outcome = steelyard("score", turns, "--extractor", "m")
    assert outcome.status == 2
    assert "--extractor needs --judge decisions" in outcome.err


def test_an_interrupt_leaves_what_was_done(turns: Path, tmp_path: Path) -> None:
    interrupted = threading.Event()

    def slow(request: Received) -> Any:
        if len(judge.received) > 4:
            interrupted.wait(120)
        return think(request)

    out = tmp_path / "out.jsonl"
    with JudgeServer(slow) as judge:
        where = ["--judge", "openai:m", "--base-url", judge.url, "-m", "response_groundedness"]
        command = [*programs.STEELYARD, "score", str(turns), *where, "--concurrency", "1", "--out", str(out)]
        process = programs.start(command, ours=True)
        until(lambda: out.exists() and out.read_text())
        process.send_signal(signal.SIGINT)
        interrupted.set()
        _, told = process.communicate(timeout=120)
        assert process.returncode == 130
    done = len(out.read_text().splitlines())
    assert 1 <= done < len(RECORDS)
    assert f"{done} record" in told and "interrupted" in told
    assert "Traceback" not in told
