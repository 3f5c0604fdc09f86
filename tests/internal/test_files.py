"""What commands write of users' texts is their owner's alone, whatever the umask lets through."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from report.parts import results, turn
from steelyard.cli._app import build
from steelyard.golden import Case, GoldenSet, Run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")


def a_golden_set(path: Path) -> None:
    GoldenSet(name="set", cases=(Case(id="1", question="Who is ill?"),)).save(path)


def a_run(path: Path) -> None:
    Run(golden="set", version="1", app="a:b", judge="local", cases=()).save(path)


def exported_labels(path: Path) -> None:
    db = path.with_name("results.db")
    results(db, [turn(1, 0.5)])
    assert CliRunner().invoke(build(), ["labels", "export", f"{path}", "--db", f"{db}"]).exit_code == 0


def scores(path: Path) -> None:
    turns = path.with_name("turns.jsonl")
    turns.write_text(json.dumps({"question": "Who is ill?", "contexts": ["Ann is."], "answer": "Ann is."}))
    assert CliRunner().invoke(build(), ["score", f"{turns}", "--out", f"{path}"]).exit_code == 0


@pytest.mark.parametrize("write", [a_golden_set, a_run, exported_labels, scores])
def test_a_new_file_of_texts_is_for_its_owner_alone(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    before = os.umask(0)
    try:
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        # Whoever gave others the right has said so, and a later writing keeps it.
        path.chmod(0o644)
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    finally:
        os.umask(before)
