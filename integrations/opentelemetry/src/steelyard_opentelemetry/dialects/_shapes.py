"""The shapes in which frameworks write messages, texts and documents, beside the usual ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.record import Context
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import names_passages
from steelyard.recording.reading import (
    ASKED_NAMES,
    Message,
    arguments_in,
    messages_in,
    read_shown,
    spoken,
    strings_in,
    text_in,
    texts_of,
)
from steelyard_opentelemetry._documents import documents_in, noted_in, retrieved_in
from steelyard_opentelemetry._payload import (
    MOST,
    Broken,
    Words,
    answer_in,
    as_messages,
    decode,
    form_in,
    mappings_in,
    opened,
    question_in,
    shown_in,
)
from steelyard_opentelemetry._span import Span

DELTA = "StreamChatDeltaReceivedEvent"
"""LlamaIndex's event for a piece of a streamed reply."""
_BETWEEN = re.compile(r'",\s?"')


_WRAPPERS = frozenset(("message", "message_content", "tool_call", "document", "prompt"))
"""Names that OpenInference puts around the fields of each entry of a list."""
_DEEPEST = 8


def unflattened(attributes: Mapping[str, Any], prefix: str, without: object = None) -> Any:
    """What is flattened into attributes below a prefix, as the list or the object that it was, else None.

    >>> unflattened({"sent.0.message.role": "user", "sent.0.message.contents.0.text": "?"}, "sent.")
    [{'role': 'user', 'contents': [{'text': '?'}]}]
    """
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(prefix) and value != without:
            *path, last = key[len(prefix) :].split(".", _DEEPEST)
            place: Any = tree
            for name in path:
                if name not in _WRAPPERS:
                    place = place.setdefault(name, {}) if isinstance(place, dict) else None
            if isinstance(place, dict):
                place[last] = value
    return _as_list(tree) or None


def as_list_of(told: Any) -> Any:
    """A list of objects whose fields have names such as `document.content`, as they would be unflattened."""
    is_list = isinstance(told, list) and bool(told) and all(isinstance(one, Mapping) for one in told)
    return [unflattened(_inside(one), "") for one in told] if is_list else None


def _inside(entry: Mapping[str, Any]) -> Any:
    name = next(iter(entry)) if len(entry) == 1 else ""
    return entry[name] if name in _WRAPPERS and isinstance(entry[name], Mapping) else entry


