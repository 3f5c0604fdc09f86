"""`steelyard demo`: the whole path, offline, in whatever terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import programs
from cli.running import Steelyard
from judge_server import Fault, JudgeServer, Received
from steelyard.cli.demo._text import QUESTIONS, UNANSWERABLE
from steelyard.sinks import read_evaluations

DEMO = ("-c", "from steelyard.cli import main; main()", "demo")
IMPORTS = "import langchain_core.language_models\nimport langchain_core.runnables\n"
TURNS = 2 * (len(QUESTIONS) + len(UNANSWERABLE))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_inventing_chain_comes_out_worse(steelyard: Steelyard, here: Path) -> None:
    started = time.monotonic()
    outcome = steelyard("demo", columns=80)
    assert outcome.status == 0, outcome.err
    assert time.monotonic() - started < 20
    means: dict[tuple[str, str], float] = {}
    for variant in ("plain", "inventing"):
        found = [e for e in read_evaluations("steelyard.db") if e.record and variant in e.record.tags]
        assert len(found) == TURNS / 2
        for metric in ("faithfulness", "hallucination"):
            values = [e[metric].value for e in found if e[metric].value is not None]
            assert len(values) >= len(QUESTIONS)
            means[variant, metric] = sum(v for v in values if v is not None) / len(values)
    row = next(line for line in outcome.out.splitlines() if line.startswith("faithfulness"))
    shown = [float(number) for number in re.findall(r"[+-]?\d\.\d\d", row)]
    assert shown[:2] == [
        pytest.approx(means["plain", "faithfulness"], abs=0.005),
        pytest.approx(means["inventing", "faithfulness"], abs=0.005),
    ]
    assert means["inventing", "faithfulness"] < means["plain", "faithfulness"] - 0.3
    assert means["inventing", "hallucination"] > means["plain", "hallucination"] + 0.3
    assert "Chain B is worse" in outcome.out
    assert f"{TURNS} turns seen, {TURNS} evaluated, 0 pending, 0 lost" in outcome.out


@pytest.mark.parametrize("columns", [80, 120])
def test_rows_fit_the_terminal(steelyard: Steelyard, here: Path, columns: int) -> None:
    lines = steelyard("demo", columns=columns).out.splitlines()
    assert max(map(len, lines)) <= columns
    rows = [line for line in lines if re.search(r"( +(\d\.\d\d|n/a)){4}  ", line)]
    assert len(rows) == TURNS / 2
    assert rows[0].startswith(QUESTIONS[0][:15])


def test_what_cannot_be_answered_is_not_held_against_a_chain(steelyard: Steelyard, here: Path) -> None:
    steelyard("demo")
    refusals = [e for e in read_evaluations("steelyard.db") if e.record and e.record.question in UNANSWERABLE]
    assert len(refusals) == 2 * len(UNANSWERABLE)
    assert {e["faithfulness"].status for e in refusals} == {"not_applicable"}


def test_another_file_and_a_report_of_it(steelyard: Steelyard, here: Path) -> None:
    assert steelyard("demo", "--db", "other.db").status == 0
    assert not (here / "steelyard.db").exists()
    report = steelyard("report", "--db", "other.db", "--tag", "inventing")
    assert report.status == 0
    assert report.out.startswith(f"{TURNS // 2} records in other.db")
    assert "is in no context" in report.out


def test_a_folder_that_is_not_there(steelyard: Steelyard, here: Path) -> None:
    outcome = steelyard("demo", "--db", "nowhere/steelyard.db")
    assert outcome.status == 2
    assert "nowhere/steelyard.db" in outcome.err
    assert "Traceback" not in outcome.err


def test_piped_into_a_program_without_color_or_cursor(here: Path) -> None:
    env = {**os.environ, "TERM": "dumb", "OPENAI_API_KEY": "sk-unused"}
    done = programs.run(DEMO, source=IMPORTS, cwd=here, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "not used unasked" in done.stdout
    assert "sk-unused" not in done.stdout


def test_without_langchain_it_says_what_to_install(here: Path) -> None:
    code = "import sys; sys.modules['langchain_core'] = None; from steelyard.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True, cwd=here)
    assert done.returncode == 2
    assert (
        done.stderr
        == "steelyard: 'langchain-core' is not installed; run: pip install 'steelyard[langchain]'\n"
    )


def test_a_terminal_that_knows_only_ascii(here: Path) -> None:
    done = programs.run(DEMO, source=IMPORTS, cwd=here, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and "Chain B is worse" in done.stdout


def answer(request: Received) -> Any:
    return "The steelyard is a balance, invented in 1234."


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(answer) as running:
        yield running


def test_answers_by_a_model(steelyard: Steelyard, here: Path, server: JudgeServer) -> None:
    outcome = steelyard("demo", "--model", "m", "--base-url", server.url)
    assert outcome.status == 0, outcome.err
    assert len(server.received) == TURNS
    assert "Question: How is the weight read" in server.received[0].text
    answers = {e.record.answer for e in read_evaluations("steelyard.db") if e.record}
    assert "The steelyard is a balance, invented in 1234." in answers
    assert len(answers) == 2


def test_a_model_that_does_not_answer_is_one_line(
    steelyard: Steelyard, here: Path, server: JudgeServer
) -> None:
    server.faults.extend([Fault(status=400, message="no such model")] * 10)
    outcome = steelyard("demo", "--model", "m", "--base-url", server.url)
    assert outcome.status == 2
    assert "the model 'm' does not answer" in outcome.err and "no such model" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "gpt-4o-mini"], "--model needs a key"),
        (["--base-url", "http://127.0.0.1:9/v1"], "--base-url needs --model"),
    ],
)
def test_wrong_usage(steelyard: Steelyard, here: Path, arguments: list[str], said: str) -> None:
    outcome = steelyard("demo", *arguments)
    assert outcome.status == 2
    assert said in outcome.err
