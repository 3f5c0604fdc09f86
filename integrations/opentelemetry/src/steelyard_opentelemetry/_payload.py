"""Finding the question and the answer in whatever a framework was called with and gave back.

Whether any of it was cut at a length limit, nothing that is exported says. An SDK with
`OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT`, or a backend, cuts every text at the same length. So the longest
texts of a turn are then equally long, or what should be JSON ends in its middle, or the longest one breaks
off where another text goes on.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.recording.provenance import finds_nothing, strip_code_fence
from steelyard.recording.reading import (
    ANSWERS,
    ASKED_NAMES,
    DOCUMENT_TEXTS,
    Message,
    asked_in,
    has_history,
    messages_in,
    read_shown,
)
from steelyard_opentelemetry._span import Span

MOST = 2_000_000
"""Characters of a JSON attribute that are parsed; a longer one is named as unreadable."""

_DEPTH = 6
_SAID = frozenset(("text", "content", *DOCUMENT_TEXTS, *ASKED_NAMES)) - {"inputs"}
"""Fields whose texts are words, even if they look like JSON."""
_ASKED = "str_or_query_bundle"
"""LlamaIndex's field for the user's words, or for an object that holds them."""
_LISTS = ("documents", "docs", "nodes", "source_nodes", "results", "matches", "outputs", "output")
_ANSWERS = (
    *ANSWERS,
    *("text", "content", "outputs", "message", "response_txt", "choices", "candidates"),
)
_AROUND = ("tool_calls", "function_call", "generations", "usage", "id", "error")
"""What clients put beside a reply."""
_ENCODED = re.compile(r'^\s*(?:\{\s*(?:"|\})|\[\s*(?:[\[{"\]]|-?\d))')
_SHOWN = re.compile(r"[A-Za-z_][\w.]{0,80}(?:=(?![=\s])|\()")
_OBJECT = re.compile(r"(?:<[\w.<> ]{1,200} at 0x[0-9a-fA-F]{1,16}>|[A-Z]\w{1,60}\(\)|null|None)\Z")
_UNSHOWN = re.compile(
    r"^(?:<[\w ]*generator|<[\w.<>]+ object|<coroutine|None$|null$"
    r"|\[?<?[A-Z]\w*\((?:\w+=[\s\S]*)?(?:\)>?\]?|\.\.\.)$)"
)
_LITERAL_LENGTH = 5  # of `false`, which may be cut
_LITERAL = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_STOP = re.compile(rf"^\w*StopEvent\(result=(?:\w+\(response=)?{_LITERAL}")


@dataclass(frozen=True, slots=True)
class Broken:
    """A value that should have been JSON and could not be read."""

    cause: str
    """`invalid_json` or `oversized`."""


class Words(str):
    """A text that an instrumentor says is plain: what looks like JSON in it was typed by somebody."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} characters>"


def decode(value: object) -> Any:
    """What an attribute says: JSON decoded where it is JSON, a Broken where it only looks like it."""
    if not isinstance(value, str):
        return _objects(value)
    if _OBJECT.match(value):
        return ""  # nothing, or an object that does not say what it holds
    if isinstance(value, Words):
        return value
    if not _ENCODED.match(value):
        return value
    if len(value) > MOST:
        return Broken("oversized")
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        # What was cut is wrong where it ends. Anything else was never meant to be JSON.
        is_cut = error.msg.startswith("Unterminated") or error.pos >= len(value.rstrip()) - _LITERAL_LENGTH
        return Broken("invalid_json") if is_cut and error.msg != "Extra data" else value
    except (ValueError, RecursionError):
        return Broken("invalid_json")


def _objects(value: object) -> Any:
    """The objects of an attribute that lists them, each as JSON; anything else as it is."""
    if not isinstance(value, (list, tuple)) or not value:
        return value
    is_each = all(isinstance(one, str) and one[:1] == "{" for one in value)
    return list(map(opened, value)) if is_each else value


