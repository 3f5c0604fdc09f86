"""Records held against the truth.

`right`: question, contexts and answer are true. `said`: something is wrong or missing, and a note, a kind of
evidence or a diagnosis says so. `unseen`: the same, of what stands in no span, or only in a prompt that was
filled in before: nobody could know. `silent`: wrong, and nothing says so. `crossed`: a text of another turn
or tenant. `missing`: no record, and no diagnosis. Beside these, `false_known`: a context that is given as
known although it did not come from outside a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from generator.receiving import Run
from generator.results import code_of
from generator.texts import forms, place, squeezed
from generator.truth import Truth, truth_of
from generator.turns import Turn
from steelyard.record import Record

Outcome = Literal["right", "said", "unseen", "silent", "crossed", "missing"]
OUTCOMES: tuple[Outcome, ...] = ("right", "said", "unseen", "silent", "crossed", "missing")

_ABOUT = {"question": ("question",), "answer": ("answer",)}
"""The word with which a note about a field begins; a note about none of these may be about the contexts."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one turn."""

    outcome: Outcome
    truth: Truth | None
    """None for a record that belongs to no turn."""
    record: Record | None
    wrong: tuple[str, ...] = ()
    """The fields that are wrong, and how."""
    false_known: tuple[str, ...] = ()
    """Contexts that are given as known and did not come from outside a model."""
    session: bool | None = None
    """Whether the session is right; None where a record has none."""


@dataclass
class Judgement:
    """The verdicts of one application."""

    run: Run
    verdicts: list[Verdict] = field(default_factory=list)

    def failures(self) -> set[str]:
        """The outcomes that are not to be."""
        found = {verdict.outcome for verdict in self.verdicts} & {"silent", "crossed", "missing"}
        return {*found, *(["false_known"] if any(v.false_known for v in self.verdicts) else [])}


def judge(run: Run) -> Judgement:
    """Hold what was recorded of an application against what happened."""
    truths = [truth_of(turn, run.shows) for turn in run.turns]
    made = Judgement(run)
    records = list(run.receiver.records())
    for truth in truths:
        record = _take(truth, records)
        others = [other for other in truths if other is not truth]
        verdict = _held(truth, others, record, run.receiver.diagnosed)
        made.verdicts.append(replace(verdict, outcome="unseen") if _is_unseen(run, verdict) else verdict)
    made.verdicts += [_extra(record) for _, record in records if not _is_part(record, run.turns)]
    return made


def _is_part(record: Record, turns: Sequence[Turn]) -> bool:
    """Whether a record is one of a part, as true as that of the turn: code asked each by itself."""
    texts = [one.text for one in record.contexts]
    able = [turn for turn in turns if record.answer.startswith(f"{turn.draft} (") and turn.relayed]
    able = [turn for turn in able if turn.question == record.question]
    known = [text for turn in able for text in turn.everything()]
    return bool(able) and all(any(place(one, text) >= 0 for one in known) for text in texts)


def _is_unseen(run: Run, verdict: Verdict) -> bool:
    """Whether nothing could tell what is lacking: the answer, or what of a filled-in prompt is what."""
    told = run.receiver.told
    if verdict.outcome == "said" and verdict.wrong == ("question",) and _is_first_message(run, verdict):
        return True
    if verdict.outcome not in ("said", "missing") or verdict.truth is None or told is None:
        return False
    if _is_filled_in(run, verdict.truth):
        return True
    if verdict.wrong == ("question",):
        # Code put words around it wherever it is told.
        return not any(squeezed(verdict.truth.question) in _leaves(text) for text in told)
    needed = (verdict.truth.question, verdict.truth.answer)
    return verdict.record is None and not all(any(place(one, text) >= 0 for text in told) for one in needed)


def _leaves(told: str) -> set[str]:
    """What a span tells: a text, and each text in it where it is JSON."""
    found, waiting = {squeezed(told)}, [told]
    while waiting:
        try:
            value = json.loads(waiting.pop())
        except ValueError:
            continue
        parts = [value]
        for part in parts:  # it grows on the way
            parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        waiting += (texts := [part for part in parts if isinstance(part, str)])
        found.update(map(squeezed, texts))
    return found


def _is_first_message(run: Run, verdict: Verdict) -> bool:
    """Whether a process was asked for the first time, with words of code around the user's."""
    options = run.choices.options
    is_wrapped = "wrapped" in run.choices.used and options["wrapped"] != "no"
    is_first = verdict.truth is not None and verdict.truth.id == run.turns[0].id
    return is_wrapped and is_first and options["process"] == "new"


def _is_filled_in(run: Run, truth: Truth) -> bool:
    """Whether a model was called alone, with a prompt that plain code had filled in."""
    if run.choices.framework == "plain":
        return run.choices["shape"] == "filled" and run.choices["own_spans"] not in ("look_up", "numbered")
    if run.choices.framework == "written":
        is_agent = run.choices["looks"] == "tool" and run.choices["client"] not in ("own", "transcript")
        # What was found stands elsewhere too only if something was found.
        is_shown = is_agent or (run.choices["also"] != "nowhere" and bool(truth.contexts))
        return not is_shown and run.choices["search"] in ("previews", "ids", "count", "nothing", "none")
    return run.choices["shape"] == "bare" and run.choices["prompting"] in ("fstring", "value")


