"""Chat messages, in the many shapes that frameworks and conventions give them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from steelyard.record import text_of
from steelyard.recording.reading._shapes import attribute, state_of, strings_in

Role = Literal["system", "user", "assistant", "tool"]

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer", "systemmessage"), "system"),
    **dict.fromkeys(("user", "human", "humanmessage", "humanmessagechunk"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "chatbot", "aimessage", "aimessagechunk"), "assistant"),
    **dict.fromkeys(("tool", "function", "toolmessage", "functionmessage", "tool_result"), "tool"),
}
_TOOLS = re.compile(r"tool|function|observation|ipython|environment")
_TEXTS = ("text", "content", "response", "result", "toolResult")
_RETURNED = ("toolResponse", "functionResponse", "function_response", "tool_response", "tool_call_result")
"""Parts that messages of Gemini, Genkit and Haystack have for what a tool returned."""
_RESULTS = frozenset(("tool_result", "tool-result", "tool_call_response", "function_call_output"))
"""Kinds of parts that hold what a tool returned, in messages of whatever role."""
_FILES = ("document", "file")
"""Kinds of parts that may hold a whole document as text."""
_UNSAID = frozenset(
    (
        *("reasoning", "reasoning_content", "thinking", "redacted_thinking", "thought"),
        *("blob", "uri", "file", "file_data", "input_file", "image", "image_url", "input_image", "media"),
        *("audio", "input_audio", "video", "binary", "inline_data"),
    )
)
"""Kinds of parts that are not words of the message: what a model thought, and media."""
_CORRECTION = re.compile(
    r"Validation (?:feedback|errors? found):\n|Correct your JSON ONLY RESPONSE|\d{1,4} validation errors?\b",
    re.IGNORECASE,
)
_TRY_AGAIN = "Fix the errors and try again."
"""What pydantic-ai and Instructor say in the user's place where a reply was not of the form asked for."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    """Who said it."""
    text: str = field(repr=False)
    """What was said, without tool calls and media."""
    result: Any = field(default=None, compare=False, repr=False)
    """What a tool returned, as it stands in its message."""
    tool: str = field(default="", compare=False)
    """Name of the tool that returned it, where the conversation tells it."""
    calls: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """The tool calls in it, as they stand there."""
    failed: bool = field(default=False, compare=False)
    """Whether it is a tool's, which says that it failed."""
    documents: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The texts of the documents among its parts; they stand in its text, too."""

    @property
    def words(self) -> str:
        """Its text without the documents."""
        text = self.text
        for document in self.documents:
            text = text.replace(document, "", 1)
        return text.strip()


def spoken(messages: Iterable[Message]) -> list[str]:
    """What the user said, without what a framework says in the user's place or puts around it."""
    texts = [message.words for message in messages if message.role == "user" and message.words]
    own = [text for text in texts if not (_CORRECTION.match(text) or text.rstrip().endswith(_TRY_AGAIN))]
    return list(map(_own_words, own or texts))


_AROUND = (
    ("<task>", "<instructions>", "</instructions>"),
    ("Current state:\n", "\n\nCurrent message:\n", "\0"),
)
"""What Marvin and LlamaIndex's agents put around the user's words: how it begins, and its marks."""


def _own_words(text: str) -> str:
    """What was asked, without what a framework puts around it."""
    for head, before, after in _AROUND:
        told = text.partition(before)[2].partition(after)[0].strip()
        if told and text.lstrip().startswith(head):
            return told
    return text


def messages_in(value: object) -> tuple[Message, ...]:
    """The messages of a conversation: a list of them, or an object that holds one under `messages`.

    An empty tuple means that the value is not a conversation.
    """
    # Most values are texts, and asking whether something is a Mapping is slow.
    if value is None or isinstance(value, (str, bytes, int, float)):
        return ()
    if isinstance(value, Mapping):
        return messages_in(value.get("messages", [value]))
    if not isinstance(value, Sequence):
        return _in_object(value)
    if isinstance(value, tuple) and (pair := _pair(value)) is not None:
        return (pair,)
    if len(value) == 1 and isinstance(value[0], list) and _pair(value[0]) is None:
        return messages_in(value[0])
    return _in_list(value)


