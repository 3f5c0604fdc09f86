"""Spans of tracers that no other dialect knows: what went in and what came out, under whatever names.

Vendors' SDKs and people who set attributes by hand use the same few words: an input and an output, a type, a
question, documents, an answer. They are known by the last words of an attribute's name, wherever it begins.
Only spans that none of the other dialects can read come here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from steelyard.record import Context
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import names_passages, numbered_parts, only_counts, passages_of
from steelyard.recording.reading import Message, messages_in, strings_in
from steelyard_opentelemetry._documents import CAMEL, are_names, counts_in, is_tally, noted_in, retrieved_in
from steelyard_opentelemetry._payload import Broken, answer_in, is_conversation, is_empty, question_in
from steelyard_opentelemetry._span import Kind, ParsedSpan, Span
from steelyard_opentelemetry.dialects._shapes import PROMPTS, as_list_of, json_value, last_reply, request_in

_NAME = "generic"
_INPUTS = (
    *("input", "inputs", "span_inputs", "input_value", "input_json", "input_data", "data_inputs"),
    "request_data",
)
_OUTPUTS = (
    *("output", "outputs", "span_outputs", "output_value", "output_json", "output_data", "data_outputs"),
    *("response_data", "call_return", "return"),
)
_QUESTIONS = ("question", "user_question", "user_query", "query_text", "user_input", "search_query", "query")
_ANSWERS = ("answer", "final_answer", "response", "completion", "generation", "reply", "llm_output")
_PASSAGES = ("context", "document", "doc", "chunk", "passage", "source")
_TEXTS = ("text", "content", "preview")
_DOCUMENTS = (
    *("documents", "docs", "contexts", "passages", "chunks", "retrieved_documents", "retrieved_contexts"),
    *("retrieved_chunks", "retrieved_docs", "context", "retrieved_context", "sources", "search_results"),
    *("rag_contexts", "retrieval_contexts"),
    *(f"{one}_{text}" for one in _PASSAGES for text in _TEXTS),
)
_LISTED_AS = tuple(f"_{name}" for name in _DOCUMENTS)  # `context_chunks`
_FOUND = ("results", "hits", "matches")
"""What a search found; elsewhere these may be anything."""
_RESULTS = ("tool_result", "result", "result_summary")
_TOOL_NAMES = ("tool_name", "function_name", "name")
_TYPES = ("type", "subtype", "span_type", "kind", "span_kind", "observation_type", "span_attributes", "event")
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"re-?rank"), "rerank"),
    (re.compile(r"retriev|vector_?store|vector_?search|similarity_?search|knowledge_?base"), "retrieval"),
    (re.compile(r"\bllm\b|generation|chat|completion|\bmodel\b|generate"), "llm"),
    (re.compile(r"\btool|\bfunction\b|function_call"), "tool"),
    (re.compile(r"agent"), "agent"),
)
_ELSEWHERE = (
    *("http", "db", "url", "net", "rpc", "messaging", "graphql", "code", "exception", "server", "client"),
    *("network", "thread", "process", "telemetry", "otel", "k8s", "cloud", "aws", "faas", "gen_ai", "peer"),
)
_FOREIGN_WORDS = "db.system db.system.name http.method http.request.method rpc.system messaging.system"
_FOREIGN = frozenset(_FOREIGN_WORDS.split())
_MOST_KEYS = 200
_SEARCHES = ("retrieval", "rerank")


def read(span: Span, *known: Kind) -> ParsedSpan | None:
    """What the span says, where it says enough: a lone attribute called `query` may mean anything.

    Args:
        span: The span.
        known: What it stands for, if a convention says so and no more.
    """
    if not _FOREIGN.isdisjoint(span.attributes):
        return None
    told = _by_name(span)
    given, came = _first(told, _INPUTS), _first(told, _OUTPUTS)
    kind = _meant(known, _kind(span.name, told, given, came))
    broken = next((part.cause for part in (given, came) if isinstance(part, Broken)), "")
    question = question_in(_first(told, _QUESTIONS)) or question_in(given)
    if parts := _look_up(kind, told, came, question):
        kind = "rerank" if kind == "rerank" else "retrieval"
    elif kind in _SEARCHES:
        is_told = known or broken or is_empty(came) or counts_none(span) or any(map(_kind_of, _types(told)))
        parts = _untold(question, came) if is_told else {}
    elif kind == "tool":
        parts = _tool(span.name, told, given, came)
    elif kind == "llm":
        parts = _call(told, given, came, broken)
    else:
        parts = _step(told, given, came, question, broken)
    return ParsedSpan(dialect=_NAME, kind=kind, broken=broken, **parts) if parts else None


def _meant(known: Sequence[Kind], read: Kind) -> Kind:
    """The kind that a convention tells, of look-ups and tools; a tool may be called a look-up."""
    is_tool = read == "chain" and "tool" in known
    return next(filter(_SEARCHES.__contains__, known), "tool" if is_tool else read)


def _untold(question: str, came: Any) -> dict[str, Any]:
    """What a look-up came to beside passages, under whatever names: it counts as far as a prompt shows it."""
    noted = tuple(text for _, text in strings_in(came) if is_telling(text))
    return {"query": question, "empty": is_empty(came), "noted": noted}


def _look_up(kind: Kind, told: Mapping[str, Any], came: Any, question: str) -> dict[str, Any]:
    """What was looked up, and an answer beside it, as of one span around a whole turn.

    A list that has nothing in it tells of a look-up too, beside what was asked.
    """
    if kind == "llm":
        return {}
    # A look-up may have returned its list as a text.
    came = _loaded(came) if kind in _SEARCHES else came
    found = _documents(told, came, kind)
    is_none = not found and bool(question) and _is_told_empty(told, came)
    answers = kind != "rerank" and question
    # What a step returned in an object may quote a passage wholly.
    returned = answer_in(came) if isinstance(came, Mapping) and kind not in _SEARCHES else ""
    answer = (answer_in(_first(told, _ANSWERS)) or returned or _spoken(came, found)) if answers else ""
    parts = {"query": question, "documents": found, "answer": answer, "empty": is_none}
    return parts if found or is_none else {}


def _is_told_empty(told: Mapping[str, Any], came: Any) -> bool:
    """Whether a list that is named for passages, on the span or in what came back, has nothing in it."""
    named = came.items() if isinstance(came, Mapping) else ()
    return is_empty(_first(told, _DOCUMENTS)) or any(v == [] and names_passages(name) for name, v in named)


def _call(told: Mapping[str, Any], given: Any, came: Any, broken: str) -> dict[str, Any]:
    """What a model was sent and replied, and what stands beside it; nothing where either is not told.

    What a span says that it is counts also if it tells the reply alone.
    """
    answer = _replied(came) or last_reply(_first(told, _ANSWERS))
    sent = _sent(told, given)
    bare, filled = _asked_beside(given, sent)
    is_told = sent or bare or any(map(_kind_of, _types(told)))
    if not (answer and is_told) and not broken:
        return {}
    return {
        "answer": answer,
        "variables": filled,
        "messages": sent,
        "question": bare,
        "passing": (given,) if isinstance(given, Mapping) else (),
        "noted": tuple(one.text for one in _documents(told, None, "llm")),
    }


def _asked_beside(given: Any, sent: Sequence[Message]) -> tuple[str, Mapping[str, Any]]:
    """What a model's step was asked, and what filled its prompt in, where nobody tells the prompt itself."""
    bare = given.strip() if isinstance(given, str) else "" if sent else question_in(given)
    if not bare or bare in [one.text for one in sent]:
        return bare, {}
    return bare, given if isinstance(given, Mapping) else {"question": bare}


