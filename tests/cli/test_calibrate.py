"""`steelyard label` and `steelyard calibrate`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from cli.running import Steelyard
from report.parts import results, turn
from steelyard.calibration import Calibration
from steelyard.record import Context, Record, TraceRef
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.scores import Evaluation, Provenance, Score, Verdict
from steelyard.view.labelling import turns_to_label
from writing import write


def made(number: int, value: float) -> Evaluation:
    verdicts = tuple(
        Verdict(about=f"Claim {number}{letter}.", kind="supported", value=value >= 0.5, probability=value)
        for letter in "ab"
    )
    score = Score(
        id=f"s{number}",
        metric="faithfulness",
        status="scored",
        value=value,
        verdicts=verdicts,
        provenance=Provenance(judge="local-lexical", prompt_version="1"),
    )
    record = Record(
        id=f"r{number}",
        question=f"Question {number}?",
        contexts=(Context(text="A passage with \x1b[31mcolour."),),
        answer=f"Claim {number}a. Claim {number}b.",
        trace=TraceRef(trace_id=f"{number:032x}", span_id=f"{number:016x}"),
    )
    return Evaluation(
        record_id=record.id, scores=(score,), record=record, trace=record.trace, evaluated_at=1.0 + number
    )


def written(folder: Path, turns: int = 120) -> tuple[Path, list[bool]]:
    """A results file whose judge is right in its order and far too kind."""
    drawn = random.Random(0)
    values = [round(drawn.random(), 3) for _ in range(turns)]
    good = [drawn.random() < value**2 for value in values]
    write(folder / "s.db", *[made(number, value) for number, value in enumerate(values)])
    return folder / "s.db", good


def labels(good: list[bool], who: str = "ada") -> list[Label]:
    return [
        Label(record_id=f"r{number}", value="good" if one else "bad", who=who, labelled_at=1.0, drawn=1.0)
        for number, one in enumerate(good)
    ]


def answers(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    waiting = iter(lines)

    def answer(*_: object) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)


def test_labels_are_stored_as_they_are_given(
    steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, _ = written(tmp_path, 20)
    first, second, third = next_to_label(db)
    answers(monkeypatch, "G", "what?", "b", "s")
    done = steelyard("label", "--db", db, "--who", "ada", "-n", "5")
    assert done.status == 0 and "stored 2 labels" in done.out
    assert "please answer with one of g, b, s" in done.out
    assert "\x1b" not in done.out
    assert [(one.record_id, one.value, one.who) for one in open_labels(str(db))] == [
        (first, "good", "ada"),
        (second, "bad", "ada"),
    ]
    assert all(one.drawn is not None and 0 < one.drawn <= 1 for one in open_labels(str(db)))
    assert next_to_label(db)[0] == third, "a turn that was passed over comes again"


def next_to_label(db: Path) -> list[str]:
    return [judged.record_id for judged, _ in turns_to_label(str(db), limit=3).turns]


def test_a_turn_that_somebody_picked_may_still_be_drawn(tmp_path: Path) -> None:
    """If it dropped out, what is drawn would tell of turns that nobody had picked."""
    db, _ = written(tmp_path, 20)
    before = next_to_label(db)
    open_labels(str(db)).put([Label(record_id=before[0], value="bad", who="ada", labelled_at=1.0)])
    assert next_to_label(db) == before


def test_what_the_judge_says_is_shown_only_after_the_answer(
    steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, _ = written(tmp_path, 5)
    answers(monkeypatch)
    assert "judge" not in steelyard("label", "--db", db).out
    answers(monkeypatch, "g", "q")
    assert steelyard("label", "--db", db).out.count("The judge: faithfulness") == 1


def test_claims_of_a_metric_are_labelled_one_by_one(
    steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, _ = written(tmp_path, 5)
    answers(monkeypatch, "y", "n", "q")
    assert "stored 2 labels" in steelyard("label", "--db", db, "-m", "faithfulness").out
    found = list(open_labels(str(db)))
    assert [(one.metric, one.claim, one.value) for one in found] == [
        ("faithfulness", 0, "supported"),
        ("faithfulness", 1, "not_supported"),
    ]


def test_a_turn_whose_texts_are_not_stored_is_not_asked_about(steelyard: Steelyard, tmp_path: Path) -> None:
    write(tmp_path / "s.db", made(1, 0.5).replace(record=None))
    done = steelyard("label", "--db", tmp_path / "s.db")
    assert (done.status, done.err) == (0, "") and "stored 0 labels" in done.out


def test_a_metric_that_is_not_there_is_named(steelyard: Steelyard, tmp_path: Path) -> None:
    db, _ = written(tmp_path, 2)
    failed = steelyard("label", "--db", db, "-m", "nonsense")
    assert failed.status == 2 and "'nonsense'" in failed.err


def test_a_calibration_is_made_and_said(steelyard: Steelyard, tmp_path: Path) -> None:
    db, good = written(tmp_path)
    open_labels(str(db)).put(labels(good))
    out = tmp_path / "c.json"
    done = steelyard("calibrate", "--db", db, "--out", out)
    assert done.status == 0, done.err
    for part in (
        "120 labelled turns of 120",
        "kappa",
        "AUROC",
        "platt",
        "corrected by labels",
        "would halve",
    ):
        assert part in done.out
    found = Calibration.load(out)
    assert found.version in done.out
    score = found.apply(made(1, 0.6))["faithfulness"]
    assert score.calibrated_value == pytest.approx(0.36, abs=0.15)


@pytest.mark.parametrize(
    ("count", "kind", "cause"),
    [(5, None, "too_few_labels"), (60, True, "one_class"), (60, False, "one_class")],
)
def test_nothing_is_calibrated_silently(
    count: int, kind: bool | None, cause: str, steelyard: Steelyard, tmp_path: Path
) -> None:
    db, good = written(tmp_path)
    open_labels(str(db)).put(labels([one if kind is None else kind for one in good[:count]]))
    out = tmp_path / "c.json"
    done = steelyard("calibrate", "--db", db, "--out", out)
    assert done.status == 1 and cause in done.out and "Nothing was calibrated" in done.out
    assert not out.exists()


def test_contradicting_labels_are_named(steelyard: Steelyard, tmp_path: Path) -> None:
    db, good = written(tmp_path)
    open_labels(str(db)).put([*labels(good), *labels([not one for one in good[:2]], "bo")])
    done = steelyard("calibrate", "--db", db, "--out", tmp_path / "c.json")
    assert "2 turns on which as many people say good as bad" in done.out
    assert "r0" in done.out and "r1" in done.out
    assert "118 labelled turns" in done.out


def test_without_labels_the_command_says_how_to_give_some(steelyard: Steelyard, tmp_path: Path) -> None:
    db, _ = written(tmp_path, 3)
    done = steelyard("calibrate", "--db", db)
    assert done.status == 1 and "steelyard label" in done.out


def test_annotations_of_phoenix_and_langfuse_count(steelyard: Steelyard, tmp_path: Path) -> None:
    db, good = written(tmp_path)
    phoenix = tmp_path / "phoenix.json"
    rows = [
        {
            "span_id": f"{number:016x}",
            "name": "quality",
            "annotator_kind": "HUMAN",
            "result": {"label": "good" if one else "bad"},
        }
        for number, one in enumerate(good[:60])
    ]
    phoenix.write_text(json.dumps({"data": [*rows, {**rows[0], "span_id": "f" * 16}], "next_cursor": None}))
    langfuse = tmp_path / "langfuse.json"
    scores = [
        {
            "traceId": f"{number:032x}",
            "name": "q",
            "source": "ANNOTATION",
            "value": int(one),
            "dataType": "NUMERIC",
        }
        for number, one in list(enumerate(good))[60:]
    ]
    langfuse.write_text(json.dumps({"data": scores}))
    done = steelyard("calibrate", phoenix, langfuse, "--db", db, "--out", tmp_path / "c.json")
    assert "120 labelled turns of 120" in done.out and (tmp_path / "c.json").exists()
    assert done.status == 1 and "no evaluated turn has its trace or span" in done.err


@pytest.mark.parametrize(("name", "text"), [("labels.txt", ""), ("labels.json", "{")])
def test_a_file_that_holds_no_labels_is_named(
    name: str, text: str, steelyard: Steelyard, tmp_path: Path
) -> None:
    db, _ = written(tmp_path, 2)
    (tmp_path / name).write_text(text)
    failed = steelyard("calibrate", tmp_path / name, "--db", db)
    assert failed.status == 2 and name in failed.err


def test_labels_go_from_one_results_file_to_another(steelyard: Steelyard, tmp_path: Path) -> None:
    here, there = (str(results(tmp_path / name, [turn(1, 0.5)])) for name in ("a.db", "b.db"))
    open_labels(here).put([Label(record_id="r1", value="bad", who="Ann", labelled_at=5.0, note="=1+1")])
    file = tmp_path / "labels.csv"
    assert steelyard("labels", "export", str(file), "--db", here).status == 0
    with file.open("a") as opened:
        opened.write("nonsense\n")
    done = steelyard("labels", "import", str(file), "--db", there)
    assert (done.status, "stored 1 of 1" in done.out) == (1, True)
    assert list(open_labels(there)) == list(open_labels(here))