def _in_list(items: Sequence[Any]) -> tuple[Message, ...]:
    value = [_as_mapping(item) or item for item in items]
    known = [_message(item) for item in value]
    if not any(known):
        return ()
    # Frameworks have roles of their own, such as smolagents' `tool-response`.
    found = [message or _of_own_role(item) for message, item in zip(known, value, strict=True)]
    messages = tuple(map(_as_result, (None, *found), filter(None, found)))
    return _with_tools(messages, value) if len(messages) == len(found) else ()


def _as_result(before: Message | None, message: Message) -> Message:
    """A message as a tool's, if the user seems to say it right after a model called tools."""
    is_result = message.role == "user" and before is not None and bool(before.calls) and not before.text
    return replace(message, role="tool", result=message.text) if is_result else message


def earlier_messages(value: object, depth: int = 4) -> list[str]:
    """What was said in a conversation before the user's last words, wherever an input keeps it."""
    messages = messages_in(value)
    if messages:
        before = messages[: len(messages) - len(since_last_asked(messages))]
        return [one.text for one in before if one.text and one.role != "tool"]
    state = state_of(value) if depth > 0 else None
    found: list[str] = []
    for name, part in (state or {}).items():
        if _is_history(name):
            found += (text for _, text in strings_in(part))  # pairs of question and answer among them
        told = messages_in(part) if isinstance(part, (list, tuple)) else ()
        found += [one.text for one in told if one.text] or earlier_messages(part, depth - 1)
    return found


def since_last_asked(messages: Sequence[Message]) -> list[Message]:
    """What follows the user's last words, with those words; what is before belongs to earlier turns."""
    last = max((at for at, one in enumerate(messages) if one.role == "user"), default=0)
    return list(messages[last:])


def has_history(value: object) -> bool:
    """Whether an input holds an earlier exchange: messages before the user's last, or a named history."""
    state = state_of(value)
    named = any(_is_history(name) and item for name, item in (state or {}).items())
    return named or bool(earlier_messages(value))


def _is_history(name: object) -> bool:
    return "history" in str(name).lower()


def _in_object(value: object) -> tuple[Message, ...]:
    """A message object, or one that holds a list of them: a state, a prompt value."""
    if (one := _message(value)) is not None:
        return (one,)
    state = state_of(value)
    inner = state.get("messages") if state is not None else attribute(value, "messages")
    return messages_in(inner) if isinstance(inner, (list, tuple)) else ()


def _with_tools(messages: tuple[Message, ...], value: Sequence[Any]) -> tuple[Message, ...]:
    """The messages, those of tools with the names under which they were called."""
    if not any(message.role == "tool" for message in messages):
        return messages
    names = {key: name for item in value for key, name in _calls_in(item)}
    return tuple(
        replace(message, tool=_tool_of(item, names)) if message.role == "tool" else message
        for message, item in zip(messages, value, strict=True)
    )


def _calls_in(message: object) -> Iterator[tuple[str, str]]:
    """Id and tool of each call in a message, be they a field of it or parts of its content."""
    if not isinstance(message, Mapping):
        return
    for place in ("tool_calls", "parts", "content"):
        calls = message.get(place)
        for call in calls if isinstance(calls, (list, tuple)) else ():
            if not isinstance(call, Mapping) or _is_result(call):
                continue
            function = call.get("function")
            name = call.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
            key = call.get("id") or call.get("call_id") or call.get("tool_call_id")
            if isinstance(name, str) and isinstance(key, str):
                yield key, name


