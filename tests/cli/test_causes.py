"""Why turns are bad: one turn by its record or by experiment, and questions that found nothing."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from cli.running import Steelyard
from judge_server import Fault, JudgeServer, Received
from steelyard.engine import evaluate_one
from steelyard.judge import LocalJudge
from steelyard.metrics import ContextSufficiency, Faithfulness
from steelyard.record import Record, Stage, Timings
from steelyard.report import open_results
from steelyard.report.gaps import find_gaps
from steelyard.scores import Cause, Diagnosis, Evaluation
from steelyard.sinks import SQLiteSink
from steelyard.view._turn import flow_of
from writing import write

NINE, SEAT = "The ferry to Skarn leaves at 9 in the morning.", "A seat on the ferry costs 4 crowns."
APP = f"""
def replay(question, contexts):
    texts = [one.text for one in contexts]
    if not texts:
        return "Ask at the harbour office."
    if texts == [{NINE!r}]:
        return {NINE!r}
    return "The ferry to Skarn leaves at 4 in the morning."
"""


@pytest.fixture
def bad_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with one bad turn and an application that a second passage leads astray."""
    turn = Record(
        id="r1",
        question="When does the ferry to Skarn leave in the morning?",
        contexts=[NINE, SEAT],  # type: ignore[arg-type]
        answer="The ferry to Skarn leaves at 4 in the morning.",
    )
    metrics = [Faithfulness(claims="sentences"), ContextSufficiency()]
    write(tmp_path / "steelyard.db", asyncio.run(evaluate_one(turn, metrics, judge=LocalJudge())))
    (tmp_path / "astray.py").write_text(APP)
    monkeypatch.syspath_prepend(tmp_path)
    return str(tmp_path / "steelyard.db")


def test_what_cannot_be_explained_is_said(bad_turn: str, steelyard: Steelyard, tmp_path: Path) -> None:
    unknown = steelyard("explain", "r2", "--db", bad_turn)
    assert (unknown.status, "there is no turn 'r2'" in unknown.err) == (2, True)
    without = str(tmp_path / "without.db")
    bare = Evaluation(record_id="r1", scores=(), diagnosis=Diagnosis(cause="invented", because="it is so"))
    write(without, bare)
    assert "it is so" in steelyard("explain", "r1", "--db", without).out
    tried = steelyard("explain", "r1", "--db", without, "--replay", "astray:replay")
    assert tried.status == 2
    assert "store_content = true" in tried.err


def test_a_turn_is_explained_by_rules(bad_turn: str, steelyard: Steelyard) -> None:
    said = steelyard("explain", "r1", "--db", bad_turn).out
    assert "invented" in said and "Change the prompt" in said


def test_what_nothing_is_known_of_is_taken_as_shown_to_the_model(bad_turn: str) -> None:
    with closing(open_results(bad_turn)) as results:
        found = results.evaluation("r1")
    assert found is not None and found.record is not None
    first, second = found.record.contexts
    for seen, shown in ((None, 2), (0.0, 1), (0.1, 2)):
        record = found.record.replace(contexts=(first, replace(second, seen=seen)))
        flow = flow_of(found.replace(record=record))
        assert flow is not None and ("taken as shown", shown) in flow.steps


def test_lost_passages_are_marked_by_their_places_in_the_step_that_lost_them(bad_turn: str) -> None:
    with closing(open_results(bad_turn)) as results:
        found = results.evaluation("r1")
    assert found is not None and found.record is not None
    first, second = found.record.contexts
    record = found.record.replace(
        contexts=(first,),
        retrieved=(first, second),
        stages=(Stage(name="ranked", query="?", contexts=(second, first)),),
    )
    for stage, at in (("ranked", 0), ("", 1)):
        lost = Diagnosis(cause="passage_lost", lost=(at,), stage=stage)
        flow = flow_of(found.replace(record=record, diagnosis=lost))
        assert flow is not None
        assert [row.title for row in flow.rows if row.lost] == [SEAT]


def test_a_turn_is_explained_by_experiment(bad_turn: str, steelyard: Steelyard) -> None:
    said = steelyard("explain", "r1", "--db", bad_turn, "--replay", "astray:replay").out
    assert "distracted" in said and "its best passage alone" in said


ASKED: list[tuple[str, Cause | None]] = [
    ("How do I cancel my parking permit?", "passage_not_found"),
    ("How can I cancel a parking permit?", "passage_not_found"),
    ("Cancel the parking permit of my car", "outside_collection"),
    ("Which vaccine does a puppy need?", "outside_collection"),
    ("When does the library open?", None),
    ("Who ground the mirror?", "invented"),
]


