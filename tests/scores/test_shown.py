"""Records and evaluations for people: as text, and in a notebook."""

from __future__ import annotations

from steelyard import Context, Record, evaluate
from steelyard.scores import Evaluation, Score

HOSTILE = Record(
    id="t1",
    question="<script>alert(1)</script>\x1b[2J",
    contexts=(Context(text="</dd><img src=x onerror=alert(1)>"),),
    answer="A. " * 2_000,
    notes=("doubtful",),
)


def test_a_turn_is_printed_with_what_it_says() -> None:
    record = Record(
        id="t1",
        question="When?",
        contexts=(Context(text="At nine."), Context(text="At ten.")),
        answer="At nine.",
    )
    assert (
        str(record)
        == "turn t1: ok\nquestion: When?\nanswer: At nine.\ncontext 0: At nine.\ncontext 1: At ten."
    )
    [evaluation] = evaluate([record])
    assert str(evaluation).startswith(str(record) + "\nfaithfulness ")
    assert len(str(evaluation).splitlines()) == 5 + len(evaluation.scores)


def test_a_repr_leaves_out_what_a_turn_says() -> None:
    [evaluation] = evaluate(
        [Record(question="Whenever?", contexts=(Context(text="At nine."),), answer="At nine.")]
    )
    assert "nine" not in repr(evaluation) and "Whenever" not in repr(evaluation)
    assert "'faithfulness', status='scored', value=1.0" in repr(evaluation)


def test_hostile_text_is_text_in_a_terminal_and_in_a_notebook() -> None:
    failed = Score.failed("faithfulness", cause="timeout", explanation="<b>late</b>\x07")
    evaluation = Evaluation(record_id="t1", scores=(failed,), record=HOSTILE)
    assert "\x1b" not in str(evaluation) and "\x07" not in str(evaluation)
    assert max(map(len, str(evaluation).splitlines())) < 260
    page = evaluation._repr_html_()
    assert "<script" not in page and "<img" not in page and "<b>" not in page
    assert "&lt;script&gt;" in page and "&lt;b&gt;late" in page
    assert len(page) < 4_000
    many = evaluation.replace(record=HOSTILE.replace(contexts=HOSTILE.contexts * 50))
    assert many._repr_html_().count("<dt>context") == 20


def test_without_stored_content_the_scores_are_shown() -> None:
    scored = Score(metric="faithfulness", status="scored", value=0.5, standard_error=0.1, label="pass")
    evaluation = Evaluation(record_id="t1", scores=(scored,))
    assert str(evaluation) == f"turn t1\n{'faithfulness':<24} 0.500 ± 0.100  pass"
    assert "<dl>" not in evaluation._repr_html_() and "0.500 ± 0.100" in evaluation._repr_html_()
