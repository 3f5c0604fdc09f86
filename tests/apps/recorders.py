"""Running an application under a recorder, and holding its records against the truth."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

from apps.app import App, Field, Truth
from apps.island import MARKS
from apps.limits import LIMITS
from fakes.receiver import Receiver
from steelyard.record import Record

OWN = {"langchain": ("handler", "attach"), "llamaindex": ("instrument",)}
INSTRUMENTORS = ("openinference", "openllmetry")
BLOCK = "block"
_WHOLE = 0.95


class Watched(Receiver):
    """A receiver that is told what is not recorded, too."""

    def __init__(self) -> None:
        super().__init__()
        self.diagnoses: list[str] = []


def recorders_of(app: App) -> tuple[str, ...]:
    """The recorders that an application is run under."""
    return (*OWN[app.framework], *((BLOCK,) if app.rootless and len(app.truths) == 1 else ()), *INSTRUMENTORS)


def ways_under(app: App, recorder: str, *, every: bool = False) -> tuple[str, ...]:
    """The ways in which an application is run under a recorder: all that matter, or every other one.

    Two recorders of a kind share the ways of an application, so that each pair of an application, a recorder
    and a way is tried, and all three together by the slow tests alone. What a recorder cannot know is looked
    for in all ways. Under instrumentors the plainest way matters, and the one that is least like it.
    """
    foreign = recorder in INSTRUMENTORS
    ways = tuple(dict.fromkeys((app.ways[0], app.ways[-1]))) if foreign else app.ways
    kind = INSTRUMENTORS if foreign else tuple(name for name in OWN[app.framework] if name != BLOCK)
    if every or len(kind) < 2 or recorder not in kind or (app.name, recorder) in LIMITS:
        return ways
    place = (len(app.name) + kind.index(recorder)) % 2
    return ways[place::2] or ways


def run_own(app: App, way: str, recorder: str) -> tuple[list[Record], list[str]]:
    """Run under a recorder of the framework's own kind, in this process: the records, and what it says."""
    receiver = Watched()
    run = _run_langchain if app.framework == "langchain" else _run_llamaindex
    check_shown(app, run(app, way, recorder, receiver))
    return receiver.records, receiver.diagnoses


def _run_llamaindex(app: App, way: str, recorder: str, receiver: Watched) -> Any:
    from steelyard_llamaindex import instrument, record, uninstrument

    instrument(receiver)
    # Where no loop is set, synchronous calls of asynchronous code close the one that they make.
    asyncio.set_event_loop(None)
    try:
        if recorder == BLOCK:
            with record(app.truths[0].question) as turn:
                turn.answer = app.run({}, way)
            return turn.answer
        return app.run({}, way)
    finally:
        gc.collect()
        uninstrument()


def _run_langchain(app: App, way: str, recorder: str, receiver: Watched) -> Any:
    from steelyard_langchain import CallbackHandler, attach, detach, record

    if recorder == "handler":
        handler = CallbackHandler(receiver)
        shown = app.run({"callbacks": [handler]}, way)
        _diagnose(handler.stats, receiver)
        return shown
    if recorder == BLOCK:
        with record(receiver, question=app.truths[0].question) as turn:
            turn.answer = app.run({}, way)
        return turn.answer
    handler = attach(receiver)
    try:
        return app.run({}, way)
    finally:
        detach()
        _diagnose(handler.stats, receiver)


def _diagnose(stats: Callable[[], dict[str, int]], receiver: Watched) -> None:
    _ = receiver.records  # what is no turn is counted when it is built
    if stats()["without_root"]:
        receiver.diagnoses.append(f"{stats()['without_root']} runs outside of any chain are not recorded")


def check_shown(app: App, shown: Any) -> None:
    """The application did show its answers; streams come in pieces, states as mappings."""
    text = _text(shown)
    squeezed = text.replace("\\n", "\n")
    if not all(truth.answer in text or truth.answer in squeezed for truth in app.truths):
        # Not an AssertionError: an application that is broken is never a known failure of a recorder.
        raise RuntimeError(f"{app.name} showed {text!r}")


def _text(shown: Any) -> str:
    if isinstance(shown, dict):
        shown = list(shown.values())
    return (
        "".join(map(_text, shown))
        if isinstance(shown, list | tuple)
        else str(getattr(shown, "content", shown))
    )


