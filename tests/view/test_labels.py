"""Labels over HTTP and in files: who gives them, what is refused, and how they go out and in."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import stat
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

pytest.importorskip("starlette", reason="starlette is not installed")

from report.parts import NOON, by_judge, results, turn
from steelyard.errors import InvalidRecord
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.view import export_labels, import_labels
from steelyard.view._label import agreement_of
from view.serving import client


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(results(tmp_path / "s.db", [turn(n, n / 10, at=NOON + n) for n in range(9)]))


def mode(db: str) -> int:
    return stat.S_IMODE(Path(db).stat().st_mode)


async def each(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def csrf(http: httpx.AsyncClient) -> dict[str, str]:
    found = re.search('name="csrf" content="([^"]+)"', (await http.get("/turns")).text)
    assert found is not None
    return {"x-csrf-token": found[1]}


def label(**changes: object) -> dict[str, object]:
    return {"record_id": "r1", "value": "good", "who": "Ann", "metric": None, "claim": None, **changes}


async def test_a_label_is_stored_with_who_and_when_and_can_be_taken_back(db: str) -> None:
    before = mode(db)
    async with client(db) as http:
        headers = await csrf(http)
        claim = label(metric="faithfulness", claim=1, value="not_supported", note="no source")
        for body in (label(), label(value="bad"), claim):
            assert (await http.post("/api/labels", json=body, headers=headers)).status_code == 200
        stored = open_labels(db).of("r1")
        assert [(one.value, one.who, one.claim) for one in stored] == [
            ("bad", "Ann", None),
            ("not_supported", "Ann", 1),
        ]
        assert stored[0].labelled_at > NOON
        assert "no source" in (await http.get("/turn?id=r1")).text
        await http.post("/api/labels", json=label(value="none"), headers=headers)
        assert [one.claim for one in open_labels(db).of("r1")] == [1]
    assert mode(db) == before == 0o600


@pytest.fixture
def judged(tmp_path: Path) -> str:
    return str(results(tmp_path / "s.db", [by_judge(turn(n, n / 10)) for n in range(9)]))


async def test_the_queue_draws_turns_and_shows_them_without_a_word_of_the_judge(judged: str) -> None:
    db = judged
    async with client(db) as http:
        headers = await csrf(http)
        turns = (await http.get("/api/queue")).json()["turns"]
        assert sorted(one["id"] for one in turns) == [f"r{n}" for n in range(9)]
        first = turns[0]
        shown = (await http.get("/api/queue/turn", params={"id": first["id"]})).json()
        assert "It is Paris" in shown["html"] and "supported" not in shown["html"] and shown["who"] == []
        given = label(record_id=first["id"], drawn=first["drawn"])
        stored = (await http.post("/api/labels", json=given, headers=headers)).json()
        assert stored["before"] is None and [name for name, _ in stored["judge"]] == ["faithfulness"]
        assert open_labels(db).of(first["id"])[0].drawn == first["drawn"]
        again = {**given, "value": "bad", "who": "Bo"}
        for body in (again, {**again, "drawn": None}):
            told = await http.post("/api/labels", json=body, headers=headers)
        assert told.json()["before"]["drawn"] == first["drawn"] == open_labels(db).of(first["id"])[1].drawn
        blank = await http.post("/api/labels", json={**again, "who": " Bo "}, headers=headers)
        assert blank.json()["before"]["value"] == "bad" and len(blank.json()["labels"]) == 2
        assert (await http.get("/api/queue/turn", params={"id": first["id"]})).json()["who"] == ["Ann", "Bo"]
        assert first["id"] not in [one["id"] for one in (await http.get("/api/queue")).json()["turns"]]
        far = (await http.get("/api/queue/so-far")).text
        assert re.search("Ann</span> <b>good</b>, <span dir=.auto.>Bo</span> <b>bad</b>", far)
        wrong = await http.post("/api/labels", json={**given, "drawn": 7}, headers=headers)
        assert wrong.status_code == 400


async def test_a_label_is_refused_from_elsewhere_and_when_it_is_not_one(db: str) -> None:
    async with client(db) as http:
        own = await csrf(http)
        refused = {
            403: [
                ({}, label()),
                ({**own, "origin": "http://evil.example"}, label()),
                ({**own, "origin": "http://127.0.0.1:9999"}, label()),
                ({**own, "origin": "null"}, label()),
                ({**own, "origin": "http://evil127.0.0.1"}, label()),
                ({**own, "origin": "http://["}, label()),
            ],
            400: [
                (own, label(value="supported")),
                (own, label(who=" ")),
                (own, label(note="x" * 2001)),
                (own, label(metric="faithfulness", claim=0.5, value="supported")),
            ],
            404: [
                (own, label(record_id="gone")),
                (own, label(metric="faithfulness", claim=2, value="supported")),
            ],
            413: [(own, label(note="x" * 20_000))],
        }
        for status, tries in refused.items():
            for headers, body in tries:
                assert (await http.post("/api/labels", json=body, headers=headers)).status_code == status
        large = (b" " * 1_000 for _ in range(40))
        streamed = await http.post("/api/labels", content=each(large), headers=own)
        assert streamed.status_code == 413
        half = json.dumps(label(note="\ud800"))
        assert (await http.post("/api/labels", content=half, headers=own)).status_code == 400
        odd = await http.post("/api/labels", content=b"[1]", headers=own)
        assert odd.status_code == 400
    async with client(db, read_only=True) as http:
        answer = await http.post("/api/labels", json=label(), headers=await csrf(http))
        assert answer.status_code == 403
    assert list(open_labels(db)) == []


async def test_a_locked_file_is_said_and_what_was_a_label_is_not_lost_silently(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client(db) as http:
        own = await csrf(http)
        real = sqlite3.connect
        monkeypatch.setattr(
            sqlite3, "connect", lambda *args, **more: real(*args, **{**more, "timeout": 0.05})
        )
        with closing(sqlite3.connect(db, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # who writes keeps nobody from reading
            assert (await http.get("/turn?id=r1")).status_code == 200
            refused = await http.post("/api/labels", json=label(), headers=own)
            assert refused.status_code == 503 and "another program has locked it: try again" in refused.text
            other.execute("ROLLBACK")
            other.execute("PRAGMA journal_mode = DELETE")
            other.execute("BEGIN EXCLUSIVE")
            for path in ("/", "/turns", "/turn?id=r1", "/coverage"):
                page = await http.get(path)
                assert page.status_code == 503 and "is locked by another program" in page.text
        assert (await http.post("/api/labels", json=label(), headers=own)).status_code == 200


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_labels_go_out_and_in_without_a_loss_and_run_in_no_spreadsheet(form: str) -> None:
    notes = ["=HYPERLINK(1)", "'=1", "+1", "@x", "\t=1", "\r=1", 'two\nlines, "quoted"', ""]
    labels = [
        Label(record_id=f"-r{n}", value="bad", who="=Ann", labelled_at=NOON + n / 7, note=note)
        for n, note in enumerate(notes)
    ]
    labels.append(
        Label(record_id="r", value="supported", who="Bo", labelled_at=1.0, metric="faithfulness", claim=0)
    )
    file = io.StringIO(newline="")
    export_labels(labels, file, form=form)  # type: ignore[arg-type]
    if form == "csv":
        assert not re.search(r"(^|,)\"?([=+@\t-]|\r(?!\n))", file.getvalue(), re.MULTILINE)
    file.seek(0)
    assert list(import_labels(file, form=form)) == labels  # type: ignore[arg-type]


def test_a_line_that_is_no_label_is_told_and_the_others_stay() -> None:
    good = '{"record_id": "r", "value": "good", "who": "Ann", "labelled_at": 1.0}'
    half = good.replace('"Ann"', '"Ann", "metric": "faithfulness"')
    bad = ['{"record_id": 3}', "nonsense", "[]", half, good.replace("1.0", "Infinity")]
    text = "\n".join([good, *bad, good])
    problems: list[str] = []
    assert len(list(import_labels(io.StringIO(text), form="jsonl", problems=problems))) == 2
    assert [problem.split(":")[0] for problem in problems] == [f"line {n}" for n in range(2, 7)]
    assert "give both or neither" in problems[3] and "finite" in problems[4]
    with pytest.raises(InvalidRecord):
        list(import_labels(io.StringIO(text), form="jsonl"))


def test_a_csv_file_written_by_hand_needs_no_times_and_is_told_what_it_lacks() -> None:
    text = "record_id,value,who,labelled_at\nt1,good,ann,\nt2,,ann,\n,bad,,\nt3,bad,ann,monday\n"
    problems: list[str] = []
    before = time.time()
    (label,) = import_labels(io.StringIO(text), problems=problems)
    assert (label.record_id, label.value, label.who) == ("t1", "good", "ann")
    assert before <= label.labelled_at <= time.time()
    assert problems == [
        "line 3: no value",
        "line 4: no record_id and no who",
        "line 5: its labelled_at is not a number",
    ]


def test_people_who_differ_are_shown_by_their_latest_word() -> None:
    said = [("r1", "Ann", 1.0), ("r1", "Bo", 9.0), ("r2", "Ann", 5.0), ("r2", "Bo", 6.0), ("r3", "Ann", 7.0)]
    values = {"Ann": "good", "Bo": "bad"}
    found = agreement_of(
        Label(record_id=record, value=values[who], who=who, labelled_at=at)  # type: ignore[arg-type]
        for record, who, at in said
    )
    assert [one["record_id"] for one in found["disputes"]] == ["r1", "r2"]
    assert found["people"] == [("Ann", 3), ("Bo", 2)]
    (pair,) = found["pairs"]
    assert (pair["both"], pair["same"]) == (2, 0)


def test_an_older_word_does_not_replace_a_later_one(db: str) -> None:
    store = open_labels(db)
    later = Label(record_id="r1", value="bad", who="Ann", labelled_at=2.0)
    assert store.put([later]) == 1
    assert store.put([Label(record_id="r1", value="good", who="Ann", labelled_at=1.0)]) == 0
    assert list(store) == [later]
