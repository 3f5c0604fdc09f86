"""What a dialect is, as data: how its spans are known, and the rules by which they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.reading import Message, searched_by_provider
from steelyard_opentelemetry._documents import documents_in, is_tally, merged, retrieved_in, windows_in
from steelyard_opentelemetry._payload import (
    Broken,
    Words,
    answer_in,
    decode,
    is_conversation,
    is_empty,
    question_in,
)
from steelyard_opentelemetry._span import Kind, ParsedSpan, Span
from steelyard_opentelemetry.dialects._shapes import arguments_of, as_list_of, messages_of, unflattened

_MOST_TELLING: tuple[Kind, ...] = ("turn", "rerank", "retrieval", "llm", "tool", "agent", "prompt", "chain")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """One convention for writing LLM work on spans: a row of the table."""

    name: str
    """The dialect's name, as it stands in a Record's metadata."""
    read: Callable[[Span], ParsedSpan | None] | None = None
    """Reads a span whose payloads no rule describes; `rules` come after it."""
    events: Callable[[Span], Mapping[str, Any]] | None = None
    """What events say of a span, under the names of attributes; attributes themselves go first."""
    rules: tuple[SpanRule, ...] = ()
    """Where its kinds of spans have what they say; the first that fits counts."""
    scopes: tuple[str, ...] = ()
    """How the instrumentation scopes of its spans begin.

    For spans that are still open: most instrumentors write what a span says only when it ends.
    """
    scope_names: tuple[str, ...] = ()
    """Scopes that are known by their whole name."""

    needs: frozenset[str] | None = field(init=False, repr=False)
    """Attributes of which a span has at least one if a rule may fit it by these; None if any span may fit."""
    needs_scope: tuple[str, ...] = field(init=False, repr=False)
    """How the scopes begin of spans that rules without attributes may fit."""

    def __post_init__(self) -> None:
        bare = [rule for rule in self.rules if not (rule.where or rule.any_of)]
        is_open = self.read is not None or not all(any(rule.scopes) or rule.events for rule in bare)
        named = (rule.any_of if not rule.where else [next(iter(rule.where))] for rule in self.rules)
        object.__setattr__(self, "needs", None if is_open else frozenset(chain.from_iterable(named)))
        object.__setattr__(self, "needs_scope", tuple(one for rule in bare for one in rule.scopes if one))

    def may_read(self, span: Span, names: Collection[str]) -> bool:
        """Whether it is worth a look: most spans are of HTTP and databases, and there are many rules."""
        if self.needs is None or span.events or not self.needs.isdisjoint(names):
            return True
        return span.scope.startswith(self.needs_scope)

    def parse(self, span: Span) -> ParsedSpan | None:
        """What the span says in this dialect; None where it speaks another."""
        if self.read and (found := self.read(span)):
            return found
        if self.events and (told := self.events(span)):
            span = replace(span, attributes={**told, **span.attributes})
        return by_rules(self.name, self.rules, span)


def fused(spoken: Iterable[ParsedSpan]) -> ParsedSpan | None:
    """What several dialects say on one span: the most telling kind, and the first of each part."""
    found = sorted(spoken, key=lambda parsed: _MOST_TELLING.index(parsed.kind))
    if len(found) < 2:
        return found[0] if found else None
    best, *others = found
    names = {part.name for part in fields(ParsedSpan)} - {"hidden"}
    if best.answer or best.messages or best.documents:
        names.remove("broken")  # what one of them reads is not broken because another takes it for JSON
    lacks = [name for name in names if not getattr(best, name)]
    missing = {name: next(filter(None, (getattr(one, name) for one in others)), None) for name in lacks}
    filled = replace(best, **{name: value for name, value in missing.items() if value})
    # What one of them tells is not hidden; nor is a span with documents or messages.
    told = any(parsed.documents or parsed.messages or not parsed.hidden for parsed in found)
    return replace(filled, hidden=not told)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanRule:
    """Where one kind of span has what it says.

    A place is the name of an attribute; `key@event` is an attribute of an event on the span, and `key.*` what
    is flattened into several attributes, as the list or the object that it was; of events, one for each.
    """

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
    without: tuple[str, ...] = ()
    """Attributes of which it has none."""
    shape: Callable[[Any, Any], bool] | None = None
    """Whether its input and its output have the shape of this kind, where no attribute tells the kind."""
    given: tuple[str, ...] = ()
    """Where its input is, the best place first."""
    came: tuple[str, ...] = ()
    """Where its output is, the best place first."""
    sent: tuple[str, ...] = ()
    """Where a model's messages are if not in its input, the best place first."""
    replied: tuple[str, ...] = ()
    """Where a model's reply is, as messages, if not in its output."""
    system: str = ""
    """Where a model's instructions are, if they are not among its messages."""
    listed: str = ""
    """Where a look-up's documents are, if not in its output alone."""
    variables: str = ""
    """Where the variables of a prompt template are."""
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
    load: Callable[[Any], Any] = decode
    """How an input and an output are read."""
    typed: tuple[str, ...] = ()
    """Scopes that say what is JSON, in a `mime_type` beside a `value`; their other texts are words."""
    opened: Callable[[Any, Any], tuple[Any, Any]] = lambda given, came: (given, came)
    """An input and an output without what a framework puts around them."""
    question: Callable[[Any], str] = question_in
    """The question in an input."""
    answer: Callable[[Any], str] = answer_in
    """The answer in an output."""
    messages: Callable[[Any], tuple[Message, ...]] = messages_of
    """What a model was sent, in an input."""
    documents: Callable[[Any, Any], tuple[Context, ...]] = lambda _, came: retrieved_in(came)
    """What a retrieval or a reranker returned, by its input and its output."""
    bound: Callable[[dict[str, str], Any], Mapping[str, str]] = lambda variables, _: variables
    """The variables that were given to a run, without those that its template had."""
    noted: Callable[[Span, Any], tuple[str, ...]] = lambda _, __: ()
    """Texts about a retrieval that somebody noted on the span by hand."""
    answers: str = ""
    """A part of the name of look-ups that answer too, as managed services do in one span."""
    run: bool = False
    """Whether such a span is a run of its own, whatever span it stands below."""
    passes: bool = False
    """Whether documents may stand in what a step was given and returned."""
    hides: bool = True
    """Whether content was left out if there is none."""
    unless: tuple[str, ...] = ()
    """Attributes that show that content was not left out."""


