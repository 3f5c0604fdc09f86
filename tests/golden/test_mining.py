"""Golden cases from production: what is drawn, that it still estimates production, and what stays out."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.running import Steelyard
from steelyard.errors import ConfigurationError
from steelyard.golden import GoldenSet
from steelyard.golden.mining import Population, Review, apply_labels, mine, production_mean
from steelyard.golden.mining._population import inclusion_probabilities, read_turns, systematic_sample
from steelyard.record import Context, Record
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.scores import Evaluation, Score
from steelyard.stats import weighted_mean
from writing import write

FAILURES = (
    "refund for a broken kettle",
    "parking permit renewal form",
    "vaccine dates for puppies",
    "tax rate on imported wine",
    "violin string tension chart",
    "glacier hiking guide hours",
    "printer driver for linux",
    "sourdough starter smells sour",
)
GOOD = ("opening hours", "delivery address", "invoice number", "gift card balance", "password reset")


def stored(
    path: Path, *, seed: int, turns: int = 400, bad: float = 0.16, texts: bool = True
) -> dict[str, float]:
    """A results file of turns of which some failed, in eight clusters; the truth by record id."""
    rng = np.random.default_rng(seed)
    truth: dict[str, float] = {}
    evaluations = []
    for number in range(turns):
        good = bool(rng.random() >= bad)
        subject = GOOD[int(rng.integers(len(GOOD)))] if good else FAILURES[int(rng.integers(len(FAILURES)))]
        value = float(rng.beta(9, 2) if good else rng.beta(2, 6))
        inclusion = 1.0 if value < 0.5 else 0.5
        if rng.random() >= inclusion:
            continue
        record = Record(
            id=f"r{number}",
            question=f"What about the {subject}, customer {number}?",
            contexts=(Context(text=f"About {subject}."),),
            answer=f"Mail {number}@example.org",
        )
        truth[record.id] = float(good)
        score = Score(
            metric="faithfulness",
            status="scored",
            value=value,
            threshold=0.5,
            passed=value >= 0.5,
            inclusion_probability=inclusion,
        )
        evaluations.append(
            Evaluation(
                record_id=record.id,
                scores=(score,),
                record=record if texts else None,
                evaluated_at=1_700_000_000.0 + number,
            )
        )
    write(path, *evaluations)
    return truth


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    path = tmp_path_factory.mktemp("mining") / "steelyard.db"
    return path, stored(path, seed=1)


@pytest.fixture
def steelyard(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Steelyard:
    return Steelyard(capfd, monkeypatch)


def test_probabilities_follow_sizes_and_add_up() -> None:
    probabilities = inclusion_probabilities([1.0] * 90 + [50.0] * 10, 20)
    assert probabilities.sum() == pytest.approx(20)
    assert probabilities.max() == 1.0 and probabilities[:90] == pytest.approx(10 / 90)
    rng = np.random.default_rng(0)
    counts = np.zeros(100)
    for _ in range(2_000):
        drawn = systematic_sample(probabilities, rng=rng)
        assert len(drawn) == len(set(drawn)) == 20
        counts[drawn] += 1
    assert counts / 2_000 == pytest.approx(probabilities, abs=0.05)
    assert inclusion_probabilities([1.0, 2.0], 5).tolist() == [1.0, 1.0]


@pytest.mark.timeout(240)
def test_a_mean_over_drawn_cases_is_unbiased_over_1000_draws(
    production: tuple[Path, dict[str, float]],
) -> None:
    path, truth = production
    population = Population.read(path)
    inclusion = {turn.record_id: turn.inclusion for turn in population.stored.turns}
    # What sums over all judged turns say of production, each turn standing for 1 / its inclusion.
    turns = sum(1 / p for p in inclusion.values())
    expected = sum(truth[name] / p for name, p in inclusion.items()) / turns
    estimates, sizes = [], []
    for seed in range(1_000):
        drawn = population.draw(50, seed=seed)
        assert len(drawn) == 50
        estimates.append(sum(truth[one.turn.record_id] / one.probability for one in drawn) / turns)
        sizes.append(sum(1 / one.probability for one in drawn) / turns)
    error = float(np.std(estimates)) / np.sqrt(1_000)
    assert abs(float(np.mean(estimates)) - expected) < 3 * error
    assert float(np.mean(sizes)) == pytest.approx(1.0, abs=0.01)


@pytest.mark.timeout(240)
def test_fifty_labels_tell_more_than_fifty_of_random_choice(tmp_path: Path) -> None:
    ours, random, covered = [], [], []
    for seed in range(4):
        path = tmp_path / f"{seed}.db"
        truth = stored(path, seed=100 + seed)
        golden = mine(path, n=50, seed=seed).golden
        labels = {case.id: truth[case.id] for case in golden}
        found = production_mean(golden, labels, db=path, metric="faithfulness")
        inclusion = {turn.record_id: turn.inclusion for turn in read_turns(path).turns}
        expected = weighted_mean([truth[name] for name in inclusion], list(inclusion.values()))
        assert expected is not None
        covered.append(found.low <= expected.value <= found.high)
        ours.append(found.high - found.low)
        picked = np.random.default_rng(seed).choice(list(truth), 50, replace=False)
        chosen = weighted_mean([truth[name] for name in picked], [inclusion[name] for name in picked])
        assert chosen is not None
        random.append(chosen.high - chosen.low)
    assert float(np.mean(ours)) <= 0.8 * float(np.mean(random))
    assert sum(covered) >= 3


@pytest.mark.timeout(240)
def test_failures_of_every_kind_are_represented(tmp_path: Path) -> None:
    shares = []
    for seed in range(3):
        path = tmp_path / f"{seed}.db"
        stored(path, seed=200 + seed)
        questions = " ".join(case.question for case in mine(path, n=50, seed=seed).golden)
        shares.append(sum(subject in questions for subject in FAILURES) / len(FAILURES))
    assert float(np.mean(shares)) >= 0.9


def test_cases_say_where_they_come_from_and_that_nobody_has_reviewed_them(
    production: tuple[Path, dict[str, float]],
) -> None:
    found = mine(production[0], n=40, seed=3)
    golden = found.golden
    assert len(golden) == 40 == sum(taken for _, taken in found.strata.values())
    assert {case.source for case in golden} == {"production"} and len(golden.unreviewed) == 40
    failing = next(case for case in golden if case.metadata["stratum"] == "failing")
    assert failing.metadata["failed"] == "faithfulness" and failing.contexts and failing.answer
    assert mine(production[0], n=40, seed=3).golden.version == golden.version
    assert mine(production[0], n=40, seed=4).golden.version != golden.version


def test_turns_with_the_same_question_are_one_case_that_stands_for_all(tmp_path: Path) -> None:
    path = tmp_path / "same.db"
    texts = ["Where is it?", "where is it", "WHERE IS IT??", "Who is she?"]
    scores = [
        Score(metric="m", status="scored", value=value, threshold=0.5, passed=value >= 0.5)
        for value in (0.9, 0.1, 0.9, 0.9)
    ]
    write(
        path,
        *[
            Evaluation(record_id=f"r{n}", scores=(scores[n],), record=Record(id=f"r{n}", question=text))
            for n, text in enumerate(texts)
        ],
    )
    found = mine(path, n=50)
    strata = {case.question.casefold(): case.metadata["stratum"] for case in found.golden}
    assert strata.pop("who is she?") != "failing" and set(strata.values()) == {"failing"}
    assert found.questions == 2 and found.left_out["same question as another"] == 2
    assert sum(case.weight for case in found.golden) == pytest.approx(4)


def test_a_turn_stands_for_as_many_as_were_not_judged_at_all(tmp_path: Path) -> None:
    """Whatever the rates of its metrics: the highest is that of being judged."""
    scores = tuple(
        Score(metric=f"m{chance}", status="scored", value=0.9, inclusion_probability=chance)
        for chance in (0.1, 0.5, 0.2)
    )
    path = tmp_path / "rates.db"
    write(path, Evaluation(record_id="r", scores=scores, record=Record(id="r", question="Where?")))
    (case,) = mine(path, n=5).golden
    assert case.inclusion_probability == 0.5


def test_a_mask_is_applied_and_a_mask_that_fails_leaves_the_case_out(
    production: tuple[Path, dict[str, float]],
) -> None:
    def mask(record: Record) -> Any:
        if record.id.endswith("7"):
            raise ValueError(record.answer)
        if record.id.endswith("8"):
            return None
        return replace(record, answer="(mail)", question="(question)", contexts=())

    found = mine(production[0], n=50, mask=mask)
    assert 0 < found.left_out["mask failed"] == 50 - len(found.golden)
    text = str([asdict(case) for case in found.golden])
    assert "example.org" not in text and "customer" not in text and "kettle" not in text


def test_without_texts_or_scores_there_is_nothing_to_draw(tmp_path: Path) -> None:
    stored(tmp_path / "bare.db", seed=1, turns=20, texts=False)
    with pytest.raises(ConfigurationError, match="stored without their texts"):
        mine(tmp_path / "bare.db")
    with pytest.raises(ConfigurationError, match="no results file"):
        mine(tmp_path / "none.db")


def test_review_keeps_every_decision_at_once(
    tmp_path: Path, production: tuple[Path, dict[str, float]]
) -> None:
    path = tmp_path / "cases.jsonl"
    mine(production[0], n=5, name="opening hours").golden.save(path)
    review = Review.open(path, who="Ada")
    first, second, third, *_ = review.pending
    review.accept(first, label="good", reference="A better answer.")
    review.drop(second)
    review.accept(third, label="bad", question="Asked better?")
    again = GoldenSet.load(path)
    assert len(again) == 4 and len(again.unreviewed) == 2 and again.name == "opening hours"
    kept = {case.id: case for case in again}
    assert kept[first.id].reviewed_by == "Ada" and kept[first.id].reference == "A better answer."
    assert kept[third.id].question == "Asked better?"
    estimate = production_mean(again)
    assert estimate.n == 2 and 0 < estimate.value < 1


def test_labels_of_the_live_view_review_their_cases(
    tmp_path: Path, production: tuple[Path, dict[str, float]], steelyard: Steelyard
) -> None:
    path, db = tmp_path / "cases.jsonl", tmp_path / "live.db"
    db.write_bytes(production[0].read_bytes())
    golden = mine(db, n=5).golden
    golden.save(path)
    labels = [Label(record_id=case.id, value="bad", who="Ada", labelled_at=1.0) for case in golden.cases[:2]]
    open_labels(str(db)).put(labels)
    done = steelyard("golden", "review", path, "--labels", db)
    assert done.status == 0 and "2 cases labelled in the view; 3 left" in done.out
    assert [case.metadata.get("label") for case in GoldenSet.load(path)].count("bad") == 2
    assert apply_labels(golden, [("other", "good", "x")])[1] == 0


def test_the_commands_mine_and_review(
    tmp_path: Path,
    production: tuple[Path, dict[str, float]],
    steelyard: Steelyard,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "cases.jsonl"
    done = steelyard("golden", "mine", out, "--db", production[0], "--n", "6")
    assert done.status == 0 and "6 cases of" in done.out and "steelyard golden review" in done.out
    refused = steelyard("golden", "mine", out, "--db", production[0])
    assert refused.status == 2 and "exists" in refused.err
    keys = iter(["?", "g", "e", "The reference.", "s", "d", "q"])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(keys))
    reviewed = steelyard("golden", "review", out, "--as", "Ada")
    assert reviewed.status == 0 and "6 cases to review, as Ada" in reviewed.out
    assert "1 of 6" in reviewed.out and "4 of 6" in reviewed.out  # what is shown before it is decided
    again = GoldenSet.load(out)
    assert len(again) == 5 and len(again.unreviewed) == 3
    assert {case.metadata.get("label") for case in again if case.reviewed_by == "Ada"} == {"good", None}


def test_production_mean_needs_labels_of_drawn_cases(production: tuple[Path, dict[str, float]]) -> None:
    golden = mine(production[0], n=5).golden
    with pytest.raises(ConfigurationError, match="at least two cases"):
        production_mean(golden)
    with pytest.raises(ConfigurationError, match="db and metric together"):
        production_mean(golden, {}, metric="faithfulness")