def _replied(came: Any) -> str:
    """A model's reply in what came: its words, or the form that it filled in."""
    is_form = isinstance(came, Mapping) and any(is_telling(text) for _, text in strings_in(came))
    return last_reply(came) if is_form else answer_in(came)


def _step(told: Mapping[str, Any], given: Any, came: Any, question: str, broken: str) -> dict[str, Any]:
    """What a step was asked, and its answer; nothing if it tells neither both nor a type and an output."""
    answer = answer_in(came) or answer_in(_first(told, _ANSWERS))
    is_step = question or isinstance(given, Mapping) or (came and given is None and any(_types(told)))
    if not (answer and is_step) and not broken:
        return {}
    return {
        "answer": answer,
        "question": question,
        "in_conversation": is_conversation(given),
        "passing": (given, came),
    }


def _tool(name: str, told: Mapping[str, Any], given: Any, came: Any) -> dict[str, Any]:
    """What a tool was called and what it returned; nothing if that is not told."""
    came = _first(told, _RESULTS) if came is None else came
    names = (told.get(key) for key in _TOOL_NAMES)
    name = next((named for named in names if isinstance(named, str)), name)
    return {} if came is None else {"tool": name, "result": came, "passing": (given, came)}


def _spoken(came: object, found: Sequence[Context]) -> str:
    """A text that came of a span with passages, where it is not these passages once more."""
    text = came.strip() if isinstance(came, str) else ""
    is_found = only_counts(text) or any(one.text in text or text in one.text for one in found)
    return "" if is_found else text


