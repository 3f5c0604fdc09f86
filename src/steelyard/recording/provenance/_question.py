"""What the user asked, out of whatever the root of a turn was given."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.record import text_of
from steelyard.recording.provenance._notes import Note
from steelyard.recording.provenance._prompt import QUESTION_WORDS, is_title
from steelyard.recording.provenance._words import words
from steelyard.recording.reading._literals import read_shown

MOST_INPUT = 1_000_000
"""Characters of a serialised input that are parsed; a longer one is not a question either."""

_DEPTH = 8  # serialised inputs nest; deeper than this only cycles and hostile values go
# In this order: what says "question" itself comes before words that any program uses.
_QUESTIONS = (
    *(
        "question",
        "user_question",
        "user_query",
        "user_input",
        "user_msg",
        "user_message",
        "query",
        "query_str",
    ),
    *("input", "task", "message", "prompt", "search_query", "inputs", "user_prompt", "msg", "q", "ask"),
)
_MESSAGES = ("messages", "input_messages", "chat_messages", "new_message", "conversation", "contents")
_WRAPPERS = (
    *("str_or_query_bundle", "query_bundle", "qb", "args", "kwargs", "start_event", "ev", "event", "state"),
    *("request", "body", "payload", "values", "data", "arguments", "parameters", "params"),
)
_USER = frozenset(("user", "human", "humanmessage", "humanmessagechunk", "messagerole.user"))
_MODEL = frozenset(
    ("assistant", "ai", "model", "chatbot", "aimessage", "aimessagechunk", "messagerole.assistant")
)
_OTHER = frozenset(
    ("system", "developer", "tool", "function", "systemmessage", "toolmessage", "messagerole.system")
)
_PREFIXES = ("New task:", "Current Task:", "Task:", "User:", "Human:", "Question:", "Query:")
_EXPECTED = "This is the expected criteria for your final answer:"
"""Where CrewAI's own words begin, below a task."""
_SLOT = re.compile(
    r"\{\{? ?(?:context|question|query|input|documents|chat_history|context_str|query_str)[\w.]{0,40} ?\}"
)
_UNSHOWN = re.compile(r"<[\w. ]{1,200}(?:generator|object|function|coroutine)\b|[A-Za-z_][\w.]{0,80}\(\)\Z")
_SHOWN = re.compile(r"[A-Za-z_][\w.]{0,80}\(")
_OBJECT = re.compile(r"[A-Za-z_][\w.]{0,80}\([A-Za-z_]\w{0,80}=")
_NAMED = re.compile(
    rf"[ \t]{{0,8}}(?:(?:user )?(?:question|query|q)|{QUESTION_WORDS})[ \t]{{0,2}}[:\uff1a]"
    r"[ \t]{0,4}(\S.*)",
    re.IGNORECASE,
)
_LED_IN = re.compile(r"[^:\n]{0,120}\b(?:question|query)\b[^:\n]{0,80}:[ \t]{0,4}(\S.*)", re.IGNORECASE)
_SPOKEN = re.compile(r"[ \t]{0,8}(?:human|user)[ \t]{0,2}:[ \t]{0,4}(\S.*)", re.IGNORECASE)
_CUE = re.compile(
    r"[ \t]{0,8}(?:ai|assistant|bot|(?:helpful )?answer|response)[ \t]{0,2}:?[ \t]*", re.IGNORECASE
)
_PRESENTED = re.compile(
    r"[ \t]{0,8}(?:here(?:'s| is)|this is|answer|given)"
    r"(?: (?:an?|the|my|this|following|user(?:'s)?|current|latest|original)){0,4} (?:question|query)"
    r"[ \t]{0,2}:[ \t]{0,4}(\S.*)",
    re.IGNORECASE,
)
_FIELDS = re.compile(r"[a-z_]\w{0,40}=(?:['\"]|None|[\d\[{])")
_SAID = re.compile(r"(?<!\S)(?:content|text)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_BY_USER = re.compile(r"(?<!\S)(?:source|role)=(?:<[\w.]{1,40}: )?'(?:user|human)'")
_OWN_NAME = re.compile(
    r"(?:current|initial|original|user|users|customer|client|human|raw|latest|new|incoming|research|chat)_"
    r"(?:question|query|request|message|msg|input|text)",
    re.IGNORECASE,
)
"""Names that applications make for what the user said; `sql_query` and `search_query` are not among them."""
_INVENTED_WORDS = 40  # longer texts that a model wrote to search with are passages (HyDE), not questions
_FIRST_LINES = 8  # a question above its passages stands at the top, after at most an instruction


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a turn was asked."""

    question: str = field(repr=False)
    """The user's own words; empty where they were not found."""
    standalone: str | None = field(default=None, repr=False)
    """The form that stands without the conversation, where one was made."""
    notes: tuple[Note, ...] = ()
    """`question_unknown` or `question_rewritten_only`."""


def user_question(
    candidates: Iterable[object],
    *,
    queries: Sequence[str] = (),
    replies: Iterable[str] = (),
    in_conversation: bool | None = None,
) -> Asked:
    """Find what the user asked.

    Args:
        candidates: Inputs in which it may stand, the most trusted first: the root's input value, its
            messages, those of the steps below. Text, JSON, mappings, message lists, and what Python shows of
            them are all read.
        queries: What retrievers were asked, in order.
        replies: What models replied; a text that a model wrote is not what the user asked.
        in_conversation: Whether there was an earlier exchange; None to see it from the candidates.

    Example:
        >>> user_question([{"index": "VectorStoreIndex(...)", "query": "How tall is it?"}]).question
        'How tall is it?'
        >>> history = [("user", "Who built it?"), ("assistant", "Eiffel."), ("user", "When?")]
        >>> asked = user_question([history], queries=["When did Eiffel build it?"])
        >>> asked.question, asked.standalone
        ('When?', 'When did Eiffel build it?')
    """
    given = list(candidates)
    written = {tuple(words(reply)) for reply in replies}
    texts = [question_in(candidate) for candidate in given]
    # The first that no model wrote: a rewritten question stands in the inputs of later steps.
    own = next((text for text in texts if text and tuple(words(text)) not in written), "")
    if in_conversation is None:
        in_conversation = any(map(has_history, given))
    if not own:
        rewritten = next((query for query in queries if query.strip()), "")
        known = bool(rewritten) and tuple(words(rewritten)) not in written
        if known:
            return Asked(question=rewritten.strip())
        return Asked(question="", notes=("question_rewritten_only" if rewritten else "question_unknown",))
    return Asked(question=own, standalone=_standalone(own, queries) if in_conversation else None)


def _standalone(question: str, queries: Sequence[str]) -> str | None:
    """The first query, unless it is the question itself or a passage invented to search with."""
    row = words(question)
    for query in queries:
        asked = words(query)
        if not asked:
            continue
        is_passage = len(asked) > max(_INVENTED_WORDS, 4 * len(row)) and not query.rstrip().endswith("?")
        return None if asked == row or is_passage else query.strip()
    return None


def question_in(value: object, depth: int = _DEPTH) -> str:
    """The user's words in an input of any shape; empty where none are found.

    Templates with their slots open, objects that only name themselves, and serialised indexes or documents
    are not questions.
    """
    if depth <= 0 or value is None:
        return ""
    if isinstance(value, str):
        return _text(value, depth)
    if isinstance(value, Mapping):
        return _in_mapping(value, depth)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return _in_list(value, depth)
    query = _attribute(value, "query_str")
    if isinstance(query, str):
        return _text(query, depth - 1)
    return message_text(value) if role_of(value) in _USER else ""


def _text(value: str, depth: int) -> str:
    text = text_of(value).strip()
    # A memory address or a class name is what an object shows of itself when it is not text.
    if not text or _UNSHOWN.match(text) or text in ("None", "null", "{}", "[]"):
        return ""
    # Before templates are looked for: a serialised input may hold one beside the question.
    if (read := _serialised(text)) is not None:
        return question_in(read, depth - 1)
    if _FIELDS.match(text):
        return _said_by_user(text) or text
    if _SLOT.search(text) or (text.endswith(")") and _OBJECT.match(text)):
        return ""
    text = text.partition(f"\n\n{_EXPECTED}")[0]
    prefix = next(filter(text.startswith, _PREFIXES), "")
    return text[len(prefix) :].strip()


def _serialised(text: str) -> Any:
    """What a text is the written form of; None for a text that is meant as it stands, as a bare number is."""
    if len(text) > MOST_INPUT or (text[0] not in '{["' and not _SHOWN.match(text)):
        return None
    read = _read(text)
    # "42" may be what the user typed; a list or a mapping was made by a program.
    return None if isinstance(read, (int, float)) else read


def _said_by_user(text: str) -> str:
    """What a user's message says that is shown by its fields, as in `source='user' content='How tall?'`."""
    said = _SAID.search(text[:MOST_INPUT])
    if said is None or not _BY_USER.search(text[:MOST_INPUT]):
        return ""
    try:
        return text_of(ast.literal_eval(said[1])).strip()
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        read = read_shown(text)
        return read if isinstance(read, (dict, list)) and read else None


def _in_mapping(value: Mapping[Any, Any], depth: int) -> str:
    # A message has a text field like any mapping, but only the user's is a question.
    if role_of(value):
        return message_text(value) if role_of(value) in _USER else ""
    for key in (*_QUESTIONS, *_MESSAGES, *_WRAPPERS):
        if key in value and (found := question_in(value[key], depth - 1)):
            return found
    named = (item for key, item in value.items() if _OWN_NAME.fullmatch(str(key)))
    if found := next(filter(None, (question_in(item, depth - 1) for item in named)), ""):
        return found
    # A mapping of one text, or of one mapping, is a chain's only input, whatever the application calls it.
    only = next(iter(value.values())) if len(value) == 1 and not _is_skipped(value) else None
    return question_in(only, depth - 1) if isinstance(only, (str, Mapping)) else ""


_SKIPPED = frozenset(
    ("context", "contexts", "documents", "docs", "index", "nodes", "text", "page_content", "answer", "resume")
)


def _is_skipped(value: Mapping[Any, Any]) -> bool:
    return any(str(key).lower() in _SKIPPED for key in value)


def _in_list(value: Sequence[Any], depth: int) -> str:
    messages = list(messages_in(value))
    if messages:
        # From the end: in a conversation the last thing that the user said is asked now.
        asked = next((text for role, text in reversed(messages) if role in _USER and text.strip()), "")
        return _text(asked, depth - 1) if asked else ""
    shown = [item.strip() for item in value if isinstance(item, str)]
    if len(shown) > 1 and len(shown) == len(value) and all(map(_FIELDS.match, shown)):
        return next((said for text in reversed(shown) if (said := _said_by_user(text))), "")
    return question_in(value[0], depth - 1) if len(value) == 1 else ""


def messages_in(value: object, depth: int = 4) -> Iterator[tuple[str, str]]:
    """The messages of a conversation as (role, text), whatever framework wrote them."""
    if depth <= 0 or not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray)):
        return
    if _is_pair(value):
        yield str(value[0]).lower(), message_text(value[1])
        return
    for item in value:
        if role := role_of(item):
            yield role, message_text(item)
        elif isinstance(item, (list, tuple)):
            yield from messages_in(item, depth - 1)


