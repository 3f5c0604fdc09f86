"""`steelyard serve` and `steelyard labels`, as commands."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from report.parts import results, turn
from steelyard.cli._app import build
from steelyard.errors import ConfigurationError
from steelyard.results import open_labels
from steelyard.results.labels import Label


def test_labels_go_from_one_results_file_to_another(tmp_path: Path) -> None:
    here, there = (str(results(tmp_path / name, [turn(1, 0.5)])) for name in ("a.db", "b.db"))
    open_labels(here).put([Label(record_id="r1", value="bad", who="Ann", labelled_at=5.0, note="=1+1")])
    file = str(tmp_path / "labels.csv")
    run = CliRunner()
    assert run.invoke(build(), ["labels", "export", file, "--db", here]).exit_code == 0
    with Path(file).open("a") as opened:
        opened.write("nonsense\n")
    done = run.invoke(build(), ["labels", "import", file, "--db", there])
    assert done.exit_code == 1 and "stored 1 of 1" in done.stdout
    assert list(open_labels(there)) == list(open_labels(here))


def test_an_open_address_without_a_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEELYARD_VIEW_TOKEN", raising=False)
    db = str(results(tmp_path / "a.db", [turn(1, 0.5)]))
    done = CliRunner().invoke(build(), ["serve", "--db", db, "--host", "0.0.0.0"])
    assert isinstance(done.exception, ConfigurationError)
    assert "STEELYARD_VIEW_TOKEN" in str(done.exception)


def test_the_port_that_is_said_is_the_one_that_listens(tmp_path: Path) -> None:
    db = str(results(tmp_path / "a.db", [turn(1, 0.5)]))
    main = "from steelyard.cli import main; main()"
    command = [sys.executable, "-c", main, "serve", "--db", db, "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            said = re.search(r"http://127\.0\.0\.1:([0-9]+)/", serving.stderr.readline())
            assert said is not None and said[1] != "0"
            with urllib.request.urlopen(said[0], timeout=30) as page:
                assert page.status == 200
        finally:
            serving.terminate()
