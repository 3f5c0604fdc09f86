from __future__ import annotations

from calibration.pairs import evaluation
from steelyard.calibration import Material, collect
from steelyard.results.labels import Label, LabelValue
from steelyard.scores import Evaluation


def label(
    value: LabelValue,
    who: str = "ada",
    *,
    record: str = "r1",
    claim: int | None = None,
    metric: str = "faithfulness",
) -> Label:
    about = metric if claim is not None else None
    return Label(record_id=record, value=value, who=who, labelled_at=1.0, metric=about, claim=claim)


def one(*labels: Label, evaluations: tuple[Evaluation, ...] = (evaluation(),)) -> Material:
    (found,) = collect(evaluations, labels)
    return found


def test_a_label_of_the_whole_turn_counts_for_its_metrics() -> None:
    found = one(label("bad"))
    assert [pair.good for pair in found.labelled] == [False]
    assert found.of_turns == 1


def test_one_claim_that_is_not_supported_makes_a_turn_bad_whatever_is_said_of_the_whole() -> None:
    found = one(label("not_supported", claim=1), label("good"))
    assert [pair.good for pair in found.labelled] == [False]
    assert found.of_turns == 0


def test_supported_claims_make_a_turn_good_only_when_all_were_labelled() -> None:
    assert not one(label("supported", claim=0)).labelled
    both = one(label("supported", claim=0), label("supported", claim=1))
    assert [pair.good for pair in both.labelled] == [True]


def test_labels_of_another_metrics_claims_and_of_claims_that_are_not_there_do_not_count() -> None:
    assert not one(label("not_supported", claim=0, metric="hallucination")).labelled
    assert not one(label("not_supported", claim=7)).labelled


def test_labels_that_contradict_each_other_leave_the_turn_out_by_name() -> None:
    found = one(label("good", "ada"), label("bad", "bo"))
    assert not found.labelled
    assert found.answers.contradictory == ["r1"]
    assert found.answers.pairs == [(True, False, found.judged[0].record_id)]


def test_of_three_people_two_win() -> None:
    found = one(label("good", "ada"), label("bad", "bo"), label("good", "cy"))
    assert [pair.good for pair in found.labelled] == [True]
    assert len(found.answers.pairs) == 3


def test_judges_and_prompt_versions_are_kept_apart() -> None:
    turns = (evaluation("r1"), evaluation("r2", judge="chat:m"), evaluation("r3", prompt_version="2"))
    found = collect(turns, [label("good"), label("bad", record="r2")])
    assert [(one.key.judge, one.key.prompt_version, len(one.labelled)) for one in found] == [
        ("chat:m", "1", 1),
        ("local-lexical", "1", 1),
        ("local-lexical", "2", 0),
    ]


def test_the_worst_verdict_is_the_lowest_probability() -> None:
    (pair,) = one(label("good")).labelled
    assert pair.judged.worst == 0.2