def _is_pair(value: Sequence[Any]) -> bool:
    return (
        len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], (str, list))
        and value[0].lower() in _USER | _MODEL | _OTHER
    )


def role_of(message: object) -> str:
    """Who speaks in a message, in lower case; empty where it is none."""
    role: object = None
    if isinstance(message, Mapping):
        role = _role_in_mapping(message)
    elif isinstance(message, (list, tuple)):
        role = message[0] if _is_pair(message) else None
    elif not isinstance(message, str) and hasattr(message, "content"):
        role = _attribute(message, "role") or _attribute(message, "type")
        role = getattr(role, "value", role)
    name = str(role or "").lower()
    return name if name in _USER | _MODEL | _OTHER else ""


def _role_in_mapping(message: Mapping[Any, Any]) -> object:
    # LangChain's serialised messages name the class and nothing else that says who speaks.
    if message.get("lc") and isinstance(kind := message.get("id"), list) and kind:
        return kind[-1]
    # Without content a "type" says what kind of object it is, not who speaks.
    if any(key in message for key in ("content", "parts", "blocks", "text")):
        return message.get("role") or message.get("type")
    return None


def message_text(message: object) -> str:
    """What a message says, without images and tool calls."""
    if isinstance(message, str):
        return text_of(message)
    if isinstance(message, (list, tuple)):
        if _is_pair(message):
            return message_text(message[1])
        return "\n".join(filter(None, map(_part, message)))
    if not isinstance(message, Mapping):
        content = _attribute(message, "content")
        return "" if content is None else message_text(content)
    kwargs = message.get("kwargs")
    source = kwargs if isinstance(kwargs, Mapping) else message
    content = next((source[key] for key in ("content", "parts", "blocks", "text") if source.get(key)), "")
    return message_text(content) if isinstance(content, (str, list, tuple)) else ""