def _take(truth: Truth, records: list[tuple[str | None, Record]]) -> Record | None:
    """The record of a turn, taken out of those that are left: the most like it where several may be it."""
    may = [at for at, (id, _) in enumerate(records) if id in (None, truth.id)]
    if not may:
        return None
    best = max(may, key=lambda at: (_likeness(truth, records[at][1]), at))
    if records[best][0] is None and not _likeness(truth, records[best][1]):
        return None
    return records.pop(best)[1]


def _likeness(truth: Truth, record: Record) -> int:
    texts = [squeezed(context.text) for context in record.contexts]
    return (
        4 * (squeezed(record.answer) == squeezed(truth.answer))
        + 2 * any(squeezed(text) in whole for text in truth.contexts for whole in texts)
        + 1 * (squeezed(record.question) == squeezed(truth.question))
        + 8 * (record.metadata.get("turn") == truth.id)
    )


def _held(
    truth: Truth, others: Sequence[Truth], record: Record | None, diagnosed: Mapping[str, int]
) -> Verdict:
    if record is None:
        return Verdict(
            outcome="said" if any(diagnosed.values()) else "missing",
            truth=truth,
            record=None,
            wrong=("record",),
        )
    wrong = []
    if squeezed(record.question) != squeezed(truth.question):
        wrong.append("question")
    if not _same_answer(truth, record):
        wrong.append("answer")
    if how := _contexts(truth, record):
        wrong.append(f"contexts: {how}")
    session = record.session
    false_known = tuple(_false_known(truth, others, record))
    outcome: Outcome = "right"
    if _crossed(truth, others, record):
        outcome, wrong = "crossed", ["crossed", *wrong]
    elif wrong:
        outcome = "said" if all(_said(each, record) for each in wrong) else "silent"
    return Verdict(
        outcome=outcome,
        truth=truth,
        record=record,
        wrong=tuple(wrong),
        false_known=false_known,
        session=None if session is None else session == truth.session,
    )


def _extra(record: Record) -> Verdict:
    said = bool(record.notes) or not record.contexts
    return Verdict(outcome="said" if said else "silent", truth=None, record=record, wrong=("extra record",))


def _same_answer(truth: Truth, record: Record) -> bool:
    """A structured answer may come as its JSON form."""
    said = squeezed(record.answer)
    return said in forms(truth.answer) or (said.startswith("{") and place(truth.answer, record.answer) >= 0)


def _contexts(truth: Truth, record: Record) -> str:
    """How the contexts are wrong; nothing where they are right.

    A context is one passage, or one or several passages within a whole text that came from outside.
    """
    places: list[int] = []
    for context in record.contexts:
        text = squeezed(context.text)
        held = [at for at, passage in enumerate(truth.contexts) if place(passage, text) >= 0]
        if not held:
            return _stray(truth, text)
        came = text in forms(truth.contexts[held[0]]) or _within(truth.wholes, text)
        if not came and not _is_row(truth, context.text):
            return "more than came"
        places += held
    if len(set(places)) < len(places):
        return "shard or twice"
    if places != sorted(places):
        return "order"
    if len(places) < len(truth.contexts):
        return "lacking"
    return "row cut" if any(_is_cut(truth, record, code_of(one)) for one in truth.contexts) else ""


def _is_row(truth: Truth, text: str) -> bool:
    """Whether a text is a row as JSON, of which everything came."""
    try:
        row = json.loads(text)
    except ValueError:
        return False
    fields = row.values() if isinstance(row, dict) else row if isinstance(row, list) else ()
    return bool(fields) and all(any(place(str(one), whole) >= 0 for whole in truth.wholes) for one in fields)


def _is_cut(truth: Truth, record: Record, code: str) -> bool:
    """Whether what a row has beside its passage is lost."""
    return _within(truth.wholes, code) and not any(code in one.text for one in record.contexts)


def _within(wholes: Sequence[str], text: str) -> bool:
    return any(text in form for whole in wholes for form in forms(whole))


def _stray(truth: Truth, text: str) -> str:
    if _within(truth.contexts, text):
        return "shard or twice"
    if _within(truth.unshown, text):
        return "not shown"
    return "invented"


def _came(truth: Truth, text: str) -> bool:
    """Whether a text came from outside a model in this turn, whole or in part."""
    return _within((*truth.contexts, *truth.unshown, *truth.wholes), text)


def _false_known(truth: Truth, others: Sequence[Truth], record: Record) -> list[str]:
    if str(record.contexts_source) == "guessed":
        return []
    texts = [context.text for context in record.contexts]
    return [
        text
        for text in texts
        if not _came(truth, squeezed(text))
        and not any(place(passage, text) >= 0 for passage in truth.contexts)
        and not any(_came(other, squeezed(text)) for other in others)
    ]


def _crossed(truth: Truth, others: Sequence[Truth], record: Record) -> bool:
    """Whether a text is of another turn, and not of this one."""
    texts = [squeezed(context.text) for context in record.contexts]
    foreign = any(
        not _came(truth, text)
        and any(place(passage, text) >= 0 for other in others for passage in other.contexts)
        for text in texts
    )
    if foreign:
        return True
    same = squeezed(truth.question)
    return squeezed(record.question) != same and any(
        squeezed(record.question) == squeezed(other.question) for other in others
    )


def _said(wrong: str, record: Record) -> bool:
    """Whether the record says that a field may be wrong."""
    field_name = wrong.split(":")[0]
    words = _ABOUT.get(field_name)
    if words is not None:
        return any(note.startswith(words) or field_name in note for note in record.notes)
    about_others = tuple(word for names in _ABOUT.values() for word in names)
    return str(record.contexts_source) == "guessed" or any(
        not note.startswith(about_others) or "context" in note or "passage" in note for note in record.notes
    )