def searched(found: ParsedSpan, span: Span) -> ParsedSpan:
    """A decorated function that is a look-up: it is called so, and returned a list and no answer."""
    came = _loaded(found.passing[-1]) if len(found.passing) > 1 else None
    is_list = isinstance(came, list) or (isinstance(came, Mapping) and not found.answer)
    if found.kind != "chain" or not is_list or _kind_of(span.name) != "retrieval":
        return found
    documents = retrieved_in(came)
    if not (documents or is_empty(came)):
        return found
    query, is_none = found.question, not documents
    return replace(found, kind="retrieval", query=query, documents=documents, empty=is_none, answer="")


def around(found: ParsedSpan, span: Span, *, is_topmost: bool) -> ParsedSpan:
    """A step that others stand below: it tells passages and not that it looks up, or is called a function.

    No model can have called the topmost function.
    """
    told = _by_name(span)
    given, came = _first(told, _INPUTS), _first(told, _OUTPUTS)
    if found.kind == "tool" and is_topmost:
        parts = _step(told, given, came, question_in(given), "")
        return ParsedSpan(dialect=_NAME, kind="chain", **parts) if parts else found
    if found.kind != "retrieval" or _kind_of(span.name) or any(map(_kind_of, _types(told))):
        return found
    parts = _step(told, given, came, found.query, "") or {"question": found.query, "passing": (found.query,)}
    noted = tuple(one.text for one in found.documents)
    return ParsedSpan(dialect=_NAME, kind="chain", noted=noted, **parts)


def own_names(span: Span) -> list[str]:
    """What a span of the application's own and its attributes are called; nothing for HTTP and databases."""
    if not _FOREIGN.isdisjoint(span.attributes):
        return []
    return [span.name, *(key for key in span.attributes if key.partition(".")[0] not in _ELSEWHERE)]


def counts_none(span: Span) -> bool:
    """Whether all that a span tells of passages are counts, and each is none."""
    return bool(counts := counts_in(span.attributes)) and not any(counts)


def own_questions(span: Span) -> list[str]:
    """What an application wrote as a question on a span, be it one of HTTP: the whole, or what is in it."""
    told = _by_name(span)
    values = [told[name] for name in _QUESTIONS if isinstance(told.get(name), str)]
    return [text for value in values for text in (value.strip(), question_in(value)) if text]


def own_answers(span: Span) -> list[str]:
    """What an application wrote as an answer on a span, under a usual name of its own or within an object."""
    objects = (value for value in map(_loaded, span.attributes.values()) if isinstance(value, Mapping))
    named = (told.get(name) for told in (_by_name(span), *objects) for name in _ANSWERS)
    return [text.strip() for text in named if isinstance(text, str)]


def own_texts(span: Span, *, anywhere: bool = False) -> dict[str, str]:
    """The texts that an application wrote on a span of its own, each with the name of its attribute.

    Args:
        span: The span.
        anywhere: Whether it may be one of HTTP or a database, too.
    """
    if not (anywhere or _FOREIGN.isdisjoint(span.attributes)):
        return {}
    every = itertools.chain(
        span.attributes.items(), *(event.attributes.items() for event in span.events if event.attributes)
    )
    pairs = ((key, value) for key, value in every if key.partition(".")[0] not in _ELSEWHERE)
    found: dict[str, str] = {}
    for key, value in itertools.islice(pairs, _MOST_KEYS):
        # A passage may be an object as JSON, of which a prompt shows the whole.
        whole = [value.strip()] if isinstance(value, str) and value[:1] == "{" else []
        found.update(dict.fromkeys([*whole, *noted_in(value)], key))
    return found


def _by_name(span: Span) -> dict[str, Any]:
    """What a span and its events say by the last one or two words of its name, in snake case.

    Events stand as a list under their own name too, in the plural: one for each `document`, `hit` or `doc_1`.
    So do attributes that have a number in their names: `chunk.0.text` and `doc_1`.
    """
    events = [event for event in span.events if event.name != "exception"][:_MOST_KEYS]
    told = [*span.attributes.items(), *(pair for event in events for pair in event.attributes.items())]
    listed: dict[str, list[Any]] = {}
    numbered: dict[str, list[Any]] = {}
    found: dict[str, Any] = {}
    for event in events:
        name = event.name.rstrip("0123456789").rstrip("_-. ")
        named = {key.rpartition(".")[2]: value for key, value in event.attributes.items()}
        listed.setdefault(f"{name}s", []).append(named)
    for key, value in [*told[:_MOST_KEYS], *listed.items()]:
        words = re.split(r"[.:/ ]", CAMEL.sub("_", key).lower())
        if value is None or (words[0] in _ELSEWHERE and len(words) > 1):
            continue
        if name := _without_number(words):
            numbered.setdefault(name, []).append(value)
        else:
            found.setdefault(words[-1], value)
            found.setdefault("_".join(words[-2:]), value)
    return {**numbered, **found}


