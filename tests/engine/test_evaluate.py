"""Scoring records: one and many, inside a loop and outside, with what goes wrong on the Scores."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from scripts import FixedEmbedder, Script
from steelyard import aevaluate, evaluate
from steelyard.engine import Results, evaluate_each, evaluate_one
from steelyard.errors import ConfigurationError, JudgeRejected, RateLimited
from steelyard.judge import LocalJudge
from steelyard.metrics import AnswerRelevancy, AnswerSimilarity, ContextRecall, Faithfulness, Metric
from steelyard.questions import Answer, MetricRun, Part, Question, Reply, Request, Texts
from steelyard.record import Context, Record
from steelyard.scores import Diagnosis, Evaluation
from steelyard.testing import ScriptedJudge

RECORD = Record(id="one", question="q?", answer="A.", contexts=(Context(text="C."),), reference="R.")
SCRIPT = Script(answer_claims=("a", "b"), reference_claims=("r",), true=frozenset({"a", "r"}))
EMBEDDER = FixedEmbedder(lambda _: (1.0,))


def run(*records: Record, metrics: list[Metric], judge: ScriptedJudge | None = None) -> Results:
    return evaluate(
        records, metrics=metrics, judge=judge or SCRIPT.judge(), embedder=EMBEDDER, progress=False
    )


def test_results_come_in_order_with_values_and_provenance() -> None:
    results = run(RECORD, RECORD.replace(id="two"), metrics=[Faithfulness(), ContextRecall()])
    assert [evaluation.record_id for evaluation in results] == ["one", "two"]
    score = results[0]["faithfulness"]
    assert (score.value, score.passed, score.label, score.threshold) == (0.5, False, "fail", 1.0)
    assert score.provenance is not None
    assert (score.provenance.judge, score.provenance.fuse) == ("scripted", "view")
    assert results[0]["context_recall"].value == 1.0


def test_result_ids_repeat_for_the_same_judgement_and_differ_for_another() -> None:
    first, again = (run(RECORD, metrics=[Faithfulness()])[0]["faithfulness"].id for _ in range(2))
    sentences = run(RECORD, metrics=[Faithfulness(claims="sentences")])[0]["faithfulness"].id
    other = run(RECORD.replace(id="two"), metrics=[Faithfulness()])[0]["faithfulness"].id
    assert first == again
    assert len({first, sentences, other}) == 3


def test_a_metric_may_bring_its_own_judge() -> None:
    own = Script(answer_claims=("x",), true=frozenset({"x"})).judge()
    own.name = "own"
    shared = SCRIPT.judge()
    results = run(RECORD, metrics=[Faithfulness(), Faithfulness(name="mine", judge=own)], judge=shared)
    assert results[0]["faithfulness"].value == 0.5
    assert results[0]["mine"].value == 1.0
    assert results[0]["mine"].provenance is not None
    assert results[0]["mine"].provenance.judge == "own"


def test_two_metrics_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two metrics are named 'faithfulness'"):
        run(RECORD, metrics=[Faithfulness(), Faithfulness()])


@pytest.mark.parametrize("status", ["error", "cancelled", "interrupted"])
def test_a_turn_that_did_not_end_well_is_not_judged(status: str) -> None:
    judge = SCRIPT.judge()
    results = run(
        RECORD.replace(status=status, error="ValueError: no"), metrics=[Faithfulness()], judge=judge
    )
    score = results[0]["faithfulness"]
    assert (score.status, score.cause) == ("not_applicable", f"status_{status}")
    assert not judge.requests


def test_what_the_judge_does_wrong_is_on_the_score_by_name() -> None:
    def refuse(question: Question, _: Request) -> Answer:
        raise JudgeRejected("the key is wrong", cause="unauthorized")

    results = run(RECORD, metrics=[Faithfulness(), ContextRecall()], judge=ScriptedJudge(refuse))
    for score in results[0].scores:
        assert (score.status, score.cause, score.value) == ("failed", "unauthorized", None)
        assert "the key is wrong" in score.explanation
    assert results.summary[0].failed == {"unauthorized": 1}


@dataclass(frozen=True, kw_only=True)
class Raising(Metric):
    key = "raising"

    @property
    def needs(self) -> tuple[Part, ...]:
        return ()

    def questions(self, record: Record) -> MetricRun:
        yield []
        raise ZeroDivisionError("mine")


def test_a_metric_that_raises_fails_alone() -> None:
    results = run(RECORD, metrics=[Raising(), Faithfulness()])
    assert results[0]["raising"].cause == "metric_error"
    assert "ZeroDivisionError in test_evaluate.py, line" in results[0]["raising"].explanation
    assert results[0]["faithfulness"].value == 0.5


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> Results:
        return run(RECORD, metrics=[Faithfulness()])

    assert asyncio.run(notebook())[0]["faithfulness"].value == 0.5


@dataclass
class SlowJudge(ScriptedJudge):
    """Counts how many requests are open at once, and is slow on purpose for the first record."""

    open: int = 0
    most: int = 0
    started: list[str] = field(default_factory=list)

    async def answer(self, request: Request) -> Reply:
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0.05 if not self.started else 0.001)
        self.started.append(request.view.question or "")
        self.open -= 1
        return await super().answer(request)


def test_concurrency_is_bounded_and_order_kept() -> None:
    judge = SlowJudge(SCRIPT.judge().script)
    records = (RECORD.replace(id=str(number)) for number in range(40))
    results = evaluate(
        records, metrics=[Faithfulness()], judge=judge, embedder=EMBEDDER, concurrency=4, progress=False
    )
    assert [evaluation.record_id for evaluation in results] == [str(number) for number in range(40)]
    assert 2 <= judge.most <= 4


def test_records_are_read_as_they_are_needed() -> None:
    read: list[int] = []

    def endless() -> object:
        for number in range(10_000):
            read.append(number)
            yield RECORD.replace(id=str(number))

    async def first() -> Evaluation:
        stream = evaluate_each(
            endless(),  # type: ignore[arg-type]
            metrics=[Faithfulness()],
            judge=SCRIPT.judge(),
            embedder=EMBEDDER,
            concurrency=4,
        )
        async for evaluation in stream:
            await stream.aclose()
            return evaluation
        raise AssertionError("nothing came")

    assert asyncio.run(first()).record_id == "0"
    assert len(read) <= 20


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (RECORD, r"a single Record; pass a list of them: \[record\]"),
        ([RECORD, {"question": "q?"}], "holds a dict, not a Record; make one with Record"),
        ("abc", "holds a str"),
    ],
)
def test_what_is_no_record_is_said_with_the_way_out(records: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evaluate(records, metrics=[Faithfulness()], judge=SCRIPT.judge(), progress=False)


def test_what_is_no_metric_is_said_with_the_way_out() -> None:
    with pytest.raises(ConfigurationError, match="is not a Metric; write Faithfulness"):
        run(RECORD, metrics=[Faithfulness])  # type: ignore[list-item]


def test_metrics_may_be_names() -> None:
    results = evaluate([RECORD], metrics=["faithfulness"], judge="local", progress=False)
    assert [score.metric for score in results[0].scores] == ["faithfulness"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"concurrency": "16"}, "concurrency must be a whole number"),
        ({"deadline": "5"}, "deadline must be a number of seconds above 0, not '5'"),
        ({"deadline": 0}, "deadline must be a number of seconds above 0, not 0"),
        ({"embedder": "openai:small"}, "embedder='openai:small' is not an Embedder"),
        ({"metrics": Faithfulness()}, r"metrics must be a list"),
    ],
)
def test_options_without_meaning_are_refused(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evaluate([RECORD], **{"judge": SCRIPT.judge(), "progress": False, **option})


def test_without_a_terminal_nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    results = evaluate([RECORD], metrics=[], judge=SCRIPT.judge(), embedder=EMBEDDER, progress=True)
    assert (str(results), capfd.readouterr()) == ("no metrics", ("", ""))


def test_vectors_of_different_lengths_fail_by_name() -> None:
    crooked = FixedEmbedder(lambda text: (1.0,) * len(text))
    record = RECORD.replace(reference="Longer.")
    results = evaluate(
        [record], metrics=[AnswerSimilarity()], judge=SCRIPT.judge(), embedder=crooked, progress=False
    )
    assert results[0]["answer_similarity"].cause == "malformed_reply"


def test_a_progress_function_that_raises_leaves_nothing_running() -> None:
    def tired(evaluation: Evaluation) -> None:
        raise RuntimeError("enough")

    async def caught() -> set[str]:
        records = (RECORD.replace(id=str(number)) for number in range(40))
        judge = SlowJudge(SCRIPT.judge().script)
        with pytest.raises(RuntimeError, match="enough"):
            await aevaluate(records, metrics=[Faithfulness()], judge=judge, embedder=EMBEDDER, progress=tired)
        return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}

    assert asyncio.run(caught()) == set()


def test_cancelling_leaves_nothing_running() -> None:
    async def cancelled() -> int:
        records = (RECORD.replace(id=str(number)) for number in range(40))
        judge = SlowJudge(SCRIPT.judge().script)
        work = asyncio.create_task(
            aevaluate(records, metrics=[Faithfulness()], judge=judge, embedder=EMBEDDER, progress=False)
        )
        await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        return len(asyncio.all_tasks())

    assert asyncio.run(cancelled()) == 1


def test_an_interrupted_notebook_cell_stops_its_evaluation() -> None:
    asked = threading.Event()

    class Hanging(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            asked.set()
            await asyncio.sleep(30)
            raise AssertionError

    def interrupt() -> None:
        asked.wait()
        os.kill(os.getpid(), signal.SIGINT)

    async def cell() -> None:
        # A notebook's kernel raises it in the cell, where asyncio.run would cancel instead.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                run(RECORD, metrics=[Faithfulness()], judge=Hanging(SCRIPT.judge().script))
        finally:
            signal.signal(signal.SIGINT, before)

    threading.Thread(target=interrupt).start()
    asyncio.run(cell())
    for thread in threading.enumerate():
        if thread.name.startswith("steelyard-evaluate"):
            thread.join(60)
            assert not thread.is_alive()


def test_one_metric_alone_gives_the_score_that_evaluate_gives() -> None:
    record = RECORD.replace(contexts=["C."])
    judge = SCRIPT.judge()
    for metric in (Faithfulness(), AnswerSimilarity()):
        alone = asyncio.run(metric.score(record, judge=judge))
        (among,) = evaluate([record], metrics=[metric], judge=judge, progress=False)[0].scores
        assert alone == among


def test_one_metric_takes_a_judge_by_name() -> None:
    score = asyncio.run(Faithfulness(claims="sentences").score(RECORD, judge="local"))
    assert score.provenance is not None
    assert score.provenance.judge == "local-lexical"


def test_the_longest_wait_that_a_server_asked_for_comes_with_the_evaluation() -> None:
    def slow_down(seconds: float | None) -> ScriptedJudge:
        def limited(question: Question, request: Request) -> Answer:
            raise RateLimited("slow down", retry_after=seconds)

        return ScriptedJudge(limited)

    async def waits(*judges: ScriptedJudge) -> float | None:
        metrics = [Faithfulness(name=str(number), judge=judge) for number, judge in enumerate(judges)]
        evaluation = await evaluate_one(RECORD, metrics, judge=slow_down(1.0))
        assert {score.cause for score in evaluation.scores} == {"rate_limited"}
        return evaluation.retry_after

    assert asyncio.run(waits(slow_down(30.0), slow_down(600.0), slow_down(None))) == 600.0
    assert asyncio.run(waits(slow_down(None))) is None


def test_a_deadline_ends_in_scores() -> None:
    @dataclass
    class Hanging(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            await asyncio.sleep(60)
            raise AssertionError

    results = evaluate(
        [RECORD],
        metrics=[Faithfulness()],
        judge=Hanging(SCRIPT.judge().script),
        embedder=EMBEDDER,
        deadline=0.05,
        progress=False,
    )
    assert results[0]["faithfulness"].cause == "deadline"


def test_progress_may_be_a_function() -> None:
    seen: list[str] = []
    asyncio.run(
        aevaluate(
            [RECORD],
            metrics=[Faithfulness()],
            judge=SCRIPT.judge(),
            embedder=EMBEDDER,
            progress=lambda evaluation: seen.append(evaluation.record_id),
        )
    )
    assert seen == ["one"]


def test_the_summary_weighs_by_inclusion_and_counts_what_is_missing() -> None:
    def claims(question: Question, request: Request) -> Answer | None:
        if question.extracts:
            return Texts(items=(request.view.answer or "",))
        return SCRIPT.judge().script(question, request)

    async def both() -> list[Evaluation]:
        judge = ScriptedJudge(claims)
        good = evaluate_one(RECORD.replace(answer="a"), [Faithfulness()], judge=judge, inclusion=0.1)
        bad = evaluate_one(RECORD.replace(id="two", answer="z"), [Faithfulness()], judge=judge, inclusion=1.0)
        none = evaluate_one(RECORD.replace(answer=""), [Faithfulness()], judge=judge)
        return [await good, await bad, await none]

    (summary,) = Results(asyncio.run(both())).summary
    assert summary.mean == pytest.approx(10 / 11)
    assert (summary.scored, summary.passed, summary.below) == (2, 1, 1)
    assert summary.not_applicable == {"missing_answer": 1}
    assert summary.worst[0][0] == "two"


def test_to_pandas_has_one_row_a_record_and_no_zero_for_nothing() -> None:
    frame = run(RECORD, RECORD.replace(id="two", answer=""), metrics=[Faithfulness()]).to_pandas()
    assert list(frame["record_id"]) == ["one", "two"]
    assert frame["faithfulness"][0] == 0.5
    assert frame["faithfulness"].isna()[1]


GUESSED = Record(
    question="How many hills has Rome?",
    contexts=(Context(text="Rome has seven hills."),),
    contexts_source="guessed",
    answer="Rome has seven hills.",
)


def test_metrics_that_need_passages_do_not_apply_to_guessed_ones() -> None:
    (made,) = evaluate([GUESSED], metrics=[Faithfulness(), AnswerRelevancy()], progress=False)
    grounded, relevancy = made.scores
    assert (grounded.status, grounded.cause) == ("not_applicable", "contexts_guessed")
    assert relevancy.cause != "contexts_guessed"
    assert made.record is not None
    assert made.record.contexts == GUESSED.contexts


def test_guesses_are_scored_if_asked_for() -> None:
    (made,) = evaluate([GUESSED], metrics=[Faithfulness()], score_guesses=True, progress=False)
    assert made.scores[0].status == "scored"


def test_evidence_is_known_told_or_guessed() -> None:
    kinds = [
        GUESSED.replace(contexts_source=source).evidence
        for source in ("in_prompt", "retrieved", "tool", "told", "guessed")
    ]
    assert kinds == ["known", "known", "known", "told", "guessed"]
    assert GUESSED.replace(contexts=()).evidence is None


BAD = Record(
    question="When does the ferry leave?",
    contexts=(Context(text="The ferry leaves at nine."),),
    answer="The ferry leaves at nine.",
)


def evaluated(record: Record = BAD) -> tuple[float | None, Diagnosis | None]:
    """The score and the diagnosis of a turn."""
    found = asyncio.run(evaluate_one(record, [Faithfulness(claims="sentences")], judge=LocalJudge()))
    return found["faithfulness"].value, found.diagnosis


def test_scores_stand_if_a_diagnosis_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise TypeError("of a verdict that a judge of one's own made")

    monkeypatch.setattr("steelyard.engine._evaluate.diagnose", fails)
    value, diagnosis = evaluated()
    assert value is not None
    assert diagnosis is None
    assert "of a verdict" not in caplog.text, "errors may hold content"


@pytest.mark.parametrize("is_large", [False, True])
def test_large_passages_are_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch, is_large: bool) -> None:
    where: list[bool] = []

    def noted(*_: object) -> Diagnosis:
        where.append(threading.current_thread() is threading.main_thread())
        return Diagnosis()

    monkeypatch.setattr("steelyard.engine._evaluate.diagnose", noted)
    more = (Context(text="The pier is long. " * 1_000),) if is_large else ()
    evaluated(BAD.replace(retrieved=(*BAD.contexts, *more)))
    assert where == [not is_large]


def test_of_guessed_passages_nothing_is_concluded() -> None:
    guessed = BAD.replace(contexts_source="guessed", answer="I do not know.")
    assert evaluated(guessed) == (None, None)
