"""Every command on a terminal, with hostile texts in every field that is stored: nothing acts as code.

The commands are found in the application. Colours and bars of rich's own are let through; what the texts hold
are sequences that it never writes.
"""

from __future__ import annotations

import io
import json
import os
import pty
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import steelyard
from steelyard import evaluate
from steelyard.cli import main
from steelyard.cli._app import _COMMANDS, _loaded
from steelyard.golden import Case, GoldenSet
from steelyard.judge import LocalJudge
from steelyard.metrics import Faithfulness
from steelyard.online import Spool
from steelyard.online.queue._turns import Selected
from steelyard.record import Context, Record
from steelyard.results import open_labels
from steelyard.results.labels import Label
from writing import write

HOSTILE = (
    "Ada\x1b[8;9mlit\x1b[7;3H\x1b[6A\x1b[2Jit.\x1b]8;;file:///x\x1b\\link\x1b]8;;\x1b\\ \x1b]52;c;Zm9v\x07"
    " in\rCR \x9b31m \u202egnp\u2066 \x00 \U000e0041 [red]1920[/red]\x7f"
)
ACTS = (
    "\x1b[8;9m",
    "\x1b[7;3H",
    "\x1b[6A",
    "\x1b[2J",
    "\x1b]",
    "\x07",
    "\rCR",
    "\x9b",
    "\u202e",
    "\u2066",
    "\x00",
    "\x7f",
    "\U000e0041",
)
NAME = HOSTILE.replace("/", "|").replace("\x00", "")
"""The same where a name of a file is asked for."""
SERVED = {"run", "collect", "serve"}
"""Run until they are stopped; they print their address and counts, and show the rest on pages."""

COMMANDS: dict[str, list[str]] = {
    "demo": ["--db", NAME],
    "init": ["--judge", NAME, "--force"],
    "score": ["turns.jsonl", "--out", "-"],
    "judge check": ["--judge", HOSTILE.replace("\x00", "")],
    "golden diff": ["golden.jsonl", "other.jsonl"],
    "golden mine": [NAME, "--db", "steelyard.db"],
    "golden review": ["golden.jsonl", "--as", "ada"],
    "golden make": [NAME, "--out", "made.jsonl"],
    "test": ["golden.jsonl", "--app", "hostile_app:answer", "--gate", "faithfulness=0.9", "--json", "b.json"],
    "compare": ["a.json", "b.json"],
    "worker": ["--once", "--spool", "spool.db"],
    "queue": ["list", "--spool", "spool.db"],
    "backfill": ["turns.jsonl", "--yes"],
    "records": ["spans.jsonl"],
    "doctor": ["spans.jsonl"],
    "config": [],
    "report": ["--db", "steelyard.db"],
    "label": ["--db", "steelyard.db"],
    "labels export": ["labels.csv", "--db", "steelyard.db"],
    "labels import": ["bad.jsonl", "--db", "steelyard.db"],
    "calibrate": ["--db", "steelyard.db"],
    "alarms": ["--test"],
    "dashboards": ["--out", NAME],
    "prune": ["--keep", NAME],
    "explain": [f"1{NAME[:80]}", "--db", "steelyard.db"],
    "gaps": ["--db", "steelyard.db"],
    "plan": ["--db", "steelyard.db"],
}


def names() -> list[str]:
    """The commands of the application, those of groups with their group."""
    found = []
    for name in (name for group in _COMMANDS.values() for name in group):
        inner = getattr(_loaded(name), "commands", {})
        found += [f"{name} {one}" for one in inner] or [name]
    return found