_REDACTED = "__REDACTED__"
"""What OpenInference writes where content is left out."""


def by_rules(dialect: str, rules: Iterable[SpanRule], span: Span) -> ParsedSpan | None:
    """What a span says by the first rule that fits it; None if none does."""
    fitting = (rule for rule in rules if _fits(rule, span))
    for rule in fitting:
        read = [rule.load(_stated(rule, span, places)) for places in (rule.given, rule.came)]
        if rule.shape is None or rule.shape(*read):
            return _parsed(dialect, rule, span, read)
    return None


def _fits(rule: SpanRule, span: Span) -> bool:
    """Whether a span is of a rule's kind; what most spans lack is asked first."""
    attributes = span.attributes
    for key, values in rule.where.items():
        if not _is_one(attributes.get(key), values):
            return False
    if not span.scope.startswith(rule.scopes) or (rule.name and not rule.name.fullmatch(span.name)):
        return False
    if rule.any_of and attributes.keys().isdisjoint(rule.any_of):
        return False
    if rule.events and rule.events.isdisjoint([event.name for event in span.events]):
        return False
    return not rule.without or attributes.keys().isdisjoint(rule.without)


def _is_one(value: object, values: tuple[str, ...]) -> bool:
    if not values:
        return value is not None and value != ""
    return value in values or (isinstance(value, str) and value.upper() in values)


def _stated(rule: SpanRule, span: Span, places: Iterable[str]) -> Any:
    """An input or an output as it stands on the span."""
    place, value = next(_filled(span, places), ("", None))
    if isinstance(value, str) and span.scope.startswith(rule.typed or ("\0",)):
        is_json = span.attributes.get(place.replace(".value", ".mime_type")) == "application/json"
        return value if is_json else Words(value)
    return value


def _parsed(dialect: str, rule: SpanRule, span: Span, read: list[Any]) -> ParsedSpan:
    system = decode(span.attributes.get(rule.system))
    broken = next((part.cause for part in (*read, system) if isinstance(part, Broken)), "")
    given, came = rule.opened(*(None if isinstance(part, Broken) else part for part in read))
    asked, said = _words(rule, span, given, came)
    fields = _fields(rule, span, given, came, asked, said)
    # What is to be told of a model call is what it was sent, of a tool what it returned.
    content = {"llm": fields.get("messages"), "tool": _holds((came,)) or span.failed}
    told = said or content.get(rule.kind, asked or _holds((given, came)))
    hidden = rule.hides and not (told or broken or not span.attributes.keys().isdisjoint(rule.unless))
    hidden |= any(span.attributes.get(place) == _REDACTED for place in (*rule.given, *rule.came))
    return ParsedSpan(dialect=dialect, kind=rule.kind, hidden=hidden, broken=broken, run=rule.run, **fields)


def _words(rule: SpanRule, span: Span, given: Any, came: Any) -> tuple[str, str]:
    """What was asked, and what was said."""
    replied = rule.messages(_found(span, rule.replied)) if rule.replied else ()
    said = replied[-1].text if replied else _text(span, rule.said) or rule.answer(came)
    if not said and rule.pieces:
        said = "".join(piece for piece in _every(span, rule.pieces) if isinstance(piece, str)).strip()
    return _text(span, rule.asked) or rule.question(given), said