@pytest.fixture
def results(tmp_path: Path) -> str:
    """A results file with these turns, an hour apart."""
    path = str(tmp_path / "steelyard.db")
    turns = [
        Evaluation(
            record_id=f"r{at}",
            scores=(),
            record=Record(id=f"r{at}", question=question, timings=Timings(started_at=at * 3600.0)),
            diagnosis=Diagnosis(cause=cause),
            evaluated_at=1e9,
        )
        for at, (question, cause) in enumerate(ASKED)
    ]
    asyncio.run(SQLiteSink(path).write(turns))
    return path


def test_alike_questions_are_one_gap(results: str) -> None:
    with closing(open_results(results)) as reader:
        first, second = find_gaps(reader)
        assert (first.turns, second.turns) == (3, 1)
        assert first.causes == {"passage_not_found": 2, "outside_collection": 1}
        assert set(first.record_ids) == {"r0", "r1", "r2"}
        assert "parking" in first.question
        assert [gap.turns for gap in find_gaps(reader, since=7200.0)] == [1, 1]


_TOPICS = [
    *("ferry", "library", "vaccine", "mirror", "passport", "tulip", "engine"),
    *("salary", "violin", "glacier", "kitchen", "soccer", "pharmacy", "tunnel"),
    *("harvest", "comet", "carpet", "lawyer", "beehive", "sauna", "bakery"),
    *("lottery",),
]


def test_of_many_groups_the_twenty_most_frequent_are_listed(steelyard: Steelyard, tmp_path: Path) -> None:
    asked = [topic for place, topic in enumerate(_TOPICS) for _ in range(1 + (place >= 2))]
    turns = [
        Evaluation(
            record_id=f"r{at}",
            scores=(),
            record=Record(id=f"r{at}", question=f"{topic}?", timings=Timings(started_at=float(at))),
            diagnosis=Diagnosis(cause="passage_not_found"),
        )
        for at, topic in enumerate(asked)
    ]
    asyncio.run(SQLiteSink(path := str(tmp_path / "steelyard.db")).write(turns))
    lines = steelyard("gaps", "--db", path, "--jsonl").lines
    assert [line["turns"] for line in lines] == [2] * 20


def test_the_command_lists_them(steelyard: Steelyard, results: str) -> None:
    shown = steelyard("gaps", "--db", results).out.splitlines()
    assert shown[0].split()[0] == "3"
    assert "passage not found 2" in shown[1]
    lines = steelyard("gaps", "--db", results, "--jsonl").lines
    assert [line["turns"] for line in lines] == [3, 1]


def test_a_model_names_the_groups_by_one_request_each(steelyard: Steelyard, results: str) -> None:
    def name(request: Received) -> dict[str, str]:
        return {"name": "Parking\npermits" if "parking" in request.text else "Vaccines \x1b[31m" + "x" * 200}

    with JudgeServer(name) as server:
        named = "--name-by", "openai:m", "--base-url", server.url, "--db", results
        shown = steelyard("gaps", *named)
        assert len(server.received) == 2
        lines = steelyard("gaps", *named, "--jsonl").lines
    first, second, *_ = shown.out.splitlines()
    assert first.split() == ["3", "Parking", "permits"]
    assert "parking" in second
    assert "\x1b" not in shown.out and "x" * 80 not in shown.out
    assert shown.err.startswith("openai:m: 2 requests, ")
    assert (lines[0]["name"], len(lines[0]["questions"])) == ("Parking permits", 3)
    asked = server.received[0].body["messages"]
    assert ASKED[0][0] not in asked[0]["content"], "questions are data and no part of the instruction"
    assert {question for question, cause in ASKED[:3] if question in asked[1]["content"]} == {
        question for question, _ in ASKED[:3]
    }


def test_a_group_whose_request_fails_keeps_its_own_words(steelyard: Steelyard, results: str) -> None:
    with JudgeServer(lambda _: {"name": 7}) as server:
        server.faults.append(Fault(status=401))
        found = steelyard("gaps", "--name-by", "openai:m", "--base-url", server.url, "--db", results)
    assert found.status == 0
    assert "parking" in found.out and "puppy" in found.out
    assert "2 groups got no name" in found.err


@pytest.mark.parametrize("judge", ["local", "pair:model.onnx", "decisions"])
def test_only_a_model_that_writes_names_groups(steelyard: Steelyard, results: str, judge: str) -> None:
    found = steelyard("gaps", "--name-by", judge, "--db", results)
    assert found.status == 2
    assert "write openai:MODEL" in found.err


def test_nothing_lacking_is_said(steelyard: Steelyard, tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    asyncio.run(SQLiteSink(path).write([Evaluation(record_id="r", scores=(), evaluated_at=1.0)]))
    assert "No turn lacked" in steelyard("gaps", "--db", path).out