def _without_number(words: Sequence[str]) -> str:
    """The name of a list of which an attribute is one entry; empty if there is no number in its name."""
    kept = [word for word in words if not word.isdigit()]
    if not kept or not words[-1][-1:].isdigit():
        parts = (*(word.removesuffix("s") for word in kept[-2:-1]), *kept[-1:])
        return "_".join(parts) if len(kept) < len(words) else ""
    return kept[-1] if words[-1].isdigit() else words[-1].rstrip("0123456789").rstrip("_") + "s"


def _first(told: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The best known of some attributes, read where it is JSON."""
    return next((_loaded(told[name]) for name in names if name in told), None)


def _loaded(value: object) -> Any:
    """JSON as what it holds; some SDKs write every value so, a text in quotes too, or name its type."""
    found = json_value(value)
    is_typed = isinstance(found, Mapping) and found.keys() == {"type", "value"}
    return found["value"] if is_typed else found


def _kind(name: str, told: Mapping[str, Any], given: object, came: object) -> Kind:
    """What a span stands for: by the type that it names, else by the words of its name."""
    typed = next((kind for word in _types(told) if (kind := _kind_of(word))), None)
    if typed is not None:
        return typed
    named = _kind_of(name) or "chain"
    return "chain" if _is_step(named, told, given, came) else named


def _is_step(named: Kind, told: Mapping[str, Any], given: object, came: object) -> bool:
    """Whether a span that its name alone calls a model's call, a look-up or a tool is none of these.

    A step called `generate` has to tell a prompt, `search_and_answer` gives no list, `tool_routing` a code.
    """
    if named == "llm":
        return not _sent(told, given)
    if named == "tool":
        return isinstance(came, Mapping) and not any(is_telling(text) for _, text in strings_in(came))
    return named in _SEARCHES and isinstance(came, str) and _first(told, _DOCUMENTS) is None


def _kind_of(words: str) -> Kind | None:
    plain = CAMEL.sub("_", words).lower()
    return next((kind for pattern, kind in _KINDS if pattern.search(plain)), None)


def _types(told: Mapping[str, Any]) -> Iterator[str]:
    for name in _TYPES:
        value = _loaded(told.get(name))
        value = value.get("type") if isinstance(value, Mapping) else value
        if isinstance(value, str):
            yield value


def _documents(told: Mapping[str, Any], came: object, kind: Kind) -> tuple[Context, ...]:
    """Passages under a name that means them; of a retrieval, in its output."""
    found = (came, _first(told, _FOUND)) if kind in _SEARCHES else ()
    for value in (*_named(told), *found):
        # A count may stand under such a name, too.
        if are_names(value) or is_tally(value):
            continue
        if isinstance(value, (list, tuple, Mapping)):
            if listed := _listed(as_list_of(value) or value):
                return listed
        elif isinstance(value, str) and any(map(str.isalpha, value)):
            return _parts(value, kind)
    return ()


def _named(told: Mapping[str, Any]) -> Iterator[Any]:
    """What stands under the names of passages, and lists under longer names that end so."""
    longer = (_loaded(value) for name, value in told.items() if name.endswith(_LISTED_AS))
    listed = (value for value in longer if isinstance(value, (list, tuple)))
    return itertools.chain((_loaded(told.get(name)) for name in _DOCUMENTS), listed)


def _listed(value: object) -> tuple[Context, ...]:
    return tuple(one for one in retrieved_in(value) if one.text) or passages_of(value)


def _parts(text: str, kind: Kind) -> tuple[Context, ...]:
    """The passages in one text; what a look-up returned may be the numbered list that a prompt shows."""
    parts = numbered_parts(text) if kind in _SEARCHES else []
    return tuple(Context(text=part) for part in parts) if len(parts) > 1 else passages_of(text)


def _sent(told: Mapping[str, Any], given: object) -> tuple[Message, ...]:
    """What a model was sent: messages, a request that holds them, or one text."""
    prompt = _first(told, PROMPTS)
    holds = isinstance(given, str) and isinstance(prompt, str) and given.strip() in prompt
    for value in (prompt, given) if holds else (given, prompt):
        value = request_in(value)
        if isinstance(value, str) and value.strip():
            return (Message("user", value.strip()),)
        # A client may be called with the whole request as one of its arguments.
        inner = value.values() if isinstance(value, Mapping) else ()
        if found := next(filter(None, map(messages_in, (value, *inner))), ()):
            return found
    return ()