def wrong(app: App, recorder: str, records: Sequence[Record], diagnoses: Sequence[str] = ()) -> list[str]:
    """What is wrong with the records of a run; nothing where they are right or name what they cannot know."""
    allowed = frozenset(app.allowed_notes.get(recorder, ()))
    if len(records) != len(app.truths):
        noted = all(record.notes for record in records) and (records or diagnoses)
        told = f"{len(records)} records for {len(app.truths)} turns"
        return [] if "turns" in allowed and noted else [_about(told, records, diagnoses)]
    found = []
    for truth, record in zip(app.truths, _in_order(app.truths, records), strict=True):
        fields = differences(truth, record)
        if fields and not (record.notes and allowed.issuperset(fields)):
            found.append(_about(f"wrong {', '.join(sorted(fields))}", [record], diagnoses))
    return found


def silent(app: App, sign: str, records: Sequence[Record], diagnoses: Sequence[str] = ()) -> list[str]:
    """What is wrong with the records of a run and is not said by a sign: a note, or a diagnosis' cause."""
    truths = (*app.truths, *app.parts)
    wrong = [record for record in records if not any(not differences(truth, record) for truth in truths)]
    found = [
        _about(f"wrong without the note {sign!r}", [record], ())
        for record in wrong
        if not any(note.startswith(sign) for note in record.notes)
    ]
    missing = len(app.truths) - len(records) if not app.parts else len(app.parts) + 1 - len(records)
    told = sum(f"  {sign}: " in diagnosis for diagnosis in diagnoses)
    if missing > told:
        found.append(_about(f"{missing} missing, {told} diagnosed as {sign!r}", records, diagnoses))
    return found


def _in_order(truths: Sequence[Truth], records: Sequence[Record]) -> list[Record]:
    """Records as the truths stand: turns that ran at once end in any order."""
    place = {truth.question: at for at, truth in enumerate(truths)}
    return sorted(records, key=lambda record: place.get(record.question, 0))


def differences(truth: Truth, record: Record) -> set[Field]:
    """The fields in which a record is not what happened."""
    same: dict[Field, bool] = {
        "question": record.question == truth.question,
        "standalone": record.standalone_question == truth.standalone,
        "contexts": _same_contexts(truth, record),
        "answer": record.answer.strip() == truth.answer,
    }
    assert set(same) == set(get_args(Field)) - {"turns"}
    return {name for name, holds in same.items() if not holds}


def _same_contexts(truth: Truth, record: Record) -> bool:
    given = [_plain(context.text) for context in record.contexts]
    expected = [_plain(text) for text in truth.contexts]
    if truth.one_text:
        return _same_text(truth, " ".join(given))
    if truth.any_order:
        given, expected = sorted(given), sorted(expected)
    if given != expected:
        return False
    if not given:
        return True
    if record.contexts_source != truth.source:
        return False
    cut = [text in truth.partly for text in truth.contexts]
    shares = [context.seen for context in record.contexts]
    return all(
        (share is not None and 0 < share < _WHOLE) if part else (share is None or share >= _WHOLE)
        for part, share in zip(cut, shares, strict=True)
    )


def _same_text(truth: Truth, given: str) -> bool:
    """Where a tool returned one text, it may be one context or several: the same words, in the same order."""
    at = 0
    for text in map(_plain, truth.contexts):
        if given.count(text) != 1 or (found := given.find(text)) < at:
            return False
        at = found + len(text)
    return all(mark not in given or any(mark in text for text in truth.contexts) for mark in MARKS.values())


_LABEL = re.compile(r"Source [0-9]+:\n|(?m:^> ?)")


def _plain(text: str) -> str:
    """A text's words; what is put before a passage, or its lines, is not the passage's."""
    return " ".join(_LABEL.sub("", text).split())


def _about(what: str, records: Sequence[Record], diagnoses: Sequence[str]) -> str:
    lines = [what]
    for record in records:
        shares = [None if c.seen is None else round(c.seen, 2) for c in record.contexts]
        lines += [
            f"  question   {record.question!r} / {record.standalone_question!r}",
            f"  contexts   {record.contexts_source} {shares} {[c.text for c in record.contexts]}",
            f"  answer     {record.answer!r} ({record.status})",
            f"  notes      {record.notes}",
        ]
    return "\n".join([*lines, *(f"  diagnosis  {each}" for each in diagnoses)])