def test_each_command_is_tried() -> None:
    assert set(names()) == COMMANDS.keys() | SERVED


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files with hostile texts in every field."""
    folder = tmp_path_factory.mktemp("hostile")
    text = HOSTILE
    records = [
        Record(
            id=f"{number}{NAME[:80]}",
            question=text,
            contexts=(Context(text=text, id=text),),
            answer=f"{number} {text}",
            reference=text,
            tags=(text,),
            metadata={text: text},
            session=text,
        )
        for number in range(3)
    ]
    lacking = Record(id="lacking", question=text, answer="I do not know.")
    found = evaluate([*records, lacking], metrics=[Faithfulness()], judge=LocalJudge())
    write(folder / "steelyard.db", *found.evaluations)
    open_labels(str(folder / "steelyard.db")).put(
        [Label(record_id=records[0].id, value="good", who=NAME[:90], labelled_at=1.0, note=NAME)]
    )
    lines = [json.dumps({"id": r.id, "question": text, "answer": text, "contexts": [text]}) for r in records]
    (folder / "turns.jsonl").write_text("\n".join([*lines, f'{{"{text}'.replace("\r", "")]), encoding="utf-8")
    (folder / "bad.jsonl").write_text(json.dumps({text: text, "record_id": text}) + "\n")
    cases = tuple(Case(question=f"{n}{text}", reference=text, tags=(text,)) for n in range(2))
    GoldenSet(name=text, cases=cases).save(folder / "golden.jsonl")
    GoldenSet(name=text, cases=cases[:1]).save(folder / "other.jsonl")
    (folder / "hostile_app.py").write_text(
        f"def answer(question):\n    return {{'answer': {text!r}, 'contexts': [{text!r}]}}\n"
    )
    spool = Spool(folder / "spool.db")
    spool.put([Selected(record, 0.0, 1.0) for record in records])
    [leased, *_] = spool.lease_turns(1)
    spool.dead_letter(leased, text)
    spool.close()
    span: dict[str, object] = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "name": text,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    }
    said = [{"key": key, "value": {"stringValue": text}} for key in ("gen_ai.request.model", text)]
    told = {"attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}, *said]}
    scope = {"scope": {"name": text}, "spans": [span | told]}
    (folder / "spans.jsonl").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}) + "\n")
    where = f"where = {{tag = {json.dumps(text)}}}"
    alarm = f'[[alarm]]\nmetric = "faithfulness"\nfalls_by = 0.05\nto = ["log"]\n{where}\n'
    # As TOML has it, which knows no halves of characters.
    (folder / "steelyard.toml").write_text(alarm.replace("\x7f", "").replace("\\udb40\\udc41", ""))
    return folder


def shown(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    chunks: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # a terminal says so that its other end is closed
            while chunk := os.read(ours, 65536):
                chunks.append(chunk)

    reading = threading.Thread(target=read)
    reading.start()
    stream = io.TextIOWrapper(os.fdopen(theirs, "wb", 0), "utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    monkeypatch.setattr(sys, "argv", ["steelyard", *arguments])
    try:
        with pytest.raises(SystemExit) as left:
            main()
    finally:
        monkeypatch.undo()
        stream.close()
        reading.join()
        os.close(ours)
    assert left.value.code in (0, 1, 2, 3, None), left.value.code
    return b"".join(chunks).decode("utf-8", "replace")


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_stored_acts_as_code(name: str, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stored)
    monkeypatch.syspath_prepend(str(stored))
    monkeypatch.setenv("TERM", "xterm-256color")
    if name == "compare":
        for out in ("a.json", "b.json"):
            shown(["test", "golden.jsonl", "--app", "hostile_app:answer", "--json", out], monkeypatch)
            monkeypatch.chdir(stored)
    found = shown([*name.split(), *COMMANDS[name]], monkeypatch)
    assert found and "Traceback" not in found
    assert not [sign for sign in ACTS if sign in found], found[-600:]
    assert name != "score" or "\x1b[" in found  # its own progress bar is drawn


def test_lines_and_tables_have_each_one_way_to_the_terminal() -> None:
    sources = list((Path(steelyard.__file__).parent / "cli").rglob("*.py"))
    assert len(sources) > 20
    for path in sources:
        said = path.read_text(encoding="utf-8")
        for name, way in (("_say.py", "echo("), ("_terminal.py", " Console(")):
            assert way not in said or path.name == name, (path, way)


@pytest.mark.parametrize(
    "arguments", [[NAME], ["report", NAME], ["score", "turns.jsonl", "--out", "scores.jsonl"]], ids=len
)
def test_nothing_that_is_typed_or_written_to_a_file_acts_as_code(
    arguments: list[str], stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stored)
    monkeypatch.setenv("TERM", "xterm-256color")
    found = shown(arguments, monkeypatch)
    if "--out" in arguments:
        found += (written := (stored / "scores.jsonl").read_text(encoding="utf-8"))
        assert written
    assert found and not [sign for sign in ACTS if sign in found], found[-600:]
