"""What came into a turn from outside of a model: the only texts that an answer can rest on.

Retrievals, tools, documents that steps made or were given, and other texts that a step or a function
returned, a template was filled with, or the root was given. No name decides: what stands in the prompt of the
answer counts, what only a model wrote does not.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.record import Context, ContextsSource, Stage, text_of, to_json_value
from steelyard.recording._unique import unique
from steelyard.recording.building._steps import Step, Turn
from steelyard.recording.provenance import calls_behind, find_passages, finds_nothing, names_passages
from steelyard.recording.reading import attribute, documents_in, messages_in, passages_of, strings_in

_MOST_TEXTS = 400
_MOSTLY = 0.5
_EMPTY = "[]{}()\"' \t\n"
_LEAST = 4  # words; what is shorter is a value: a language, a name, a verdict


@dataclass(frozen=True, slots=True)
class Text:
    """A text beside documents, where it was first seen."""

    name: str
    """The name that it stood under; empty if it was all that a step returned."""
    text: str = field(repr=False)
    """What it says."""
    at: float
    """When it was first seen, on the clock of the turn's steps."""
    is_given: bool
    """Whether the root was given it, so that nothing in the turn made it."""


@dataclass(slots=True, repr=False)
class Sources:
    """Everything that came into a turn from outside of a model, before the prompt decides."""

    found: list[Context] = field(default_factory=list)
    """What retrievals and tools returned, in order."""
    reranked: list[Context] = field(default_factory=list)
    """What the last step after the retrievals left of them, in its order; it may have changed their texts."""
    made: list[Context] = field(default_factory=list)
    """Documents that steps made or were given."""
    kept: list[Context] = field(default_factory=list)
    """Documents in what the root returned; a thread's state may hold an earlier turn's."""
    before: list[list[Context]] = field(default_factory=list)
    """What look-ups before the turn found that no answer has used yet, by run, latest first."""
    texts: list[Text] = field(default_factory=list)
    """Other texts, by when they were first seen."""
    queries: list[str] = field(default_factory=list)
    """What retrievers and tools were asked."""
    stages: tuple[Stage, ...] = ()
    """Retrievals within others."""
    source: ContextsSource = "retrieved"
    """How `found` came in: by a retriever, or by tools alone."""
    looked_up: bool = False
    """Whether anything was looked up, whatever it found."""
    silent: int = 0
    """How many documents have no text."""

    @property
    def documents(self) -> tuple[Context, ...]:
        """Every passage that is known as such, each once."""
        left = {one.text.strip(): one for one in self.reranked}
        found = (left.get(one.text.strip(), one) for one in self.found)
        before = (one for run in self.before for one in run)
        return unique((*found, *self.reranked, *self.made, *before, *self.kept))


def sources_of(turn: Turn, *, tool_contexts: Collection[str] = ()) -> Sources:
    """Gather what came into a turn.

    Args:
        turn: The turn.
        tool_contexts: The tools whose results count, if the application names them; else all do.
    """
    found = Sources()
    _look_ups(found, turn, turn.steps, tool_contexts)
    known = {context.text.strip() for context in found.found}
    for steps in reversed(turn.before):
        earlier = Sources()
        _look_ups(earlier, Turn(steps=steps), steps, tool_contexts)
        found.looked_up = found.looked_up or earlier.looked_up
        if fresh := [one for one in earlier.found if one.text.strip() not in known]:
            found.before.append(fresh)
            known.update(one.text.strip() for one in fresh)
    reranks = [s for s in turn.steps if s.kind == "rerank" and not s.is_within("rerank", "tool")]
    by_text = {context.text.strip(): context for context in reversed(found.found)}
    left = unique(one for step in reranks for one in step.contexts or ())
    found.reranked = [_same(one, by_text.get(one.text.strip())) for one in left]
    _documents(found, turn, known | {one.text.strip() for one in found.reranked})
    found.texts = list(_texts(turn))
    return found


def _same(one: Context, found: Context | None) -> Context:
    """What a later step left, with the query and the hop of the retrieval that brought it."""
    return one if found is None else replace(one, query=found.query, hop=found.hop)


def only_searches(turn: Turn, sources: Sources, answer: str) -> bool:
    """Whether a run looked something up and returned just that, so that another one answers from it."""
    if turn.returned is None or not turn.retrievals or turn.tools:
        return False
    if not answer:
        return bool(documents_in(turn.returned)) or isinstance(turn.returned, list)
    if not sources.found or calls_behind(turn.calls, answer).known:
        return False
    texts = [one.text for one in sources.found]
    return any(one.seen >= _MOSTLY for one in find_passages([answer], texts))


def _look_ups(found: Sources, turn: Turn, steps: Sequence[Step], tool_contexts: Collection[str]) -> None:
    """Outermost retrievals, and tools without a retrieval in them; each that finds something is a hop."""
    hop, retrievals = 0, turn.retrievals
    for step in steps:
        if step.kind == "retrieval" and step in retrievals:
            contexts = list(step.contexts or ())
            query = text_of(step.given) if isinstance(step.given, str) else None
        elif step.kind == "tool" and not step.is_within("tool", "retrieval"):
            contexts, query = _of_tool(turn, step, tool_contexts), _argument(step.given)
            if not contexts and turn.inside(step, "model"):
                continue  # a model was asked, and nothing was looked up but what stands below it
            found.source = (
                "tool" if contexts and not any(one.contexts for one in retrievals) else found.source
            )
        else:
            continue
        found.looked_up = True
        if query:
            found.queries.append(query)
        found.found += (replace(one, query=query, hop=hop) for one in contexts)
        found.silent += step.silent
        hop += bool(contexts)
    if not any(step.kind == "tool" and (step.failed or step.returned is not None) for step in steps):
        _told_by_messages(found, turn, named=tool_contexts)
    found.stages = tuple(
        Stage(name=text_of(step.name), query=text_of(step.given), contexts=step.contexts or ())
        for step in steps
        if step.kind == "retrieval" and step not in retrievals
    )