def _as_list(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if all(name.isdecimal() for name in tree):
        return [_as_list(value) for _, value in sorted(tree.items(), key=lambda item: int(item[0][:9]))]
    return {name: _as_list(value) for name, value in tree.items()}


def messages_of(value: object) -> tuple[Message, ...]:
    """Messages in any of the usual forms, or the texts that a completion model was sent."""
    if isinstance(value, str):
        return as_messages(value) or _prompts([value] if value.strip() else [])
    inner = request_in(value)
    is_shown = isinstance(inner, str) and shown_in(inner) != inner  # a template
    if inner is not value and not is_shown:
        return messages_of(inner)
    items = list(value) if isinstance(value, (list, tuple)) else []
    return _prompts(items) or messages_in([_message(item) for item in items] or value)


PROMPTS = (
    *("prompt", "prompts", "messages", "prompt_messages", "llm_input", "user_prompt", "full_prompt"),
    "user_text",
)
"""What applications call what they send a model."""


def request_in(value: Any) -> Any:
    """What a model is sent in a request that holds more; the value itself if it is none."""
    if not isinstance(value, Mapping) or "messages" in value:
        return value
    return next((value[key] for key in (*PROMPTS, "contents", "input") if key in value), value)


def _prompts(items: list[Any]) -> tuple[Message, ...]:
    """Texts, or objects that hold nothing else, as what a user said each."""
    texts = [item.get("text") if isinstance(item, Mapping) and len(item) == 1 else item for item in items]
    found = tuple(Message("user", text) for text in texts if isinstance(text, str))
    return found if len(found) == len(items) else ()


_AS_THEY_ARE = ("type", "parts", "blocks", "kwargs")


def _message(item: object) -> object:
    """A message that was flattened as it would be otherwise: its parts, and what a function returned."""
    if not isinstance(item, Mapping) or not item.keys().isdisjoint(_AS_THEY_ARE):
        return item
    content = item.get("content") or item.get("contents")
    content = _returned(item.get("function")) if content is None else _parts(content)
    if content is None:
        return {**item, "content": []} if item.get("role") == "tool" else item
    return {**item, "role": item.get("role") or "user", "content": content}


def _parts(content: Any) -> Any:
    """The parts of a message where they were written as JSON, else the content as it is."""
    parts = decode(content)
    is_parts = isinstance(parts, list) and all(isinstance(part, Mapping) and "type" in part for part in parts)
    return parts if is_parts else content


def _returned(results: Any) -> Any:
    """What a function returned, where a message keeps it beside its content, as JSON."""
    found = [decode(result) for result in results] if isinstance(results, list) else []
    last = found[-1] if found else None
    return last.get("content") if isinstance(last, Mapping) else None


def arguments_of(value: object) -> tuple[str, ...]:
    """What a model called tools with in its reply; forms that it filled in are among them."""
    calls = [call for item in mappings_in(value) for call in mappings_in(item.get("tool_calls"))]
    given = mappings_in([call.get("function", call) for call in calls])
    texts = (one.get("arguments") for one in given)
    return (*arguments_in(value), *(text for text in texts if isinstance(text, str)))


def as_is(value: Any) -> Any:
    """A value that may look like JSON, and is read where it is used."""
    return value


def nothing(value: object) -> str:
    """No text."""
    return ""


def json_value(value: object) -> Any:
    """JSON whatever it holds, a text in quotes too."""
    if not (isinstance(value, str) and value.startswith('"')):
        return decode(value)
    found = decode(f"[{value}]")
    return value if isinstance(found, Broken) else found[0]


def text_list(value: object) -> list[str] | None:
    """The texts of a list; where it was written as one text, that is JSON, or nothing in it is escaped."""
    value = opened(value)
    if isinstance(value, (list, tuple)):
        return [text.strip() for text in value if isinstance(text, str) and text.strip()]
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text in ("", "[]"):
        return []
    if not (text.startswith('["') and text.endswith('"]')):
        return [text]
    return [part.strip() for part in _BETWEEN.split(text[2:-2]) if part.strip()]


def texts_as_messages(texts: list[str] | None) -> tuple[Message, ...]:
    """Messages without roles: the last text is taken for the user's, anything before it for the system's."""
    found = texts or []
    return tuple(Message("user" if text is found[-1] else "system", text) for text in found)


def text_as_messages(value: object) -> tuple[Message, ...]:
    """Several messages in one text: who said what is not told; only a single line is surely the user's."""
    text = value.strip() if isinstance(value, str) else ""
    return (Message("system" if "\n" in text else "user", text),) if text else ()


def gemini_messages(asked: object) -> tuple[Message, ...]:
    """The messages in a request to Gemini, which keeps its instructions apart."""
    if not isinstance(asked, Mapping):
        return ()
    config = asked.get("config")
    system = text_in(config.get("system_instruction")) if isinstance(config, Mapping) else ""
    # What tools returned is told by spans of their own.
    said = [
        Message("user", one.text) if one.role == "tool" else one for one in messages_in(asked.get("contents"))
    ]
    return (Message("system", system), *said) if system else tuple(said)


def blocks_or_text(came: object) -> str:
    """A reply in the blocks of a message, or as a text."""
    blocks = decode(came)
    if not (isinstance(blocks, list) and all(isinstance(block, Mapping) for block in blocks)):
        return answer_in(came)
    return as_messages([{"role": "assistant", "blocks": blocks}])[0].text


def asked_at_start(shown: object) -> str:
    """The question in a workflow's first event, as Python shows it."""
    found = shown_in(shown) if isinstance(shown, str) and "StartEvent(" in shown else {}
    return question_in(found) if isinstance(found, Mapping) else ""


def by_ranking(listed: object, ranking: object) -> tuple[Context, ...]:
    """Documents in the order of a ranking that names them by their index, with its scores."""
    if not isinstance(listed, (list, tuple)) or not isinstance(ranking, (list, tuple)):
        return ()
    texts = ["\n".join(texts_of(json_value(item))) for item in listed]
    found: list[Context] = []
    for entry in map(json_value, ranking):
        index = entry.get("index") if isinstance(entry, Mapping) else None
        if isinstance(index, int) and 0 <= index < len(texts):
            score = entry.get("relevanceScore")
            number = float(score) if isinstance(score, (int, float)) and abs(score) < 2**63 else None
            found.append(Context(text=texts[index], score=number))
    return tuple(found)


def last_reply(came: object) -> str:
    """The last of a model's replies; one that was flattened may hold its parts, or its own words, as JSON."""
    last = came[-1] if isinstance(came, list) and came else None
    if not (isinstance(last, Mapping) and "content" in last):
        return answer_in(came) or form_in(came)
    said = _parts(last["content"])
    return answer_in(Words(said) if isinstance(said, str) else said)


def asked_by_user(given: object) -> str:
    """The user's last words in what a step was given."""
    return next(reversed(spoken(messages_of(given))), "")


def asked_in_state(given: object) -> str:
    """What a graph's state asks, which stands as JSON in a message of the user's."""
    return question_in(asked_by_user(given))


def out_of_message(given: Any, came: Any) -> tuple[Any, Any]:
    """What a tool returned, out of the last of the messages that tell it."""
    messages = decode(came)
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not (isinstance(last, Mapping) and "role" in last):
        return given, came
    parts = last.get("parts")
    part = parts[-1] if isinstance(parts, list) and parts else None
    return given, part.get("response", part.get("content")) if isinstance(part, Mapping) else last.get(
        "content"
    )


def out_of_output(given: Any, came: Any) -> tuple[Any, Any]:
    """An output without the object that may be put around it."""
    return given, came["output"] if isinstance(came, Mapping) and set(came) == {"output"} else came


def out_of_run(given: Any, came: Any) -> tuple[Any, Any]:
    """What a run was given and returned, without what stands beside it; of a stream its output tells both."""
    inputs, outputs = given, came
    if isinstance(came, Mapping):
        outputs = came.get("outputs", came.get("output", came))
    if isinstance(given, Mapping):
        inputs = given.get("inputs", _without_templates(given))
        late = came.get("kwargs") if isinstance(came, Mapping) else None
        # LangChain gives this to a run's tracer at its start if the input is a stream.
        if inputs == {"input": ""} and isinstance(late, Mapping):
            inputs = late.get("inputs", inputs)
    # A text may look like JSON, and is what was said.
    is_inner = (
        isinstance(inputs, str) and inputs is not given,
        isinstance(outputs, str) and outputs is not came,
    )
    return Words(inputs) if is_inner[0] else inputs, Words(outputs) if is_inner[1] else outputs


def _without_templates(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without LlamaIndex's templates; what these hold was bound before anything was found."""
    return {
        name: _without_templates(value) if isinstance(value, Mapping) else value
        for name, value in given.items()
        if not (isinstance(value, Mapping) and "template_vars" in value)
    }


def is_reranking(given: object, came: object) -> bool:
    """Whether nodes went in and came out."""
    return isinstance(given, Mapping) and "nodes" in given and _is_found(came)


def is_look_up(given: object, came: object) -> bool:
    """Whether a query went in and documents came out."""
    queries = ("query", "qb", "str_or_query_bundle", "query_bundle")
    return isinstance(given, Mapping) and not given.keys().isdisjoint(queries) and _is_found(came)


def _is_found(came: object) -> bool:
    return isinstance(came, list) and (not came or bool(documents_in(came)))


def is_model_call(given: object, came: object) -> bool:
    """Whether messages went in or a model's reply came out; LangChain gives a step its messages as inputs."""
    replied = isinstance(came, Mapping) and "raw" in came and not came.keys().isdisjoint(("message", "text"))
    fields = given if isinstance(given, Mapping) else {}
    messages = fields.get("messages")
    return replied or ("inputs" not in fields and isinstance(messages, list) and bool(messages_in(messages)))


def sent_to_model(given: object) -> tuple[Message, ...]:
    """What a model's method was called with: messages, or a prompt."""
    if not isinstance(given, Mapping) or "messages" in given:
        return messages_in(given.get("messages")) if isinstance(given, Mapping) else ()
    args = given.get("args")
    text = given.get("prompt") or (args[0] if isinstance(args, list) and args else None)
    return messages_of(text) if isinstance(text, str) else ()


def documents_returned(given: object, came: object) -> tuple[Context, ...]:
    """Documents, or whatever a retriever by hand returned: texts, or objects with a text."""
    return documents_in(came) or (retrieved_in(came) if isinstance(came, (list, tuple, Mapping)) else ())


def noted_on(span: Span, came: object) -> tuple[str, ...]:
    """What an application noted by hand about a retrieval; whether it counts is a matter of the prompt."""
    return _noted(span, map(span.attributes.get, ("retrieval.documents", "retrieval.context")))


def noted_of_look_up(span: Span, came: object) -> tuple[str, ...]:
    """The same of what it noted on a retrieval: in its output, its events, under a name of its own."""
    own = (value for name, value in span.attributes.items() if not name.startswith(_NAMED))
    return _noted(span, [came, *(v for event in span.events for v in event.attributes.values()), *own])


_NAMED = ("input.", "output.", "openinference.", "session.", "user.", "metadata", "tag.", "llm.")
"""How the convention's other attributes begin."""


def _noted(span: Span, told: Iterable[object]) -> tuple[str, ...]:
    if span.scope.startswith("openinference.instrumentation.langchain"):
        return ()
    texts = (one for value in told if value for one in (*noted_in(value), *_leaves_of(value)))
    return tuple(dict.fromkeys(text for text in texts if is_telling(text)))


def _leaves_of(value: object) -> list[str]:
    """The texts in an object that was written as JSON, whatever they are called."""
    found = opened(value)
    return [text for _, text in strings_in(found)] if isinstance(found, Mapping) else []


def filled_in(variables: Mapping[str, str], given: object) -> Mapping[str, str]:
    """The variables that a run of a template was given: the instrumentor adds those that the template had."""
    if isinstance(given, Mapping):
        return {name: value for name, value in variables.items() if name in given}
    return {name: value for name, value in variables.items() if value == given} or variables


def unbound(variables: Mapping[str, str], given: object) -> Mapping[str, str]:
    """The variables without those that LlamaIndex's template had before anything was found for it."""
    prompt = given.get("prompt") if isinstance(given, Mapping) else None
    shown = read_shown(prompt[:MOST]) if isinstance(prompt, str) and "template_vars=" in prompt else None
    bound = shown.get("kwargs") if isinstance(shown, Mapping) else None
    if not isinstance(bound, Mapping):
        return variables
    keeps = (name for name in variables if name not in bound or name in ASKED_NAMES or names_passages(name))
    return {name: variables[name] for name in keeps}