def _text(span: Span, places: Iterable[str]) -> str:
    values = (value for place in places for value in _every(span, place))
    texts = (text_of(value).strip() for value in values if isinstance(value, (str, int, float)))
    return next(filter(None, texts), "")


def _holds(values: Iterable[Any]) -> bool:
    return any(value is not None and value != {} for value in values)


def _fields(rule: SpanRule, span: Span, given: Any, came: Any, asked: str, said: str) -> dict[str, Any]:
    """What was given, what came, what was asked and said, as the fields of a span of the rule's kind."""
    parts = _of_kind(rule, span, given, came, asked, said)
    if rule.variables:
        parts["variables"] = rule.bound(_texts(decode(_found(span, (rule.variables,)))), given)
    elif rule.kind == "prompt":
        parts["variables"] = _texts(given)
    if rule.kind in ("chain", "agent", "tool", "prompt"):
        parts["in_conversation"] = is_conversation(given)
    if rule.passes:
        # What was typed may be JSON too, and is told apart by prompts: it goes on as it stands.
        raw = _stated(rule, span, rule.given) if rule.load is decode else given
        parts["passing"] = (raw,) if rule.kind == "retrieval" else (raw, came)
    if not parts.get("documents") and (noted := rule.noted(span, came)):
        parts["noted"] = noted
    return parts


def _of_kind(rule: SpanRule, span: Span, given: Any, came: Any, asked: str, said: str) -> dict[str, Any]:
    """The fields that spans of the rule's kind have for it."""
    if rule.kind == "llm":
        return {"answer": said, **_of_model(rule, span, given, came)}
    if rule.kind in ("retrieval", "rerank"):
        answer = said if rule.answers and rule.answers in span.name else ""
        return {"query": asked, "answer": answer, **_of_look_up(rule, span, given, came)}
    if rule.kind == "tool":
        name = span.text(rule.tool) if rule.tool else span.name
        return {"tool": name, "result": came, "passing": (given, came)}
    parts: dict[str, Any] = {"question": asked, "answer": said}
    if rule.kind == "turn":
        parts["documents"] = () if came is None else rule.documents(given, came)
        parts["reference"] = _text(span, (rule.expected,))
    return parts


def _of_model(rule: SpanRule, span: Span, given: Any, came: Any) -> dict[str, Any]:
    """What a model was sent, what its provider found for it, and what it called tools with."""
    told = rule.messages(_found(span, rule.sent)) if rule.sent else ()
    sent = told or rule.messages(given)
    system = decode(span.attributes.get(rule.system))
    if system and not isinstance(system, Broken):
        sent = (*messages_of([{"role": "system", "content": system}]), *sent)
    replied = _found(span, rule.replied) if rule.replied else None
    return {
        "messages": (*sent, *searched_by_provider(came)),
        "question": given.strip() if isinstance(given, str) and not (told or system) else "",
        "arguments": arguments_of(came if replied is None else replied),
    }


def _of_look_up(rule: SpanRule, span: Span, given: Any, came: Any) -> dict[str, Any]:
    """What was found: flattened documents, with ids and scores from the output as a whole."""
    flat = _found(span, (rule.listed,)) if rule.listed else None
    found = () if flat is None else retrieved_in(flat)
    if any(one.text for one in found):
        found = merged(found, documents_in(came))
    elif came is not None and not is_tally(came):
        found = rule.documents(given, came) or found
    return {
        "documents": found,
        "windows": windows_in(came if flat is None else flat),
        "empty": not found and is_empty(came),
    }


def _found(span: Span, places: Iterable[str]) -> Any:
    """What stands at the first of some places that has anything."""
    return next(_filled(span, places), ("", None))[1]


def _filled(span: Span, places: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The places that have anything, and what stands there."""
    return ((place, value) for place in places for value in _every(span, place) if value is not None)


def _every(span: Span, place: str) -> list[Any]:
    """What stands at a place: on the span, or on each of its events of that name."""
    key, _, event = place.partition("@")
    on = [span.attributes] if not event else [one.attributes for one in span.events if one.name == event]
    if key.endswith("*"):
        # What is flattened may stand in one attribute as JSON, its entries flattened still.
        whole = [as_list_of(decode(attributes.get(key[:-2]))) for attributes in on]
        parts = [unflattened(attributes, key[:-1], _REDACTED) for attributes in on]
        found = [part or one for part, one in zip(parts, whole, strict=True)]
        return [found] if event and found else found
    return [None if (value := attributes.get(key)) == _REDACTED else value for attributes in on]


def _texts(given: object) -> dict[str, str]:
    items = given.items() if isinstance(given, Mapping) else ()
    return {str(key): value for key, value in items if isinstance(value, str)}
