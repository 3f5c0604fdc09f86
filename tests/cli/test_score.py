"""`steelyard score` with the local judge: what it writes, what it says, and how it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import programs
from cli.running import Steelyard, write_lines

PARIS = "Paris is the capital of France. It lies on the Seine."
GOOD = {"id": "good", "question": "What is the capital of France?", "contexts": [PARIS], "answer": PARIS[:31]}
POOR = {**GOOD, "id": "poor", "answer": "Wolves hunt reindeer in northern Norway at night."}


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "turns.jsonl", GOOD, POOR)


def scores(line: dict[str, Any]) -> dict[str, Any]:
    return {score["metric"]: score["value"] for score in line["scores"]}


def test_one_evaluation_a_line_in_the_order_of_the_file(steelyard: Steelyard, turns: Path) -> None:
    outcome = steelyard("score", turns, "--out", "/dev/stdout")
    assert outcome.status == 0
    good, poor = outcome.lines
    assert (good["record_id"], poor["record_id"]) == ("good", "poor")
    assert scores(good)["faithfulness"] == 1
    assert scores(poor)["faithfulness"] < 0.2
    assert {"metric", "status", "value", "explanation", "verdicts"} <= set(good["scores"][0])
    assert "usage" in good
    assert "record" not in good


def test_out_may_be_a_file_or_a_dash(steelyard: Steelyard, turns: Path, tmp_path: Path) -> None:
    to_file = steelyard("score", turns, "-o", tmp_path / "out.jsonl")
    assert (to_file.status, to_file.out) == (0, "")
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    to_dash = steelyard("score", turns, "-o", "-")
    assert list(map(scores, written)) == list(map(scores, to_dash.lines))


def test_the_summary_names_means_worst_records_and_how(steelyard: Steelyard, turns: Path) -> None:
    told = steelyard("score", turns, "--metrics", "faithfulness,context_recall").err
    row = next(line.split() for line in told.splitlines() if line.startswith("faithfulness"))
    assert row[:2] == ["faithfulness", "0.50"]
    assert row[3:] == ["1", "1", "≥", "1", "0", "0"]
    assert "the record has no reference" in told and "context_recall 2" in told
    assert told.count("the record has no reference") == 1
    worst = next(line for line in told.splitlines() if "poor" in line)
    assert "0.00" in worst and "Wolves" in worst
    assert "judge local-lexical (not calibrated against people)" in told


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_summary_fits_the_terminal(steelyard: Steelyard, turns: Path, columns: int) -> None:
    told = steelyard("score", turns, columns=columns).err
    assert max(map(len, told.splitlines())) <= max(columns, 72)


def test_a_bad_line_is_named_and_the_others_are_scored(steelyard: Steelyard, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in.jsonl", GOOD, "{oops", {"question": 1}, POOR)
    outcome = steelyard("score", path, "-o", "-")
    assert outcome.status == 1
    assert [line["record_id"] for line in outcome.lines] == ["good", "poor"]
    assert "line 2: not JSON" in outcome.err
    assert "line 3: 'question' must be a string, not a number" in outcome.err
    assert "2 bad lines" in outcome.err


def test_many_bad_lines_are_counted(steelyard: Steelyard, tmp_path: Path) -> None:
    told = steelyard("score", write_lines(tmp_path / "in.jsonl", *["nonsense"] * 100)).err
    assert told.count("not JSON") == 20
    assert "100 bad lines" in told


def test_the_names_of_ragas(steelyard: Steelyard, tmp_path: Path) -> None:
    line = {"user_input": GOOD["question"], "retrieved_contexts": [PARIS], "response": PARIS[:31]}
    path = write_lines(tmp_path / "in.jsonl", {**line, "ground_truth": "Paris"})
    (scored,) = steelyard("score", path, "-o", "-").lines
    assert scored["record_id"] == "1"
    assert scores(scored)["faithfulness"] == 1


def test_a_list_of_records_is_scored_and_a_table_is_sent_elsewhere(
    steelyard: Steelyard, tmp_path: Path
) -> None:
    path = tmp_path / "in.json"
    path.write_text(json.dumps([GOOD, POOR], indent=2))
    assert [line["record_id"] for line in steelyard("score", path, "-o", "-").lines] == ["good", "poor"]
    outcome = steelyard("score", tmp_path / "in.csv")
    assert (outcome.status, "`steelyard backfill`" in outcome.err) == (2, True)


def test_fields_of_ones_own_are_asked_about_and_can_be_named(steelyard: Steelyard, tmp_path: Path) -> None:
    line = {"query": GOOD["question"], "fetched": [{"page": 3, "text": PARIS}], "answer": PARIS[:31]}
    path = write_lines(tmp_path / "in.jsonl", line)
    for told in (steelyard("score", path).err, steelyard("backfill", path, "--plan").err):
        assert "1 turn without contexts; is that in 'fetched'? --map contexts=fetched" in told
    outcome = steelyard("score", path, "--map", "contexts=fetched", "-o", "-")
    assert scores(outcome.lines[0])["faithfulness"] == 1
    assert "--map" not in outcome.err


@pytest.mark.parametrize(
    ("bar", "status", "said"),
    [
        ("faithfulness=0.5", 0, ""),
        ("faithfulness=0.7", 1, "is under 0.7"),
        ("hallucination=0.9", 0, ""),
        ("context-recall=0.1", 1, "context_recall has no value to hold against 0.1"),
    ],
)
def test_fail_under(steelyard: Steelyard, turns: Path, bar: str, status: int, said: str) -> None:
    outcome = steelyard(
        "score", turns, "-m", "faithfulness,hallucination,context_recall", "--fail-under", bar
    )
    assert outcome.status == status
    assert said in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "cannot read 'nowhere.jsonl': No such file or directory"),
        ([".."], "cannot read '..': Is a directory"),
        (["IN", "--metrics", "faithfulnes"], "no metric is named 'faithfulnes'"),
        (["IN", "--fail-under", "faithfulness"], "--fail-under 'faithfulness' is not of the form metric=0.8"),
        (["IN", "--fail-under", "faithfulness=nan"], "is not of the form metric=0.8"),
        (["IN", "--fail-under", "nonsense=1"], "--fail-under 'nonsense=1': scored are faithfulness"),
        (["IN", "--out", "nowhere/out.jsonl"], "cannot write 'nowhere/out.jsonl': No such file or directory"),
        (["IN", "--out", "IN"], "is the input; name another file"),
        (["IN", "--judge", "openai"], "--judge openai needs a key"),
        (["IN", "--judge", "decisions"], "--judge decisions needs a key"),
        (["IN", "--judge", "pair"], "`pair:FILE` with an ONNX model"),
        (["IN", "--embedder", "m"], "--embedder, --base-url and --api-key-env need --judge"),
        (["IN", "--judge", "openai", "--api-key-env", "NO_SUCH"], "NO_SUCH: that variable is not set"),
        pytest.param(
            ["IN", "--out", "/dev/full"],
            "No space left on device",
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here"),
        ),
        (["IN", "--judge", "clever"], "clever"),
        (["IN", "--concurrency", "0"], "concurrency"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage_is_one_message_and_status_2(
    steelyard: Steelyard, turns: Path, arguments: list[str], said: str
) -> None:
    outcome = steelyard("score", *(str(turns) if word == "IN" else word for word in arguments), columns=200)
    assert outcome.status == 2
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert turns.read_text(), "the input is untouched"


def test_an_empty_file_is_not_a_success(steelyard: Steelyard, tmp_path: Path) -> None:
    outcome = steelyard("score", write_lines(tmp_path / "empty.jsonl"))
    assert outcome.status == 1
    assert "no records in" in outcome.err


def test_empty_parts_are_not_applicable_never_zero(steelyard: Steelyard, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in.jsonl", {"question": "Q?", "contexts": [], "answer": ""})
    outcome = steelyard("score", path, "-o", "-")
    assert outcome.status == 0
    (line,) = outcome.lines
    assert {score["status"] for score in line["scores"]} == {"not_applicable"}
    assert {score["value"] for score in line["scores"]} == {None}


def test_texts_cannot_steer_the_terminal(steelyard: Steelyard, tmp_path: Path) -> None:
    steer = "\x1b]0;mine\x07\x1b[2J\u202egninrut\u200b\r"
    bad = {
        **POOR,
        "id": f"id{steer}",
        "answer": f"Wolves {steer} hunt reindeer.",
        "question": f"{steer} Who?",
    }
    path = write_lines(tmp_path / "in.jsonl", bad, {f"key{steer}": 1})
    outcome = steelyard("score", path)
    assert "Wolves" in outcome.err and "line 2" in outcome.err
    assert not set("\x1b\x07\u202e\u200b\r") & set(outcome.err)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from steelyard.cli import main; main()", *arguments]


def test_standard_input_and_a_reader_that_leaves_early(turns: Path) -> None:
    text = turns.read_bytes() * 200
    process = subprocess.Popen(
        command("score", "-", "-m", "retrieval_recall", "-o", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(text)
    process.stdin.close()
    first = json.loads(process.stdout.readline())
    process.stdout.close()
    told = process.stderr.read().decode()
    process.stderr.close()
    assert first["record_id"] == "good"
    process.wait(120)
    assert told == ""


def test_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    line = {
        "id": "ü",
        "question": "Wer?",
        "contexts": ["Kästner schrieb es."],
        "answer": "Kästner schrieb es.",
    }
    path = write_lines(tmp_path / "in.jsonl", line)
    done = subprocess.run(
        command("score", str(path), "-o", "-"),
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
    )
    assert json.loads(done.stdout)["record_id"] == "ü"


@pytest.mark.timeout(240)  # two processes that score 550 long records
def test_memory_is_bounded(tmp_path: Path) -> None:
    """Twenty megabytes of records are scored without being held."""
    path = tmp_path / "many.jsonl"
    line = json.dumps({"question": "Q?", "contexts": ["x" * 20_000], "answer": "y" * 20_000}) + "\n"
    path.write_text(line * 500)
    measure = (
        "import resource, sys; from steelyard.cli import main\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    few = tmp_path / "few.jsonl"
    few.write_text(line * 50)

    def peak(source: Path) -> int:
        done = programs.run(["-c", measure, "score", source, "-m", "retrieval_recall"], ours=True)
        return int(done.stdout)

    assert peak(path) < peak(few) + 10
