"""`steelyard judge check`: the page, the JSON, the plan before anything is sent, and the exit status."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from cli.running import Steelyard
from judge_server import Fault, JudgeServer
from steelyard.report import open_results
from steelyard.sinks import SQLiteSink


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """A small set of one's own: five kinds, ten pairs."""
    data = files("steelyard.probing") / "data"
    (tmp_path / "texts.jsonl").write_bytes((data / "texts.jsonl").read_bytes())
    lines = (data / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = ("number", "role_swap", "language", "injection", "evasive")
    few = [line for kind in kinds for line in lines if json.loads(line)["id"] in (f"{kind}-1", f"{kind}-2")]
    (tmp_path / "pairs.jsonl").write_text("\n".join(few), encoding="utf-8")
    return tmp_path


def test_the_page_fits_a_terminal_of_80_columns_and_ends_with_advice(steelyard: Steelyard) -> None:
    outcome = steelyard("judge", "check", columns=80)
    assert outcome.status == 0, outcome.err
    assert "…" not in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80
    body, _, told = outcome.out.partition("What to take it for")
    for word in ("local-lexical", "454 probes", "role swap", "overlap", "length", "order reversed", "  zh"):
        assert word in body
    assert "number" in told and told.count(" - ") >= 4


def test_figures_as_json(steelyard: Steelyard, some: Path) -> None:
    outcome = steelyard("judge", "check", "--probes", some, "--json")
    assert outcome.status == 0, outcome.err
    (line,) = outcome.lines
    assert line["judge"] == "local-lexical"
    assert (line["n"], line["published"], len(line["probes"])) == (20, False, 64)
    assert line["kinds"]["number"]["right"]["n"] == 4
    assert [baseline["judge"] for baseline in line["baselines"]] == ["word-overlap", "answer-length"]
    assert [(one["n"], one["probes"]) for one in line["baselines"]] == [(20, line["probes"])] * 2
    assert line["advice"] and line["price"] is None


def test_a_set_of_ones_own_is_named_on_the_page(steelyard: Steelyard, some: Path) -> None:
    assert "a set of your own" in steelyard("judge", "check", "--probes", some).out


def test_a_check_is_kept_beside_results_if_there_are_any(
    steelyard: Steelyard, some: Path, tmp_path: Path
) -> None:
    db = tmp_path / "kept.db"
    missing = steelyard("judge", "check", "--probes", some, "--db", db)
    assert missing.status == 2 and "kept.db" in missing.err and not missing.out
    asyncio.run(SQLiteSink(db).write([]))
    assert "Kept beside your results" in steelyard("judge", "check", "--probes", some, "--db", db).err
    with closing(open_results(db)) as results:
        (check,) = results.checks()
    assert (check.judge, check.published, check.right.n) == ("local-lexical", False, 20)
    assert sum(n for _, _, n in check.bins) == 20 and check.error is not None


@pytest.mark.parametrize(("bar", "status"), [("0.01", 0), ("0.99", 1)])
def test_fail_under_decides_the_exit_status(steelyard: Steelyard, some: Path, bar: str, status: int) -> None:
    outcome = steelyard("judge", "check", "--probes", some, "--fail-under", bar)
    assert outcome.status == status
    assert ("under 0.99" in outcome.err) == bool(status)
    # As many as asked for are enough.
    overall = json.loads(steelyard("judge", "check", "--probes", some, "--json").out)["overall"]
    exactly = str(overall["right"]["value"])
    assert steelyard("judge", "check", "--probes", some, "--fail-under", exactly).status == 0


def test_a_remote_judge_is_not_asked_without_yes(steelyard: Steelyard, some: Path) -> None:
    with JudgeServer() as server:
        where = ("--judge", "openai:m", "--base-url", server.url, "--probes", some)
        outcome = steelyard("judge", "check", *where)
        assert (outcome.status, server.received) == (2, [])
        assert "add --yes" in outcome.err and "price" in outcome.err
        planned = int(outcome.err.split(" requests")[0].rsplit(" ", 1)[1])
        asked = steelyard("judge", "check", *where, "--yes", "--json")
        assert asked.status == 0, asked.err
        assert (
            planned == len(server.received) == sum(p["requests"] for p in asked.lines[0]["passes"].values())
        )
    assert asked.lines[0]["overall"]["right"]["value"] == 0.5
    assert asked.lines[0]["overall"]["pairs"]["value"] == 0


def test_a_known_model_has_its_price_in_the_plan(steelyard: Steelyard, some: Path) -> None:
    outcome = steelyard("judge", "check", "--judge", "openai:gpt-4o-mini", "--probes", some)
    assert outcome.status == 2
    assert "about $0." in outcome.err


def test_a_judge_that_refuses_is_accounted_for_by_cause_and_nothing_is_kept_of_it(
    steelyard: Steelyard, some: Path, tmp_path: Path
) -> None:
    db = tmp_path / "kept.db"
    asyncio.run(SQLiteSink(db).write([]))
    with JudgeServer() as server:
        server.faults.extend([Fault(status=401, message="no such key")] * 1000)
        where = ("--judge", "openai:m", "--base-url", server.url, "--db", db)
        outcome = steelyard("judge", "check", *where, "--probes", some, "--yes")
    with closing(open_results(db)) as results:
        assert results.checks() == []
    assert outcome.status == 1
    assert "the judge answered nothing" in outcome.err
    assert "unauthorized 20" in outcome.out
    assert len(server.received) < 40


def test_the_plan_names_the_judge_as_it_is(steelyard: Steelyard, some: Path) -> None:
    done = steelyard("judge", "check", "--judge", "openai:m", "--base-url", "http://h/v1", "--probes", some)
    # No picture in place of `:m:`.
    assert done.status == 2 and done.err.startswith("chat:m: ")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--judge", "oracle"), "no judge 'oracle'"),
        (("--judge", "local:a"), "write `local` alone"),
        (("--judge", "local", "--base-url", "http://127.0.0.1:9/v1"), "need --judge openai"),
        (("--probes", "/nowhere"), "no probe set in '/nowhere'"),
    ],
)
def test_wrong_options_are_named(steelyard: Steelyard, options: tuple[str, ...], told: str) -> None:
    outcome = steelyard("judge", "check", *options)
    assert outcome.status == 2
    assert told in outcome.err


def test_a_pair_model_is_checked_without_a_price(steelyard: Steelyard, some: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    from judge.pair.models import write_pair

    folder = write_pair(tmp_path / "model")
    done = steelyard("judge", "check", "--judge", f"pair:{folder}", "--probes", some, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["judge"].startswith("pair:onnx/model.onnx:") and found["price"] is None
    (tmp_path / "no.onnx").write_text("text")
    failed = steelyard("judge", "check", "--judge", f"pair:{tmp_path / 'no.onnx'}")
    assert failed.status == 2 and "no.onnx" in failed.err
