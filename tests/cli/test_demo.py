"""`steelyard demo`: the whole path, offline, in whatever terminal."""

from __future__ import annotations

import os
import re
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

import programs
from cli.running import Steelyard
from steelyard.cli.demo._chain import INVENTED, UNANSWERABLE, build_chain, passages
from steelyard.scores import Evaluation
from steelyard.sinks import read_evaluations

DEMO = (*programs.STEELYARD, "demo")
IMPORTS = "import langchain_core.language_models\nimport langchain_core.runnables\n"
TURNS = 3 * (len(INVENTED) + len(UNANSWERABLE))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class Shown:
    """What one run of the demo printed into a pipe, and what it stored."""

    out: str
    err: str
    evaluations: list[Evaluation]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo")
    env = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "OPENAI_API_KEY": "sk-unused"}
    done = programs.run(DEMO, source=IMPORTS, ours=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    return Shown(done.stdout, done.stderr, list(read_evaluations(folder / "steelyard.db")))


def test_the_inventing_chain_comes_out_worse(shown: Shown) -> None:
    means = {}
    for variant in ("plain", "inventing"):
        found = [e for e in shown.evaluations if e.record and variant in e.record.tags]
        assert len(found) == TURNS / 3
        values = [value for e in found if (value := e["faithfulness"].value) is not None]
        assert len(values) >= len(INVENTED)
        means[variant] = sum(values) / len(values)
    said = re.search(r"Chain B is worse: faithfulness (\d\.\d\d) in A, (\d\.\d\d) in\s+B;", shown.out)
    assert said is not None
    assert float(said[1]) == pytest.approx(means["plain"], abs=0.005)
    assert float(said[2]) == pytest.approx(means["inventing"], abs=0.005)
    assert means["inventing"] < means["plain"] - 0.3
    assert f"{TURNS} turns seen, {TURNS} evaluated, 0 pending, 0 lost" in shown.out


def test_the_cause_of_each_chains_bad_turns_is_named(shown: Shown) -> None:
    told = shown.out.partition("Why turns are bad")[2]
    causes = [line.split()[:3] for line in told.splitlines() if re.match(r"  [ABC]  ", line)]
    assert causes[1:] == [["B", "contradicted", causes[1][2]], ["C", "passage", "lost"]]
    stored = [e.diagnosis for e in shown.evaluations]
    assert sum(found is not None and found.cause == "passage_lost" for found in stored) >= 8


def test_rows_fit_the_terminal(shown: Shown) -> None:
    lines = shown.out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if re.search(r"( +(\d\.\d\d|n/a)){2}  ", line)]
    assert len(rows) == TURNS / 3
    assert rows[0].startswith(next(iter(INVENTED))[:15])


def test_what_cannot_be_answered_is_not_held_against_a_chain(shown: Shown) -> None:
    refusals = [e for e in shown.evaluations if e.record and e.record.question in UNANSWERABLE]
    assert len(refusals) == 3 * len(UNANSWERABLE)
    assert {e["faithfulness"].status for e in refusals} == {"not_applicable"}


def test_into_a_pipe_it_prints_no_color_no_cursor_and_no_key(shown: Shown) -> None:
    assert shown.err == ""
    assert "\x1b" not in shown.out
    assert "sk-unused" not in shown.out


def test_another_file_and_a_report_of_it(steelyard: Steelyard, here: Path) -> None:
    assert steelyard("demo", "--db", "other.db").status == 0
    assert not (here / "steelyard.db").exists()
    report = steelyard("report", "--db", "other.db", "--tag", "inventing")
    assert report.status == 0
    assert report.out.startswith(f"{TURNS // 3} records in other.db")
    assert "is in no context" in report.out
    (command, *_) = re.findall(r"steelyard explain (\S+) --db other.db", report.out)
    assert steelyard("explain", command, "--db", "other.db").status == 0


def test_a_folder_that_is_not_there(steelyard: Steelyard, here: Path) -> None:
    outcome = steelyard("demo", "--db", "nowhere/steelyard.db")
    assert outcome.status == 2
    assert "nowhere/steelyard.db" in outcome.err
    assert "Traceback" not in outcome.err


def test_without_langchain_it_says_what_to_install(here: Path) -> None:
    code = "import sys; sys.modules['langchain_core'] = None; from steelyard.cli import main; main()"
    done = programs.run(["-c", code, "demo"], ours=True, cwd=here)
    assert done.returncode == 2
    assert (
        done.stderr
        == "steelyard: 'langchain-core' is not installed; run: pip install 'steelyard[langchain]'\n"
    )


def test_a_terminal_that_knows_only_ascii(here: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = programs.run(DEMO, source=IMPORTS, ours=True, cwd=here, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and "Chain B is worse" in done.stdout


def test_a_made_up_fortnight_is_served_with_its_fall_its_slice_and_its_cause(here: Path) -> None:
    with programs.start([*DEMO, "--serve"], ours=True, live=True, cwd=here) as serving:
        try:
            assert serving.stderr is not None
            said = next(found for line in serving.stderr if (found := re.search(r"http://[0-9.:]+/", line)))
            with urllib.request.urlopen(f"{said[0]}api/closer", timeout=120) as page:
                shown = page.read().decode()
            assert re.search("faithfulness fell from 0.9[0-9] to 0.[45][0-9] .* in tenant: acme", shown)
            assert "More of them suffer from passage lost" in shown
            assert shown.count("version went from 1.8 to 1.9") == 1, "one event is told once"
            assert re.search(
                "context_precision fell from .* with faithfulness, in the same turns since", shown
            )
        finally:
            serving.terminate()
    assert list(here.iterdir()) == []


chain, inventing = build_chain(), build_chain(invents=True)


def test_the_text_is_some_fifty_passages_with_titles() -> None:
    text = passages()
    assert len(text) >= 50
    assert len({passage.id for passage in text}) == len(text)
    assert all(len(passage.page_content.partition("\n")[2]) > 80 for passage in text)


@pytest.mark.parametrize("question", INVENTED)
def test_an_invented_answer_is_another_of_the_same_length_in_words(question: str) -> None:
    told, invented = chain.invoke(question), inventing.invoke(question)
    assert told != invented
    assert abs(len(told.split()) - len(invented.split())) <= 2
