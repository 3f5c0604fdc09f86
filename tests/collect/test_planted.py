"""Texts that act as code, and keys, planted in what the servers and the worker are given."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
import urllib3

import programs
from collect.parts import (
    JSON,
    Endpoint,
    free_port,
    otlp_json,
    plain_spans,
    protobuf,
    scored,
    serving,
    turn_spans,
)
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Context, Record, TraceRef
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.sinks import SQLiteSink
from waiting import until

pytestmark = pytest.mark.faults
KEY = "sk-planted0key1never2shown"
PLANTED = (
    "=HYPERLINK(1)\x1b[31mzanzibar\x9b2J</script><img src=x onerror=quixotic()>"
    f"\r\nCRITICAL:steelyard:labyrinth\u2028\u202e {KEY}"
)
MARKS = ("zanzibar", "quixotic", "labyrinth", KEY)
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]|<img|onerror=quixotic\\(\\)>")


def record(name: str) -> Record:
    return Record(
        id=f"{name} {PLANTED}",
        question=PLANTED,
        answer=f"Paris is it. {PLANTED}",
        contexts=(Context(text=f"Paris is the capital. {PLANTED}", id=PLANTED, query=PLANTED),),
        tags=(PLANTED,),
        notes=(PLANTED,),
        metadata={PLANTED: PLANTED, "session_id": PLANTED, "route": PLANTED},
        trace=TraceRef(trace_id=PLANTED, span_id=PLANTED, framework=PLANTED),
    )


def results(folder: Path) -> None:
    """A results file with planted texts in it, from a Monitor with the local judge."""
    with_file = Monitor(sinks=[SQLiteSink(folder / "steelyard.db")])
    with_file.submit(record("r"))
    assert with_file.flush(60) == 0
    with_file.close()
    label = Label(record_id=record("r").id, value="bad", who=PLANTED[:60], labelled_at=1.0, note=PLANTED)
    open_labels(folder / "steelyard.db").put([label])


def junk(endpoint: Endpoint, path: str) -> None:
    """Requests that are refused, with planted words wherever a request has some."""
    with urllib3.PoolManager() as pool:
        for body in (PLANTED.encode(), b"\xff" * 30, json.dumps({"resourceSpans": PLANTED}).encode()):
            for kind in ("application/json", "application/x-protobuf", f"text/{KEY}"):
                headers = {"content-type": kind, "authorization": f"Bearer {KEY}", "x-note": KEY}
                url = f"http://127.0.0.1:{endpoint.port}{path}?{quote(PLANTED)}"
                reply = pool.request("POST", url, body=body, headers=headers, retries=False)
                assert 400 <= reply.status < 500
                said = reply.data.decode("utf-8", "replace")
                assert not any(mark in said for mark in (*MARKS, "\x1b", "<img"))


def from_collect(folder: Path) -> tuple[str, list[str]]:
    with serving(folder, "--quiet", "0.2", "--ttl", "30") as endpoint:
        spans = turn_spans(question=PLANTED, answer=f"{PLANTED} Paris is the capital of France.")
        assert endpoint.post(protobuf(spans)).status == 200
        assert endpoint.post(otlp_json(plain_spans(1)).replace(b"GET /0", KEY.encode()), JSON).status == 200
        junk(endpoint, "/v1/traces")
        until(lambda: len(scored(folder)) == 1)
        shown = [json.dumps(endpoint.counts())]
        assert PLANTED.replace("\r\n", "\n")[:12] in next(iter(scored(folder).values()))
        return ended(endpoint), shown


def from_serve(folder: Path) -> tuple[str, list[str]]:
    results(folder)
    with serving(folder, command="serve", port=free_port()) as endpoint:
        name = quote(record("r").id)
        pages = ["/", "/turns", f"/turn?id={name}", f"/turns?tag={quote(PLANTED)}", f"/trace/{quote(KEY)}"]
        shown = [endpoint.get(path).data.decode() for path in [*pages, "/api/state"]]
        shown.append(endpoint.get("/api/new?time=0&id=").json()["rows"])
        junk(endpoint, "/api/labels")
        assert "zanzibar" in shown[2]  # content is what the pages are for
        for page in shown:
            # A label goes to the record of exactly this id, and a filter holds exactly what was asked for.
            page = re.sub(r'(data-record|value)="[^"]*"', "", page)
            assert not (code := ACTS.search(page)), page[max(0, code.start() - 200) :][:300]
        return ended(endpoint), []


def from_worker(folder: Path) -> tuple[str, list[str]]:
    spool = SpoolSettings(path=folder / "turns.db", evaluate=False)
    application = Monitor(sinks=[], spool=spool)
    for number in range(3):
        application.submit(record(str(number)))
    assert application.flush(60) == 0
    application.close()
    said = steelyard(folder, "worker", "--spool", "turns.db", "--once")
    assert len(scored(folder)) == 3
    return said, []


def from_labels(folder: Path) -> tuple[str, list[str]]:
    results(folder)
    said = steelyard(folder, "labels", "export", "labels.csv")
    cells = (folder / "labels.csv").read_text()
    assert "zanzibar" in cells
    assert not re.search(r"(^|,)\"?[=+@-]", cells, re.MULTILINE)
    return said, []


def steelyard(folder: Path, *arguments: str) -> str:
    done = programs.run([*programs.STEELYARD, *arguments], ours=True, cwd=folder, timeout=150)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def ended(endpoint: Endpoint) -> str:
    """All that a server said until its end."""
    endpoint.process.terminate()
    return endpoint.process.communicate()[1]


@pytest.mark.parametrize("run", [from_collect, from_serve, from_worker, from_labels])
def test_what_is_planted_acts_nowhere_and_no_log_has_it(
    run: Callable[[Path], tuple[str, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_SINKS", f"sqlite:{tmp_path / 'steelyard.db'}")
    said, shown = run(tmp_path)
    for text in (said, *shown):
        assert not ACTS.search(text)
        for planted in MARKS:
            assert planted not in text
