"""No field of a public type is forgotten on the way: in JSON, in stores, in keys of caches and results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard import questions
from steelyard.engine import Results
from steelyard.judge.middleware import Cache
from steelyard.metrics import ALL, AspectCritique, CustomJudge, Metric, score_record
from steelyard.online.queue._turns import Seen, Selected, turn_from_json, turn_to_json
from steelyard.questions import Question, Request, View, YesNo
from steelyard.record import Context, Record, TraceRef, record_from_json, record_to_json, with_hashed_user
from steelyard.scores import Diagnosis, Evaluation, Score, Verdict, evaluation_from_json, evaluation_to_json
from steelyard.sinks import JSONLSink, Sink, SQLiteSink, read_evaluations, read_jsonl
from steelyard.testing import ScriptedJudge
from variants import full, variants

TRACE = full(TraceRef, trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331")
RECORD = with_hashed_user(full(Record, trace=TRACE, user="ann", origins={"answer": ("span",)}), "key")
SCORE = full(Score, status="scored", verdicts=(full(Verdict, span=(1, 5)),))
EVALUATION = full(
    Evaluation,
    record_id=RECORD.id,
    record=RECORD,
    scores=(SCORE,),
    screen=(SCORE,),
    user=RECORD.user,
    retry_after=None,
)
UNSTORED = ("retry_after",)
NOT_SCORED = (
    "scores[0].status",
    "screen[0].status",
    "user",
    "record.user",
    "record.origins['answer'] renamed",
)
"""Without a value, without the form of a hash, and with another name, they mean nothing."""
EVALUATIONS = dict(variants(EVALUATION, without=(*UNSTORED, *NOT_SCORED)))


def test_only_a_hashed_user_is_kept_with_results() -> None:
    for user in ("ann", "user-ann", "user-" + "g" * 32, RECORD.user):
        kept = Evaluation(record_id="r", scores=(), record=Record(user=user)).user
        assert kept == (user if user == RECORD.user else None)


def test_a_cause_that_a_newer_version_names_is_unknown_to_this_one() -> None:
    diagnosis = Diagnosis(cause="invented", rule="verdicts", because="so")
    written = evaluation_to_json(Evaluation(record_id="r", scores=(), diagnosis=diagnosis))
    again = evaluation_from_json(written.replace('"invented"', '"a cause of tomorrow"'))
    assert again.diagnosis == replace(diagnosis, cause="unknown")


def test_a_record_is_read_as_it_was_written() -> None:
    for path, record in variants(RECORD, without=("user", "origins['answer'] renamed")):
        assert record_from_json(record_to_json(record)) == record, path


def test_an_evaluation_is_read_as_it_was_written() -> None:
    for path, evaluation in EVALUATIONS.items():
        assert evaluation_from_json(evaluation_to_json(evaluation)) == evaluation, path


def test_a_turn_waits_in_a_spool_as_it_came() -> None:
    seen = Seen(evaluation=EVALUATION, rate=0.25)
    base = Selected(RECORD, 0.1, 0.2, screened=0.3, seen=seen)
    for path, changed in variants(base, without=("requeue", "seen", "record.user")):
        if "renamed" not in path:
            own = EVALUATION.replace(record=changed.record)  # what the screen said is of the same record
            turn = replace(changed, seen=replace(seen, evaluation=own))
            assert turn_from_json(turn_to_json(turn) or b"") == turn, path


@pytest.mark.parametrize(
    ("sink", "read"),
    [
        (SQLiteSink, lambda path: list(read_evaluations(path))),
        (JSONLSink, lambda path: list(read_jsonl(path))),
    ],
)
def test_a_file_of_results_gives_back_what_was_written(
    sink: Callable[[Path], Sink], read: Callable[[Path], Sequence[Evaluation]], tmp_path: Path
) -> None:
    numbered = [one.replace(record_id=f"{n}") for n, one in enumerate(EVALUATIONS.values())]
    written = [
        one.replace(
            record=one.record and one.record.replace(id=one.record_id),
            scores=tuple(replace(score, id=f"{one.record_id} {score.id}") for score in one.scores),
            evaluated_at=float(number),
        )
        for number, one in enumerate(numbered)
    ]

    async def write() -> None:
        made = sink(tmp_path / "results")
        await made.write(written)
        await made.aclose()

    asyncio.run(write())
    found = {one.record_id: one for one in read(tmp_path / "results")}
    for one, path in zip(written, EVALUATIONS, strict=True):
        assert found.pop(one.record_id) == one, path
    assert not found


QUESTIONS = [
    kind
    for name in questions.__all__
    if isinstance(kind := getattr(questions, name), type)
    and issubclass(kind, Question)
    and hasattr(kind, "kind")
    and kind is not questions.ScoreOf
]
VIEW = full(View, contexts=(Context(text="one"),), reference_contexts=(Context(text="other"),))
REQUEST = Request(view=VIEW, questions={"q": questions.Supported(claim="c")}, attempt=2, tenant="acme")


def asked(*requests: Request) -> int:
    """How many of some requests a judge behind a cache is asked."""
    judge = ScriptedJudge(lambda question, request: YesNo(value=True))
    cache = Cache(judge)

    async def run() -> None:
        for request in requests:
            await cache.answer(request)

    asyncio.run(run())
    return len(judge.requests)


@pytest.mark.parametrize("kind", QUESTIONS, ids=lambda kind: kind.__name__)
def test_another_question_is_not_answered_from_a_cache(kind: type[Question]) -> None:
    base = full(kind)
    for path, other in variants(base):
        requests = [Request(view=View(question="?"), questions={"q": one}) for one in (base, other)]
        assert asked(*requests) == 2, path


def test_what_is_in_view_and_whose_turn_it_is_decide_the_answer_of_a_cache() -> None:
    assert asked(REQUEST, REQUEST) == 1
    for path, view in variants(VIEW):
        alike = "ontexts[0]" in path and not path.endswith(".text")  # of a passage nothing else is shown
        assert asked(REQUEST, replace(REQUEST, view=view)) == (1 if alike else 2), path
    for path, other in variants(REQUEST, without=("view", "questions")):
        assert asked(REQUEST, other) == 2, path


METRICS = [
    *[kind() for kind in ALL],
    AspectCritique(name="polite", criterion="It is polite."),
    CustomJudge(name="own", criterion="It is short.", steps=("Look.",), shown=("question", "answer")),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_another_option_of_a_metric_gives_a_result_of_its_own(metric: Metric) -> None:
    base = score_id(metric)
    for path, other in variants(
        metric, without=("name", "judge", "threshold", "cross_encoder", "parts", "shown[0]")
    ):
        assert score_id(other) != base, path


def score_id(metric: Metric) -> str:
    judge = ScriptedJudge(lambda question, request: None)
    return asyncio.run(score_record(Record(id="r"), [metric], judge=judge)).scores[0].id


def test_a_frame_tells_of_each_turn_whose_it_was_and_when_it_happened() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    late = replace(EVALUATION, evaluated_at=9e8)
    row = Results([late]).to_pandas().iloc[0].to_dict()
    named = {name: getattr(EVALUATION, name) for name in ("record_id", "session", "tenant", "evidence")}
    texts = {"question": RECORD.question, "answer": RECORD.answer}
    assert row == {**named, **texts, "happened_at": EVALUATION.happened_at, SCORE.metric: SCORE.value}