def opened(value: object) -> Any:
    """JSON as what it holds; what only looks like JSON, and what looks so inside of it, stays a text."""
    found = decode(value)
    return value if isinstance(found, Broken) else found


def loaded(value: object, shown: Sequence[str] = (), depth: int = _DEPTH) -> Any:
    """A payload with the JSON, and what Python shows of objects, in its fields read too; None if broken.

    Args:
        value: What an attribute says.
        shown: Texts that are known to be words, such as prompts. What looks like JSON and stands there as it
            is was typed by somebody, or is a passage, and stays a text.
        depth: How deep to read.
    """
    if isinstance(value, str) and _ENCODED.match(value) and any(value.strip() in one for one in shown):
        return Words(value)
    found = decode(value)
    if isinstance(found, Broken):
        return None
    if depth <= 0 or not isinstance(found, (Mapping, list)):
        return found
    if isinstance(found, list):
        return [_field(item, shown, depth - 1) for item in found]
    return {
        key: item if _is_said(key, item) else _field(item, shown, depth - 1) for key, item in found.items()
    }


def _is_said(key: object, value: object) -> bool:
    return key in _SAID or (key == _ASKED and isinstance(value, str) and not _SHOWN.match(value))


def shown_in(value: str) -> Any:
    """The fields of an object that a text shows as Python does; the text itself if it shows none."""
    if not _SHOWN.match(value):
        return value
    if value.endswith("()"):
        return None  # an object that only names itself
    found = read_shown(value[:MOST])
    return found if isinstance(found, Mapping) and found else value


def _field(value: object, shown: Sequence[str], depth: int) -> Any:
    if not isinstance(value, str) or not _SHOWN.match(value):
        return loaded(value, shown, depth)
    found = shown_in(value)
    # AutoGen's messages say who speaks under this name.
    is_said = isinstance(found, Mapping) and {"source", "content"} <= found.keys()
    return {"role": found["source"], **found} if is_said else found


def question_in(value: object) -> str:
    """The user's question in an input payload; nothing where none is found."""
    return asked_in(loaded(value))


def is_conversation(value: object) -> bool:
    """Whether an input payload holds an earlier exchange."""
    value = decode(value)
    return not isinstance(value, Broken) and has_history(value)


def is_empty(value: object, depth: int = 3) -> bool:
    """Whether a retrieval's output is there and holds nothing: an empty list, or words that say so."""
    value = decode(value)
    if isinstance(value, str):
        return finds_nothing(value)
    if isinstance(value, (list, tuple)):
        return not value or (len(value) == 1 and isinstance(value[0], (list, tuple)) and not value[0])
    if not isinstance(value, Mapping) or depth <= 0:
        return False
    return any(is_empty(value[key], depth - 1) for key in _LISTS if key in value)


def answer_in(value: object, depth: int = _DEPTH) -> str:
    """The answer in an output payload; nothing where none is found."""
    # A text within an object is what was said, whatever it looks like.
    value = decode(value) if depth == _DEPTH else value
    if depth <= 0 or isinstance(value, Broken):
        return ""
    if isinstance(value, str):
        return _answer_text(value)
    messages = messages_in(value)
    if messages:
        return messages[-1].text if messages[-1].role == "assistant" else ""
    if isinstance(value, Mapping):
        keys = ("generations",) if "generations" in value else _ANSWERS
        found = (answer_in(value[key], depth - 1) for key in keys if key in value)
        return next(filter(None, found), "")
    return answer_in(value[0], depth - 1) if isinstance(value, Sequence) and len(value) == 1 else ""


def form_in(value: object) -> str:
    """A form that a model filled in, as JSON; nothing for what a client puts around a reply."""
    is_form = isinstance(value, Mapping) and value.keys().isdisjoint((*_ANSWERS, *_AROUND))
    return json.dumps(value, ensure_ascii=False) if value and is_form else ""


