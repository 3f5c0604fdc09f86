"""No text from outside acts as code in a terminal, a pipe or a file."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

HOSTILE = "a\x07b\x1b]0;title\x07\x1b]52;c;Zm9v\x1b\\\x9b31m\u202egnp\u2066\U000e0041z\x7f"
_ACTS = ("\x07", "\x1b]", "\x9b", "\x7f", "\u202e", "\u2066", "\U000e0041")
_TURN = {
    "id": HOSTILE,
    "question": HOSTILE,
    "answer": HOSTILE,
    "contexts": [{"text": HOSTILE, "id": HOSTILE}],
}
_SPAN = {
    "traceId": "a" * 32,
    "spanId": "b" * 16,
    "name": HOSTILE,
    "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": "1700000001000000000",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.request.model", "value": {"stringValue": HOSTILE}},
        {"key": HOSTILE, "value": {"stringValue": HOSTILE}},
    ],
}
COMMANDS = (
    ["doctor", "spans.jsonl"],
    ["records", "spans.jsonl"],
    ["score", "turns.jsonl", "--out", "-"],
    ["score", "turns.jsonl", "--out", "scores.jsonl"],
    ["report", HOSTILE.replace("/", "")],
    [HOSTILE],
)


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0][:8])
def test_nothing_that_is_printed_acts_as_code(tmp_path: Path, command: list[str], terminal: bool) -> None:
    spans = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": HOSTILE}, "spans": [_SPAN]}]}]}
    (tmp_path / "spans.jsonl").write_text(json.dumps(spans, ensure_ascii=False) + "\n")
    (tmp_path / "turns.jsonl").write_text(json.dumps(_TURN, ensure_ascii=False) + "\n")
    ours, theirs = pty.openpty() if terminal else os.pipe()
    environment = os.environ | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    program = [sys.executable, "-c", "from steelyard.cli import main; main()", *command]
    process = subprocess.Popen(program, cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written = b""
    while chunk := _read(ours):
        written += chunk
    os.close(ours)
    assert process.wait(timeout=100) in (0, 1, 2) and b"Traceback" not in written
    found = written.decode() + "".join(file.read_text() for file in tmp_path.glob("scores.jsonl"))
    assert found and not [sign for sign in _ACTS if sign in found]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # a terminal says so that its other end is closed
        return b""