def _tool_of(message: object, names: Mapping[str, str]) -> str:
    """The tool whose result a message is: as it says itself, else by the id of the call."""
    if not isinstance(message, Mapping):
        return ""
    inner = next((p for key in ("parts", "content") if isinstance(p := message.get(key), list)), [])
    places = [message, *(part for part in inner if isinstance(part, Mapping))]
    told = (place.get(key) for place in places for key in ("name", "tool_name"))
    ids = (place.get(key) for place in places for key in ("tool_call_id", "tool_use_id", "call_id", "id"))
    called = (names[key] for key in ids if isinstance(key, str) and key in names)
    return next((name for name in (*told, *called) if isinstance(name, str) and name), "")


def arguments_in(value: object, depth: int = 4) -> tuple[str, ...]:
    """The arguments of the tool calls in some messages, each as JSON."""
    if isinstance(value, (list, tuple)) and depth > 0:
        return tuple(text for item in value for text in arguments_in(item, depth - 1))
    if not isinstance(value, Mapping) or depth <= 0:
        return ()
    if value.get("type") == "tool_call" and "arguments" in value:
        given = value["arguments"]
        return (given if isinstance(given, str) else json.dumps(given, default=str),)
    return arguments_in(value.get("parts"), depth - 1)


def _message(value: object) -> Message | None:
    if isinstance(value, (list, tuple)):
        return _pair(value)
    if not isinstance(value, Mapping):
        said = _as_mapping(value)
        return None if said is None else _message(said)
    inner = value.get("kwargs", value.get("data"))
    if isinstance(inner, Mapping) and "content" in inner:
        # LangChain's two serialised forms: {"lc": 1, "kwargs": {...}} and {"type": "ai", "data": {...}}.
        return _message({"type": _class_of(value) or value.get("type"), **inner})
    role = _role(value.get("role")) or _role(value.get("type"))
    return None if role is None else _said_by(role, value)


def _said_by(role: Role, value: Mapping[Any, Any]) -> Message:
    key = next((key for key in ("content", "parts", "blocks") if key in value), "content")
    role, content = _without_results(role, value.get(key))
    calls = value.get("tool_calls")
    return Message(
        role,
        text_of(text_in(content)),
        value.get("result", _returned_in(content)) if role == "tool" else None,
        calls=tuple(calls) if isinstance(calls, (list, tuple)) else (),
        failed=role == "tool" and value.get("status") == "error",
        documents=tuple(_documents(content)) if isinstance(content, list) else (),
    )


def _documents(content: Sequence[object]) -> Iterator[str]:
    for part in content:
        if isinstance(part, Mapping) and part.get("type") in _FILES and (text := text_in(part)):
            yield text


def _as_mapping(value: object) -> dict[str, Any] | None:
    """A message object of LangChain, LlamaIndex or a client, as the mapping that it would be."""
    if isinstance(value, (str, bytes, int, float, Mapping, list, tuple)) or value is None:
        return None
    content = attribute(value, "content")
    if not isinstance(content, (str, list)):
        return None
    role = attribute(value, "role") or attribute(value, "type")
    role = getattr(role, "value", role)
    if not isinstance(role, str):
        return None
    said = {"role": role, "content": content}
    # Asking a pydantic object for what it lacks is slow, and a person's message has none of these.
    if _role(role) == "assistant":
        said["tool_calls"] = attribute(value, "tool_calls")
    elif _role(role) == "tool":
        result = attribute(value, "artifact")
        said |= {key: attribute(value, key) for key in ("status", "name", "tool_call_id")}
        said["result"] = content if result is None else result
    return said


def _without_results(role: Role, content: object) -> tuple[Role, object]:
    """Who says a content: some providers put what a tool returned into the user's or the model's mouth."""
    if not isinstance(content, list):
        return role, content
    if role == "assistant":
        return role, [part for part in content if not _is_result(part)]
    said_by_tool = role == "user" and content and all(map(_is_result, content))
    return ("tool" if said_by_tool else role), content