def _part(part: object) -> str:
    if isinstance(part, str):
        return text_of(part)
    if isinstance(part, Mapping) and part.get("type", part.get("block_type", "text")) in (
        "text",
        "input_text",
    ):
        text = part.get("text") or part.get("content")
        return text_of(text) if isinstance(text, str) else ""
    return ""


def has_history(value: object, depth: int = _DEPTH) -> bool:
    """Whether a value holds an earlier exchange: a history, or a reply before the user's last message."""
    if depth <= 0 or value is None:
        return False
    if isinstance(value, str):
        read = _read(value) if value[:1] in ("{", "[") and len(value) <= MOST_INPUT else None
        return has_history(read, depth - 1)
    if isinstance(value, Mapping):
        if any("history" in str(key).lower() for key, item in value.items() if item):
            return True
        inner = (value[key] for key in (*_MESSAGES, *_WRAPPERS, "input", "inputs") if key in value)
        return any(has_history(item, depth - 1) for item in inner)
    return _follows_reply([role for role, _ in messages_in(value)])


def _follows_reply(roles: Sequence[str]) -> bool:
    """Whether a model speaks before the user's last message."""
    asked = [at for at, role in enumerate(roles) if role in _USER]
    return bool(asked) and not _MODEL.isdisjoint(roles[: asked[-1]])


