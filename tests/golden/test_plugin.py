"""The pytest plugin, in a pytest of its own as a user runs it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import Steelyard as CommandLine
from judge_server import JudgeServer, Received
from steelyard.cli.demo import demo_chain
from steelyard.cli.demo._chain import passages
from steelyard.golden import Case, GoldenSet
from steelyard.pytest_plugin import Steelyard

SUITE = """
import pytest
from steelyard.record import Context, Record

LAMP = Context(text="Ada lit the lamp in 1811.")


def app(question):
    return {"answer": "Ada lit the lamp in 1811.", "contexts": [LAMP.text]}


@pytest.mark.golden("lamps.jsonl")
def test_each_case(case, steelyard):
    record = case.record(answer=app(case.question)["answer"], contexts=(LAMP,))
    steelyard.assert_scores(record, faithfulness=0.8)


@pytest.mark.golden("lamps.jsonl")
@pytest.mark.gate("faithfulness=0.8", fall=0.1)
def test_the_mean(steelyard):
    steelyard.check(app, metrics=["faithfulness"])
"""
FAILING = """
import pytest
from steelyard.record import Context, Record


def test_a_claim(steelyard):
    lamp = Context(text="Ada lit it in 1811.")
    record = Record(question="When?", contexts=(lamp,), answer="Ada lit it in 1911.")
    steelyard.assert_scores(record, faithfulness=0.8)


@pytest.mark.golden("lamps.jsonl")
@pytest.mark.gate("faithfulness=0.8")
def test_the_mean(steelyard):
    steelyard.check(lambda question: {"answer": "Bees hum in C.", "contexts": ["Ada lit it."]})
"""
LAMPS = GoldenSet(cases=(Case(question="Who lit it?"), Case(question="When was it lit?")))


def run_pytest(folder: Path, *arguments: str, autoload: bool = True) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "OPENAI"))}
    if not autoload:
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-W", "error", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=150)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    LAMPS.save(tmp_path / "lamps.jsonl")
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_cases_become_tests_and_gates_decide_with_and_without_xdist(
    suite: Path, workers: tuple[str, ...]
) -> None:
    done = run_pytest(suite, "-vv", *workers)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"test_each_case[{LAMPS.cases[0].id}]" in done.stdout
    assert "3 passed" in done.stdout
    assert "faithfulness" in done.stdout and "2 passed, 0 failed, mean 1.000" in done.stdout
    assert "gate faithfulness >= 0.8: pass, mean 1.000, 2 scores" in done.stdout


def test_a_failure_shows_the_claim_with_its_evidence(suite: Path) -> None:
    (suite / "test_suite.py").write_text(FAILING)
    done = run_pytest(suite)
    assert done.returncode == 1
    assert "faithfulness is 0." in done.stdout
    assert "'Ada lit it in 1911.' (supported: no)" in done.stdout
    assert "nearest in context 1: 'Ada lit it in 1811.'" in done.stdout
    assert "## Golden set golden: failed" in done.stdout
    assert "gate faithfulness >= 0.8: fail" in done.stdout
    assert "0 passed, 1 failed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_verdicts_of_a_remote_judge_are_cached_by_content(suite: Path) -> None:
    def agree(request: Received) -> object:
        assert request.schema is not None
        return {
            key: ["Ada lit it."] if "array" in str(shape) else {"reason": "r", "verdict": True, "context": 0}
            for key, shape in request.schema["properties"].items()
        }

    with JudgeServer(agree) as server:
        judge = ("--steelyard-judge", "openai:m", "--steelyard-base-url", server.url, "-k", "each_case")
        first = run_pytest(suite, *judge)
        asked = len(server.received)
        second = run_pytest(suite, *judge)
        again = len(server.received)
        third = run_pytest(suite, *judge, "--steelyard-no-cache")
        anew = len(server.received)
    assert (first.returncode, second.returncode, third.returncode) == (0, 0, 0), first.stdout
    assert asked > 0 and again == asked and anew > again


def test_nothing_is_shown_or_loaded_where_it_is_not_used(tmp_path: Path) -> None:
    heavy = "{'numpy', 'openai', 'pydantic', 'rich', 'langchain_core', 'steelyard.golden'}"
    (tmp_path / "test_plain.py").write_text(
        f"import sys\ndef test_plain():\n    assert not {heavy} & set(sys.modules)\n"
        "    assert 'steelyard.pytest_plugin' in sys.modules\n"
    )
    # Other plugins that happen to be installed here load what they like, so they stay out.
    done = run_pytest(tmp_path, "-p", "steelyard.pytest_plugin", autoload=False)
    assert done.returncode == 0, done.stdout
    assert "steelyard" not in done.stdout


@pytest.mark.slow
def test_a_set_that_is_missing_or_broken_is_said_at_collection(suite: Path) -> None:
    (suite / "lamps.jsonl").unlink()
    done = run_pytest(suite)
    assert done.returncode != 0 and "no golden set 'lamps.jsonl'" in done.stdout + done.stderr
    (suite / "lamps.jsonl").write_text("{}\n")
    done = run_pytest(suite)
    assert done.returncode != 0 and "line 1" in done.stdout + done.stderr


FOLDER = Path(__file__).parents[2] / "examples" / "golden"


@pytest.mark.golden("examples/golden/weighing.jsonl")
@pytest.mark.gate("faithfulness=0.9", "context_recall=0.7", "declined=0.9")
def test_the_demos_chain_passes_its_gates(steelyard: Steelyard) -> None:
    run = steelyard.check(demo_chain(), metrics=["faithfulness"], thresholds={"faithfulness": 0.5})
    assert len(run.cases) == 22 and not run.warnings
    assert all(case.contexts for case in run if case.kind != "unanswerable")


def test_the_set_rests_on_sentences_of_the_demos_text() -> None:
    golden = GoldenSet.load(FOLDER / "weighing.jsonl")
    assert golden.declared_version == golden.version
    text = " ".join(passage.page_content for passage in passages())
    for case in golden:
        assert bool(case.reference_contexts) != (case.kind == "unanswerable")
        assert all(sentence in text for sentence in case.reference_contexts)


def test_the_command_of_the_workflow_file_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = (FOLDER / "ci.yml").read_text()
    command = re.search(r"run: >\n(.*?)\n      - uses", workflow, re.DOTALL)
    assert command is not None
    words = shlex.split(command.group(1).replace("$GITHUB_STEP_SUMMARY", "summary.md"))
    words = [str(FOLDER / "weighing.jsonl") if word.endswith("weighing.jsonl") else word for word in words]
    monkeypatch.chdir(tmp_path)
    done = CommandLine(capfd, monkeypatch)(*words[1:])
    assert words[0] == "steelyard" and done.status == 0, done.out + done.err
    assert "## Golden set weighing: passed" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "golden.xml").exists() and (tmp_path / "run.json").exists()
