"""The demo's own chain, gated by the golden set of examples/golden."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cli.running import Steelyard as CommandLine
from steelyard.cli.demo import demo_chain
from steelyard.cli.demo._chain import passages
from steelyard.golden import GoldenSet
from steelyard.pytest_plugin import Steelyard

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
