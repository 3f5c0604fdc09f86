"""Reading a span by the rules of a dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.reading import Message, messages_in
from steelyard_opentelemetry.spans._documents import retrieved_in
from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._payload import (
    Broken,
    answer_in,
    decode,
    is_conversation,
    is_empty,
    question_in,
)
from steelyard_opentelemetry.spans._span import Span


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanRule:
    """Where one kind of span has what it says; `key@event` is an attribute of an event on the span."""

    kind: Kind
    """What such a span stands for."""
    scopes: tuple[str, ...] = ("",)
    """How its scope begins."""
    name: re.Pattern[str] | None = None
    """The whole of its name, if that tells it apart."""
    events: frozenset[str] = frozenset()
    """Events of which it has at least one."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Attributes that it has, each with the values that it may have; without values, with any."""
    any_of: tuple[str, ...] = ()
    """Attributes of which it has at least one."""
    without: str = ""
    """An attribute that it does not have."""
    given: tuple[str, ...] = ()
    """Where its input is, the best place first."""
    came: tuple[str, ...] = ()
    """Where its output is, the best place first."""
    asked: tuple[str, ...] = ()
    """Where its question is as a plain text, the best place first."""
    said: tuple[str, ...] = ()
    """Where its answer is as a plain text, the best place first."""
    pieces: str = ""
    """Where the pieces of a streamed answer are, one event each."""
    expected: str = ""
    """Where the expected answer is as a plain text."""
    tool: str = ""
    """Where a tool's name is; the span's own name if nowhere."""
    around: str = ""
    """The only key of an object that may be put around an output."""
    load: Callable[[Any], Any] = decode
    """How an input and an output are read."""
    question: Callable[[Any], str] = question_in
    """The question in an input."""
    answer: Callable[[Any], str] = answer_in
    """The answer in an output."""
    messages: Callable[[Any], tuple[Message, ...]] = messages_in
    """What a model was sent, in an input."""
    documents: Callable[[Any, Any], tuple[Context, ...]] = lambda _, came: retrieved_in(came)
    """What a retrieval or a reranker returned, by its input and its output."""
    passes: bool = False
    """Whether documents may stand in what a step was given and returned."""
    hides: bool = True
    """Whether content was left out if there is none."""
    unless: tuple[str, ...] = ()
    """Attributes that show that content was not left out."""


def by_rules(dialect: str, rules: Iterable[SpanRule], span: Span) -> ParsedSpan | None:
    """What a span says by the first rule that fits it; None if none does."""
    rule = next((rule for rule in rules if _fits(rule, span)), None)
    return None if rule is None else _parsed(dialect, rule, span)


def _fits(rule: SpanRule, span: Span) -> bool:
    attributes = span.attributes
    if not span.scope.startswith(rule.scopes) or rule.without in attributes:
        return False
    if rule.name is not None and not rule.name.fullmatch(span.name):
        return False
    if rule.any_of and not any(key in attributes for key in rule.any_of):
        return False
    if rule.events and not any(event.name in rule.events for event in span.events):
        return False
    return all(_is_one(attributes.get(key), values) for key, values in rule.where.items())


def _is_one(value: object, values: tuple[str, ...]) -> bool:
    return value in values if values else value is not None and value != ""


def _parsed(dialect: str, rule: SpanRule, span: Span) -> ParsedSpan:
    read = [rule.load(_found(span, places)) for places in (rule.given, rule.came)]
    broken = next((part.cause for part in read if isinstance(part, Broken)), "")
    given, came = (None if isinstance(part, Broken) else part for part in read)
    if isinstance(came, Mapping) and set(came) == {rule.around}:
        came = came[rule.around]
    asked, said = _words(rule, span, given, came)
    fields = _fields(rule, span, given, came) | _named(rule, asked, said)
    told = said or (fields["messages"] if rule.kind == "llm" else asked or _holds((given, came)))
    hidden = rule.hides and not (told or broken or not span.attributes.keys().isdisjoint(rule.unless))
    return ParsedSpan(dialect=dialect, kind=rule.kind, hidden=hidden, broken=broken, **fields)


def _words(rule: SpanRule, span: Span, given: Any, came: Any) -> tuple[str, str]:
    """What was asked, and what was said."""
    said = _text(span, rule.said) or rule.answer(came)
    if not said and rule.pieces:
        said = "".join(piece for piece in _every(span, rule.pieces) if isinstance(piece, str)).strip()
    return _text(span, rule.asked) or rule.question(given), said


def _text(span: Span, places: Iterable[str]) -> str:
    values = (value for place in places for value in _every(span, place))
    texts = (text_of(value).strip() for value in values if isinstance(value, (str, int, float)))
    return next(filter(None, texts), "")


def _holds(values: Iterable[Any]) -> bool:
    return any(value is not None and value != {} for value in values)


def _fields(rule: SpanRule, span: Span, given: Any, came: Any) -> dict[str, Any]:
    """What was given and what came, as the fields of a span of the rule's kind."""
    parts: dict[str, Any] = {}
    if rule.kind == "llm":
        parts = {"messages": rule.messages(given)}
    elif rule.kind in ("retrieval", "rerank"):
        found = () if came is None else rule.documents(given, came)
        parts = {"documents": found, "empty": not found and is_empty(came)}
    elif rule.kind == "tool":
        parts = {"tool": span.text(rule.tool) if rule.tool else span.name, "result": came}
    elif rule.kind == "prompt":
        parts = {"variables": _texts(given)}
    elif rule.kind == "turn":
        found = () if came is None else rule.documents(given, came)
        parts = {"documents": found, "reference": _text(span, (rule.expected,))}
    if rule.passes:
        parts |= {"passing": (given, came), "in_conversation": is_conversation(given)}
    return parts


def _named(rule: SpanRule, asked: str, said: str) -> dict[str, str]:
    """What was asked and said, under the names that a span of the rule's kind has for them."""
    if rule.kind in ("retrieval", "rerank"):
        return {"query": asked}
    if rule.kind == "llm":
        return {"answer": said}
    return {} if rule.kind in ("tool", "prompt") else {"question": asked, "answer": said}


def _found(span: Span, places: Iterable[str]) -> Any:
    """What stands at the first of some places that has anything."""
    return next((value for place in places for value in _every(span, place) if value is not None), None)


def _every(span: Span, place: str) -> list[Any]:
    """What stands at a place: on the span, or on each of its events of that name."""
    key, _, event = place.partition("@")
    if not event:
        return [span.attributes.get(key)]
    return [one.attributes.get(key) for one in span.events if one.name == event]


def _texts(given: object) -> dict[str, str]:
    items = given.items() if isinstance(given, Mapping) else ()
    return {str(key): value for key, value in items if isinstance(value, str)}