def answer_in_form(text: str) -> str:
    """The field of a model's JSON that is named as the answer; the whole text if there is none."""
    found = decode(form) if (form := strip_code_fence(text)).startswith("{") else None
    fields = found if isinstance(found, Mapping) else {}
    return next((said for key in ANSWERS if (said := answer_in(fields.get(key, "")))), text)


def shows_object(value: object) -> bool:
    """Whether a text is what Python shows of an object or a list of them, and cannot be read as one."""
    return isinstance(value, str) and _UNSHOWN.match(value.strip()) is not None


def _answer_text(value: str) -> str:
    text = value.strip()
    stop = _STOP.match(text)
    if stop:
        return str(read_shown(stop[1])).strip()
    shown = shown_in(text) if text.startswith("StopEvent(result=") else None
    if isinstance(shown, Mapping) and isinstance(results := shown["result"], list):
        # Of several, as of an answer and its sources, the only one that is there.
        said = [one.strip() for one in results if isinstance(one, str) and one.strip()]
        return said[0] if len(said) == 1 else ""
    # Anything else that shows an object rather than a text: the model's own words are found elsewhere.
    return "" if shows_object(text) else text


def squeezed(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


def mappings_in(value: object) -> list[Mapping[str, Any]]:
    """The objects of what should be a list of objects."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, (list, tuple)) else []


def as_messages(value: object) -> tuple[Message, ...]:
    """The chat messages in a payload that may be JSON."""
    found = decode(value)
    return () if isinstance(found, Broken) else messages_in(found)


_SHORTEST = 16
_ENDS = tuple(".!?\u3002\uff01\uff1f\u061f:;\"'`)]}>\u201d\u2019\u00bb*|")
_TAIL = 200
_LAST, _LEAST = 24, 8


@dataclass(frozen=True, slots=True, repr=False)
class Cut:
    """The texts that were cut, and where."""

    length: int = 0
    """At how many characters; 0 where nothing was cut."""
    texts: tuple[str, ...] = ()
    """The cut texts."""

    def ends(self, text: str) -> bool:
        """Whether a text is one of those that were cut, or the end of one."""
        tail = text.strip()[-_TAIL:]
        return bool(tail) and any(cut.rstrip().endswith(tail) for cut in self.texts)


def find_cut(spans: Sequence[Span]) -> Cut:
    """Look at the texts of some spans of one process."""
    every = dict.fromkeys(itertools.chain.from_iterable(map(_texts, spans)))
    limits = {span.limit for span in spans}
    if None not in limits:
        known = tuple(text for text in every if len(text) in limits)
        return Cut(max(map(len, known)), known) if known else Cut()
    length = max(map(len, every), default=0)
    texts = tuple(text for text in every if len(text) == length)
    return Cut(length, texts) if length >= _SHORTEST and _is_cut(texts, length, every) else Cut()


def _is_cut(texts: Sequence[str], length: int, every: Iterable[str]) -> bool:
    if length <= MOST and any(isinstance(decode(text), Broken) and not _is_closed(text) for text in texts):
        return True
    open_ended = [text for text in texts if not text.rstrip().endswith(_ENDS)]
    if not open_ended:
        return False
    return len(texts) > 1 or any(_goes_on(open_ended[0], text) for text in every)


def _is_closed(text: str) -> bool:
    """Whether a list or an object ends as it began: what is not JSON then was never meant to be."""
    shown = text.strip()
    return (shown[:1], shown[-1:]) in (("[", "]"), ("{", "}"))


def _goes_on(text: str, other: str) -> bool:
    """Whether another text holds how this one ends, and goes on in the same line."""
    line = text[text.rfind("\n") + 1 :].lstrip()[-_LAST:]
    at = other.find(line) if len(line) >= _LEAST and other != text else -1
    rest = other[at + len(line) : at + len(line) + 2] if at >= 0 else ""
    return rest[:1].isalnum() or (rest[:1] == " " and rest[1:].isalnum())


def _texts(span: Span) -> Iterator[str]:
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        for value in attributes.values():
            items = value if isinstance(value, (list, tuple)) else (value,)
            yield from (item for item in items if isinstance(item, str))