def _class_of(value: Mapping[str, Any]) -> str:
    """The class that LangChain names in a serialised message; in JavaScript nothing else says who speaks."""
    path = value.get("id")
    name = path[-1] if value.get("lc") and isinstance(path, list) and path else ""
    return name if isinstance(name, str) else ""


def _of_own_role(value: object) -> Message | None:
    """A message whose role no convention has: of a tool if it says so, else not anybody's words."""
    role = value.get("role") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(role, str) or not role:
        return None
    kind = "assistant" if role.endswith("call") else "tool" if _TOOLS.search(role.lower()) else "system"
    return _message({**value, "role": kind})


def _pair(value: Sequence[Any]) -> Message | None:
    if len(value) != 2 or not isinstance(value[1], str):
        return None
    role = _role(value[0])
    return Message(role, value[1]) if role else None


def _role(value: object) -> Role | None:
    # Enums are shown with their class: `ChatRole.USER`.
    return _ROLES.get(value.rpartition(".")[2].lower()) if isinstance(value, str) else None


def _is_result(part: object) -> bool:
    """Whether a part of a message is what a tool returned."""
    return isinstance(part, Mapping) and (
        part.get("type") in _RESULTS or any(isinstance(part.get(key), Mapping) for key in _RETURNED)
    )


def _returned_in(content: object) -> object:
    """What the only part of a tool's message says was returned; any other content as it is."""
    if not isinstance(content, list) or len(content) != 1 or not _is_result(content[0]):
        return content
    value = _result_of(content[0])
    return content if value is None else value


def _result_of(part: Mapping[str, Any]) -> Any:
    inner = next((found for key in _RETURNED if isinstance(found := part.get(key), Mapping)), part)
    value = next((inner[key] for key in ("response", "output", "result", "content") if key in inner), None)
    if isinstance(value, Mapping) and value.keys() == {"type", "value"}:
        value = value["value"]  # the AI SDK says what form it has
    return value


def _result_text(part: Mapping[str, Any]) -> str:
    """What a tool returned, as the model was shown it: the usual text of its parts, else every text."""
    value = _result_of(part)
    return text_in(value) or "\n".join(texts_of(value)).strip()


def texts_of(value: object, depth: int = 6) -> list[str]:
    """Every text in a tool's result, as the model was shown it."""
    if isinstance(value, str):
        return [value]
    if depth <= 0 or not isinstance(value, (list, tuple, Mapping)):
        return []
    items = value.values() if isinstance(value, Mapping) else value
    return [text for item in items for text in texts_of(item, depth - 1)]


def text_in(content: object) -> str:
    """The text of a message's content: a string, or the texts among its parts."""
    if isinstance(content, str):
        return content.strip()
    if isinstance(content, Mapping):
        kind = str(content.get("type") or content.get("block_type") or "")
        told = _of_document(content, kind)
        if kind.endswith(("tool_call", "tool_use")) or (kind in _UNSAID and told is content):
            return ""
        if _is_result(content):
            return _result_text(content)
        return next((text for key in _TEXTS if (text := text_in(told.get(key)))), "")
    if isinstance(content, Sequence) and not isinstance(content, (bytes, bytearray)):
        return "\n".join(filter(None, map(text_in, content)))
    return ""


def _of_document(content: Mapping[Any, Any], kind: str) -> Mapping[Any, Any]:
    """A part, or the text of a document in it: in a source, or in a file that is said to be of text."""
    source = content.get("source", content) if kind in _FILES else {}
    media = str(content.get("mediaType") or content.get("mime_type") or "")
    if not isinstance(source, Mapping):
        return content
    data = source.get("data") or source.get("content")
    if source.get("type") in ("text", "content"):
        return {"text": data}
    return {"text": _unencoded(data)} if media.startswith("text/") else content


def _unencoded(data: Any) -> Any:
    """A file's text, which clients may send in base64."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except (TypeError, ValueError):
        return data
