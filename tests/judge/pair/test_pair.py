"""PairJudge with real ONNX models, run by onnxruntime."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
pytest.importorskip("onnx", reason="the package onnx is not installed")

from judge.pair.models import write_model, write_pair, write_tokenizer
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.judge import LocalJudge, PairJudge, PairLabels, judge_from
from steelyard.metrics import Faithfulness, Hallucination
from steelyard.questions import (
    Answer,
    Contradicted,
    Judge,
    Question,
    Relevant,
    Request,
    Same,
    Supported,
    View,
    YesNo,
)
from steelyard.record import Context, Record


def ask(
    judge: Judge, *questions: Question, contexts: tuple[str, ...], question: str = "Where?"
) -> list[Answer]:
    view = View(question=question, contexts=tuple(Context(text=text) for text in contexts))
    keyed = {f"q{place}": one for place, one in enumerate(questions)}
    reply = asyncio.run(judge.answer(Request(view=view, questions=keyed)))
    return [reply.answers[key] for key in keyed]


def probability(answer: Answer) -> float:
    assert isinstance(answer, YesNo) and answer.probability is not None
    assert answer.value == (answer.probability >= 0.5)
    return answer.probability


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("pair") / "model")


@pytest.fixture(scope="module")
def judge(folder: Path) -> PairJudge:
    return PairJudge(folder)


TOWER = "The tower stands in Paris."


def test_what_the_labels_mean_stands_in_the_configuration(judge: PairJudge) -> None:
    assert judge.labels == PairLabels(entailed=0, contradicted=2)


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        (("contradicted", "entailed", "neutral"), PairLabels(entailed=1, contradicted=0)),
        (("neutral", "contradicted", "entailed"), PairLabels(entailed=2, contradicted=1)),
        (("entailed", "neutral"), PairLabels(entailed=0)),
        (("entailed",), PairLabels(entailed=1)),
    ],
)
def test_labels_may_stand_in_any_order_and_there_may_be_two_or_one(
    columns: tuple[str, ...], labels: PairLabels, tmp_path: Path
) -> None:
    found = PairJudge(write_pair(tmp_path / "m", columns))
    assert found.labels == labels
    yes, no = (
        probability(one)
        for one in ask(
            found, Supported(claim=TOWER), Supported(claim="A filler word lies near."), contexts=(TOWER,)
        )
    )
    assert yes > 0.8 > 0.2 > no


def test_a_model_may_want_the_claim_first(tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx", claim_first=True)
    write_tokenizer(tmp_path / "tokenizer.json")
    found = PairJudge(tmp_path / "m.onnx", labels=PairLabels(entailed=0, claim_first=True))
    (answer,) = ask(found, Supported(claim="In Paris."), contexts=(TOWER + " " + "filler word " * 20,))
    assert probability(answer) > 0.6


def test_the_probability_is_a_mean_of_model_and_words(folder: Path) -> None:
    contexts, claim = (TOWER,), Supported(claim="The tower stands in Paris near the word.")
    (words,) = ask(LocalJudge(), claim, contexts=contexts)
    (model,) = ask(PairJudge(folder, weight=1.0), claim, contexts=contexts)
    (both,) = ask(PairJudge(folder, weight=0.25), claim, contexts=contexts)
    assert isinstance(words, YesNo) and words.probability is not None
    mixed = 0.25 * probability(model) + 0.75 * words.probability
    assert probability(both) == pytest.approx(mixed, abs=1e-9)
    assert isinstance(both, YesNo) and both.evidence == words.evidence and "the model says" in both.reason


def test_a_number_that_is_nowhere_stays_a_no_whatever_the_model_says(folder: Path) -> None:
    context = "The tower in Paris is 330 metres high and stands near the wide tower in Berlin."
    claim = "The tower in Paris is {} metres high and stands near the wide tower in Berlin."
    sure = PairJudge(folder, weight=1.0)
    right, wrong = ask(
        sure, *(Supported(claim=claim.format(number)) for number in (330, 100)), contexts=(context,)
    )
    assert probability(right) > 0.9
    assert isinstance(wrong, YesNo) and "the model says 0.9" in wrong.reason
    assert probability(wrong) == pytest.approx(0.49)


def test_contradiction_has_a_label_of_its_own(judge: PairJudge, tmp_path: Path) -> None:
    claim = Contradicted(claim="The tower stands wide near Paris.")
    (answer,) = ask(judge, claim, contexts=(TOWER,))
    (words,) = ask(LocalJudge(), claim, contexts=(TOWER,))
    assert probability(answer) > 0.3
    two = PairJudge(write_pair(tmp_path / "two", ("entailed", "neutral")))
    assert ask(two, claim, contexts=(TOWER,)) == [words], "a model without that label leaves it to the words"


def test_a_claim_is_compared_with_the_claims_that_are_listed(folder: Path) -> None:
    sure = PairJudge(folder, weight=1.0)
    same, other = (
        Same(claim=TOWER, among="reference", of="answer", listed=listed)
        for listed in (("The tower stands in Paris.",), ("A filler word lies near.",))
    )
    yes, no = (probability(one) for one in ask(sure, same, other, contexts=()))
    assert yes > 0.9 > 0.1 > no


def test_other_questions_are_answered_by_the_local_judge(judge: PairJudge) -> None:
    question = Relevant(text="The tower stands in Paris.")
    asked = {"contexts": (TOWER,), "question": "Where does the tower stand?"}
    assert ask(judge, question, **asked) == ask(LocalJudge(), question, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [0.0, 0.37, 1.0])
def test_a_long_context_is_read_in_windows_wherever_the_answer_stands(place: float, folder: Path) -> None:
    filler = ["filler", "word", "sits."] * 700
    at = int(len(filler) * place)
    text = " ".join([*filler[:at], TOWER, *filler[at:]])
    (answer,) = ask(PairJudge(folder, weight=1.0, max_tokens=64), Supported(claim=TOWER), contexts=(text,))
    assert probability(answer) > 0.95


def test_the_tokenizers_own_limit_counts(folder: Path, tmp_path: Path) -> None:
    tokenizer = write_tokenizer(tmp_path / "short.json", limit=40)
    found = PairJudge(folder, tokenizer=tokenizer, weight=1.0)
    text = "filler word sits. " * 60 + TOWER
    (answer,) = ask(found, Supported(claim=TOWER), contexts=(text,))
    assert probability(answer) > 0.95
    long_claim = Supported(claim=TOWER[:-1] + " near the tower" * 40 + ".")
    assert isinstance(ask(found, long_claim, contexts=(text,))[0], YesNo), "a claim may be longer than that"


def test_batches_do_not_change_an_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [Supported(claim=f"The tower {'stands ' * count}in Paris.") for count in range(1, 12)]
    contexts = (TOWER, "Berlin lies near.", "filler word " * 30)
    many = ask(PairJudge(folder), *claims, contexts=contexts)
    monkeypatch.setattr("steelyard.judge.pair._BATCH", 1)
    one = ask(PairJudge(folder), *claims, contexts=contexts)
    for left, right in zip(one, many, strict=True):
        assert probability(left) == pytest.approx(probability(right), abs=1e-6)


def test_it_serves_metrics_and_says_how_the_number_was_made(judge: PairJudge) -> None:
    record = Record(
        question="Where is it?",
        contexts=(Context(text=TOWER),),
        answer="The tower stands in Paris. It lies in Berlin.",
    )
    for metric in (Faithfulness(), Hallucination()):
        score = asyncio.run(metric.score(record, judge=judge))
        assert score.value is not None and score.provenance is not None
        assert score.provenance.judge == judge.name
        assert judge.name.startswith("pair:onnx/model.onnx:")


def test_a_name_makes_it(folder: Path) -> None:
    assert isinstance(judge_from(f"pair:{folder}"), PairJudge)
    with pytest.raises(ConfigurationError, match="needs a model"):
        judge_from("pair")
    with pytest.raises(ConfigurationError, match="leave out its server"):
        judge_from(f"pair:{folder}", base_url="http://127.0.0.1:1")


@pytest.mark.parametrize("content", [b"", b"no model at all", b"\x08\x08\x12\x00" * 100])
def test_a_file_that_is_not_a_model_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    write_tokenizer(tmp_path / "tokenizer.json")
    with pytest.raises(ConfigurationError, match=r"m\.onnx' is not an ONNX model"):
        PairJudge(tmp_path / "m.onnx")


def test_files_that_are_not_there_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no model .*nowhere\.onnx"):
        PairJudge(tmp_path / "nowhere.onnx")
    with pytest.raises(ConfigurationError, match="holds no model"):
        PairJudge(tmp_path)
    write_model(tmp_path / "alone.onnx")
    with pytest.raises(ConfigurationError, match=r"no tokenizer\.json beside"):
        PairJudge(tmp_path / "alone.onnx")
    with pytest.raises(ConfigurationError, match=r"t\.json' is not a tokenizer"):
        PairJudge(folder, tokenizer=tmp_path / "t.json")


def test_a_tokenizer_of_a_larger_vocabulary_does_not_fit(tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx", vocabulary=20)
    write_tokenizer(tmp_path / "tokenizer.json")
    with pytest.raises(ConfigurationError, match=r"tokenizer\.json' does not fit the model .*m\.onnx"):
        PairJudge(tmp_path / "m.onnx")


def test_labels_without_a_meaning_are_asked_for(tmp_path: Path) -> None:
    folder = write_pair(tmp_path / "m", ("neutral", "neutral"))
    with pytest.raises(ConfigurationError, match=r"names no label entailment: \['neutral', 'neutral'\]"):
        PairJudge(folder)
    for content in ("{}", "[]", "no JSON", '{"id2label": {"a": 1}}'):
        (folder / "config.json").write_text(content)
        with pytest.raises(ConfigurationError, match=r"names no label entailment: \[\]"):
            PairJudge(folder)


def test_a_model_of_another_kind_is_named(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json")
    write_model(tmp_path / "m.onnx", rank=3)
    with pytest.raises(ConfigurationError, match=r"an array of shape \(1, 1, 3\)|an array of shape"):
        PairJudge(tmp_path / "m.onnx")
    names = ("input_ids", "attention_mask", "token_type_ids", "pixel_values")
    write_model(tmp_path / "p.onnx", inputs=names)
    with pytest.raises(ConfigurationError, match="wants pixel_values"):
        PairJudge(tmp_path / "p.onnx")


def test_labels_that_are_not_there_are_named(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="the model has 3 labels"):
        PairJudge(folder, labels=PairLabels(entailed=3))
    with pytest.raises(ConfigurationError, match="the same label"):
        PairJudge(folder, labels=PairLabels(entailed=1, contradicted=1))


@pytest.mark.parametrize("options", [{"weight": 0}, {"weight": 1.5}, {"max_tokens": 0}])
def test_options_that_make_no_sense_are_named(options: dict[str, float], folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        PairJudge(folder, **options)  # type: ignore[arg-type]


def test_without_onnxruntime_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependency, match=r"steelyard\[onnx\]"):
        PairJudge(folder)