def question_in_prompt(prompt: str) -> str:
    """The question that a prompt names on its last `Question:` line; empty where it names none.

    "Here is the question: ..." is such a line too. Where there is none, it is what a person says on the last
    line ("Human: ..."), or before the cue for the model; or a last line such as "Answer the question from the
    context above: ..."; or the first lines, where they end with a question mark and only a heading and its
    passages follow.
    """
    lines = [line for line in prompt.split("\n") if line.strip()]
    for names in (_NAMED, _PRESENTED):
        for line in reversed(lines):
            if named := names.match(line):
                return named[1].strip()
    if spoken := _spoken_last(lines):
        return spoken
    last = _LED_IN.match(lines[-1]) if lines else None
    if last and len(last[1].split()) <= _INVENTED_WORDS:
        return last[1].strip()
    return _before_passages(lines)


def _spoken_last(lines: Sequence[str]) -> str:
    """What a person says on the last line of a prompt, before which only a cue for the model may stand."""
    end = len(lines) - 1 if lines and _CUE.fullmatch(lines[-1]) else len(lines)
    spoken = _SPOKEN.match(lines[end - 1]) if end else None
    return spoken[1].strip() if spoken else ""


def _before_passages(lines: Sequence[str]) -> str:
    """The short question that stands before a heading such as "Use the following information:"."""
    heading = next((at for at, line in enumerate(lines[: _FIRST_LINES + 1]) if is_title(line)), 0)
    asked = "\n".join(lines[:heading]).strip() if heading < len(lines) - 1 else ""
    return asked if asked.endswith("?") and len(asked.split()) <= _INVENTED_WORDS else ""


def _attribute(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - properties of a user's object may raise anything
        return None