def _told_by_messages(found: Sources, turn: Turn, *, named: Collection[str]) -> None:
    """What tools returned that nobody saw run, out of what a model was told after the user's last words."""
    known = {context.text for context in found.found}
    for step in turn.models:
        last = max((at for at, one in enumerate(step.messages) if one.role == "user"), default=-1)
        for message in step.messages[last + 1 :]:
            if message.role != "tool" or message.failed or (named and message.tool not in named):
                continue
            result = message.result
            brought = documents_in(result) or (parts_of(result, message.text) if message.text else ())
            fresh = [one for one in brought if one.text not in known]
            known.update(one.text for one in fresh)
            found.looked_up = True
            found.source = "tool" if fresh and not turn.retrievals else found.source
            found.found += fresh


def _of_tool(turn: Turn, step: Step, named: Collection[str]) -> list[Context]:
    """What a tool returned: documents, the parts of a list, or its whole text."""
    inside = (one.contexts for one in turn.steps if one.kind == "retrieval" and step in one.above())
    if step.failed or step.returned is None or any(contexts is not None for contexts in inside):
        return []  # what went wrong is told to the model, and is not evidence
    if named and step.name not in named:
        return []
    if step.contexts:
        return list(step.contexts)
    result = step.returned
    message = next(iter(messages_in(result)), None)
    if message is not None and message.failed:
        return []
    documents = (
        list(step.contexts or ()) or documents_in(attribute(result, "artifact")) or documents_in(result)
    )
    # What a model inside replied is its own; what that model was shown counts by its prompt.
    if documents or turn.inside(step, "model"):
        return documents
    return list(parts_of(result if message is None else message.result, message.text if message else ""))


def parts_of(value: Any, text: str = "") -> Iterable[Context]:
    """The parts of a value, if it is a list of passages; else its whole text.

    Args:
        value: What a tool or a step returned.
        text: The same as the model was told it, if that is known.
    """
    if not isinstance(value, str):
        text = text or json.dumps(to_json_value(value), ensure_ascii=False)
    else:
        text = text or value
    if not text.strip(_EMPTY) or finds_nothing(text):
        return ()
    rows = [
        one
        for one in passages_of(text if isinstance(value, str) else to_json_value(value))
        if one.text.strip()
    ]
    is_list = len(rows) > 1 and all(is_telling(one.text) for one in rows)
    is_document = len(rows) == 1 and (rows[0].id is not None or len(rows[0].text) > len(text) / 2)
    rows = [one for one in rows if not finds_nothing(one.text)]
    return rows if is_list or is_document else (Context(text=text.strip(), rank=0),)


def _argument(given: Any) -> str | None:
    """What a tool was asked: its only text argument."""
    if isinstance(given, str):
        return text_of(given)
    if not isinstance(given, Mapping):
        return None
    texts = [value for value in given.values() if isinstance(value, str)]
    return text_of(texts[0]) if len(texts) == 1 else None


def _documents(found: Sources, turn: Turn, known: set[str]) -> None:
    """Documents among what steps returned and what the root was given or returned."""
    hop = 1 + max((context.hop for context in found.found), default=-1)
    passed = [
        value
        for step in turn.steps
        if step.kind in ("chain", "prompt")
        for value in (step.given, step.returned)
    ]
    for value in (turn.given, *passed):
        found.made += _new(value, known, hop)
    for step in turn.steps:
        if step.kind == "chain" and step.contexts:
            found.made += _fresh(step.contexts, known, hop)
    found.kept = _new(turn.returned, known, hop)
    if not found.found and not found.made:
        messages = messages_in(turn.returned)
        last = max((at for at, one in enumerate(messages) if one.role == "user"), default=-1)
        for message in messages[last + 1 :]:
            if message.role == "tool":
                found.made += _new(message.result, known, hop)


def _new(value: Any, known: set[str], hop: int) -> list[Context]:
    return _fresh(documents_in(value), known, hop)


def _fresh(documents: Iterable[Context], known: set[str], hop: int) -> list[Context]:
    fresh = [replace(one, hop=hop) for one in documents if one.text.strip() not in known]
    known.update(one.text.strip() for one in fresh)
    return fresh


def _texts(turn: Turn) -> Iterator[Text]:
    """Every other text, once, by when it was first seen."""
    seen: set[str] = set()
    for at, is_given, value in _passed(turn):
        for name, text in strings_in(value):
            if text in seen:
                continue
            seen.add(text)
            if len(seen) > _MOST_TEXTS:
                return
            if is_telling(text) or (names_passages(name) and len(text.split()) > 1):
                yield Text(name, text, at, is_given)


def _passed(turn: Turn) -> Iterator[tuple[float, bool, Any]]:
    yield float("-inf"), True, turn.given
    passed: list[tuple[float, Any]] = []
    for step in turn.steps:
        if step.kind in ("chain", "prompt"):
            if step.given is not None:
                passed.append((step.at, step.given))
            if step.kind == "chain" and step.returned is not None:
                passed.append((step.at if step.ended is None else step.ended, step.returned))
    for at, value in sorted(passed, key=lambda one: one[0]):
        yield at, False, value


def is_telling(text: str) -> bool:
    """Whether a text says something; some languages put no blanks between words."""
    return len(text.split()) >= _LEAST or (len(text) >= 12 and not text.isascii())
