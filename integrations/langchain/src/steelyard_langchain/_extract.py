"""The question and the answer of a turn, and the shapes they come in: messages, mappings, documents, states.

Nothing is imported for it: messages and documents are told by their attributes, so that every version's
classes, and a framework's own, are read alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.record import text_of, to_json_value
from steelyard.recording.building import before_verdict, is_gone_into, is_telling, revised, said_last
from steelyard.recording.provenance import (
    ModelCall,
    calls_behind,
    is_intermediate_output,
    json_strings,
    plain,
    unescaped,
)
from steelyard.recording.reading import ANSWERS, state_of, strings_in
from steelyard_langchain._forms import last_form
from steelyard_langchain._options import Key

_ANYTHING = ("text", "content")
"""What applications call their answer, and also their passages."""
_BROUGHT = ("output", "output_text", "result")
"""What they call their answer, and also what a tool or a query brought."""
ANSWER_KEYS = ("structured_response", *ANSWERS, *_ANYTHING)
_FORM_KEYS = ("answer", "final_answer", "final_response", "response")
_ROLES = {
    **{"user": "human", "HumanMessageChunk": "human"},
    **{"assistant": "ai", "chatbot": "ai", "AIMessageChunk": "ai"},
}


def pick(value: Any, key: Key) -> Any:
    """What stands under a key of a mapping or state object, or what a function makes of the value."""
    if callable(key):
        return key(value)
    state = state_of(value)
    return None if state is None else state.get(key)


def text_in(value: Any) -> str:
    """A text, a message or content blocks as text; empty for everything else."""
    if isinstance(value, str):
        return text_of(value)
    if is_message(value):
        return message_text(value)
    if isinstance(value, list) and value and all(isinstance(item, (str, Mapping)) for item in value):
        return message_text({"content": value})
    inner = getattr(value, "text", None)  # generations and completion values
    return text_of(inner) if isinstance(inner, str) else ""


def answer_of(outputs: Any, inputs: Any, key: Key | None, *, calls: Sequence[ModelCall] = ()) -> str:
    """What the user was shown; empty where the output is none of the known shapes.

    Args:
        outputs: What the root returned.
        inputs: What it was given; a text that was there before is not the answer.
        key: Where the user says it stands.
        calls: What models were asked, in order; a node may put a reply among the messages as a bare string.
    """
    if key is not None:
        return text_in(pick(outputs, key))
    if isinstance(outputs, str) or is_message(outputs):
        return text_in(outputs) or _in_form(outputs)
    state = _fields_of(outputs)
    if state is not None and (text := _named_answer(state, inputs, calls)):
        return revised(text, [value for value in state.values() if isinstance(value, str)], calls)
    messages = messages_in(outputs)
    if state is None:
        return _replied(messages, calls) if messages else text_in(outputs)
    # A message of the user's, or in the user's place, only notes what was asked, unless a model said it.
    text = _replied(messages, calls)
    is_told = bool(text) or not {"human"}.issuperset(map(role_of, messages[-1:]))
    return text if is_told else _unnamed_answer(state, inputs, calls)


def without_queries(calls: Sequence[ModelCall], queries: Iterable[Any]) -> list[ModelCall]:
    """The model calls without those that replied with what was looked up then; the last one may answer."""
    asked = {query.strip() for query in queries if isinstance(query, str)}
    return [*(call for call in calls[:-1] if call.reply.strip() not in asked), *calls[-1:]]


def _fields_of(outputs: Any) -> Mapping[str, Any] | None:
    """The fields of a state, or of what a function returned at once: its answer, and what it found."""
    if isinstance(outputs, tuple) and not hasattr(outputs, "_fields"):
        return {str(at): one for at, one in enumerate(outputs)}
    return state_of(outputs)


def _unnamed_answer(state: Mapping[str, Any], inputs: Any, calls: Sequence[ModelCall]) -> str:
    """The answer in a state that has no usual name for it."""
    name, inner = next(iter(state.items()), ("", None))
    if len(state) == 1 and isinstance(inner, Mapping):
        return answer_of(inner, (state_of(inputs) or {}).get(name), None, calls=calls)
    text = _only_text(state, inputs, calls)
    form = last_form(state, calls)
    if form and text not in json_strings(form) and not is_gone_into(text, calls):
        return _only_form(state)  # else all that was filled in
    if text and any(text.strip() in call.reply for call in calls):
        return text
    return _only_form(state) or text or _only_conversation(state, inputs)


def _only_form(state: Mapping[str, Any]) -> str:
    """The answer in the one form among a state's values that names it so, as a parser left it there."""
    forms = [_named_answer(value, None) for value in state.values() if isinstance(value, Mapping)]
    said = list(filter(None, forms))
    return said[0] if len(said) == 1 else ""


def _named_answer(state: Mapping[str, Any], inputs: Any, calls: Sequence[ModelCall] = ()) -> str:
    """What stands under an answer's name in a mapping, and did not before: a thread's state keeps it."""
    given, messages = state_of(inputs) or {}, messages_in(state)
    at = last_human(messages) + 1
    kept = _said_in(messages[:at]) if _said_in(messages[at:]) else []
    for name in ANSWER_KEYS:
        text = _said(state.get(name))
        is_old = text in kept or (name in given and text == text_in(given[name]))
        if text.strip() and not is_old and _is_answer(name, text, state, calls):
            return text
    return ""


def _is_answer(name: str, text: str, state: Mapping[str, Any], calls: Sequence[ModelCall]) -> bool:
    """Whether its name makes a text the answer, which a model said where it may mean more."""
    if name not in (*_ANYTHING, *_BROUGHT) or not calls or calls_behind(calls, text).known:
        return True
    beside = {value.strip() for value in state.values() if isinstance(value, str)}
    return name in _BROUGHT and beside.isdisjoint(call.reply.strip() for call in calls)


def _only_conversation(state: Mapping[str, Any], inputs: Any) -> str:
    """The last reply of the one conversation in a state that went on, whatever it is called there."""
    given = state_of(inputs) or {}
    lists = (value for name, value in state.items() if isinstance(value, list) and value != given.get(name))
    told = [reply for one in lists if any(map(is_message, one)) and (reply := _replied(messages_in(one)))]
    return told[0] if len(told) == 1 else ""


def _said(value: Any) -> str:
    """What stands under an answer's name: a text, messages, or an object that has the answer in it."""
    text = _replied(messages_in(value)) or text_in(value)
    state = None if text else state_of(value)
    if state is None:
        return text
    found = (text_in(state.get(name)) for name in ANSWER_KEYS)
    # An object of nobody's known shape was shown as a whole.
    return next(filter(None, found), "") or json.dumps(to_json_value(state), ensure_ascii=False)


def _is_reply(message: Any, calls: Sequence[ModelCall]) -> bool:
    """Whether a model said what stands among the messages as the user's."""
    text = message_text(message).strip() if role_of(message) == "human" else ""
    said = [call.reply.strip() for call in calls] if text else []
    # Code may have put a few words before it.
    return text in said or any(is_telling(reply) and text.endswith(reply) for reply in said)


def _replied(messages: list[Any], calls: Sequence[ModelCall] = ()) -> str:
    """The last thing said to the user since they last spoke.

    A tool that returns to the user directly leaves its own message last; code may call an answer a system's.
    What a call was shown, it went on from.
    """
    if messages and _is_reply(messages[-1], calls):
        return message_text(messages[-1])
    turn = messages[last_human(messages) + 1 :]
    if turn and role_of(turn[-1]) in ("tool", "system"):
        text = message_text(turn[-1])
        return "" if _is_gone_on_from(text, messages, calls) else text
    if turn and (form := _in_form(turn[-1])):
        return form
    return before_verdict(_said_in(turn), calls)


def _is_gone_on_from(text: str, messages: list[Any], calls: Sequence[ModelCall]) -> bool:
    """Whether a call was shown the last message, and not only an earlier one that says the same."""
    told = sum(message_text(one) == text for one in messages)
    return any(plain("\n".join(call.prompts)).count(plain(text)) >= told for call in calls)


def _said_in(messages: list[Any]) -> list[str]:
    """What assistants said, in order."""
    return [text for one in messages if role_of(one) == "ai" and (text := message_text(one)).strip()]


def verdict_after(outputs: Any, answer: str) -> str:
    """What was said of the answer behind it, if a conversation ends so."""
    said = _said_in(messages_in(outputs))
    return said[-1] if answer in said[:-1] and said[-1] != answer else ""


def _in_form(message: Any) -> str:
    """The answer in the arguments of a tool call: a form that the model was made to fill in."""
    calls = getattr(message, "tool_calls", None) or ()
    forms = [call.get("args") for call in calls if isinstance(call, Mapping)]
    texts = (
        form.get(name) for form in forms if isinstance(form, Mapping) for name in _FORM_KEYS if name in form
    )
    return next((text_of(text) for text in texts if isinstance(text, str) and text.strip()), "")


def _only_text(state: Mapping[str, Any], inputs: Any, calls: Sequence[ModelCall]) -> str:
    """The one text in a mapping that was not there before, or the one of them that models said last."""
    every = [value for value in state.values() if isinstance(value, str)]
    texts = _unknown(state, every, inputs, calls)
    if len(texts) > 1:
        return text_of(said_last(texts, calls))
    if not texts:
        # An answer may repeat what was there before; a model's reply then holds it, in whatever form.
        texts = [text for text in every if any(text in call.reply for call in calls)]
    return text_of(texts[0]) if len(texts) == 1 and not _is_status(texts[0], calls) else ""


def _unknown(
    state: Mapping[str, Any], every: Iterable[str], inputs: Any, calls: Sequence[ModelCall]
) -> list[str]:
    """Those of a state's texts that were not there before, each once."""
    given = state_of(inputs) or {}
    known = {value for value in (inputs, *given.values()) if isinstance(value, str)}
    texts = [text for text in every if text not in known]
    # What was written on the way may stand beside the answer's form.
    within = [text for text in _said_within(state, texts, calls) if text not in known] if texts else []
    return list(dict.fromkeys((*texts, *within)))


def _said_within(state: Mapping[str, Any], beside: Iterable[str], calls: Sequence[ModelCall]) -> list[str]:
    """The texts in the mappings of a state that a model said, whole or in a form, and did not quote.

    If a later call said what stands beside the mappings, they hold what was written for it.
    """
    said = {one.strip(): call for call in calls for reply in call.replies for one in json_strings(reply)}
    since = max((said[text.strip()].started for text in beside if text.strip() in said), default=0)
    inner = (value for value in state.values() if isinstance(value, Mapping))
    by = ((text, said.get(text.strip())) for value in inner for _, text in strings_in(value))
    able = ((text, call.prompts) for text, call in by if call and call.started >= since)
    return [text for text, prompts in able if plain(text) not in plain("\n".join(prompts))]


def _is_status(text: str, calls: Sequence[ModelCall]) -> bool:
    """Whether a word or two of code's own, which no model said, stand in place of what was said last."""
    if is_telling(text) or not calls:
        return not calls and is_intermediate_output([text])
    if is_intermediate_output(calls[-1].replies):
        return False
    word = text.strip(" .!").lower()
    replies = (unescaped(reply).lower() for call in calls for reply in call.replies)
    return bool(calls[-1].reply) and not any(word in reply for reply in replies)


def ends_in_tool_call(outputs: Any) -> bool:
    """Whether a conversation stops where a tool was about to be called: somebody has to say go on."""
    messages = messages_in(outputs)
    return (
        bool(messages) and role_of(messages[-1]) == "ai" and bool(getattr(messages[-1], "tool_calls", None))
    )


def replies_in(outputs: Any) -> int:
    """How many replies a run returned as a list: it may have answered several questions at once."""
    if not isinstance(outputs, list) or any(
        role_of(one) not in ("human", "ai") for one in messages_in(outputs)
    ):
        return 0
    texts = [one for one in outputs if isinstance(one, str) or role_of(one) == "ai"]
    return len(texts) if len(texts) == len(outputs) else 0


def is_message(value: object) -> bool:
    """Whether this is a message object, or a message in one of the short forms (pair, mapping)."""
    if isinstance(value, Mapping):
        return "content" in value and ("role" in value or "type" in value)
    if isinstance(value, tuple):
        return len(value) == 2 and _is_role(value[0]) and _is_content(value[1])
    return hasattr(value, "content") and isinstance(getattr(value, "type", None), str)


def _is_role(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isidentifier()


def _is_content(value: object) -> bool:
    is_blocks = isinstance(value, list) and all(isinstance(one, (str, Mapping)) for one in value)
    return isinstance(value, str) or is_blocks


def role_of(message: Any) -> str:
    """`human`, `ai`, `system`, `tool`, or whatever the message calls itself."""
    if isinstance(message, str):
        return "human"
    if isinstance(message, Mapping):
        role = message.get("role") or message.get("type")
    else:
        role = message[0] if isinstance(message, tuple) else getattr(message, "type", "")
    return _ROLES.get(str(role), str(role))


def message_text(message: Any) -> str:
    """What a message says, without its images and tool calls."""
    if isinstance(message, str):
        return text_of(message)
    if isinstance(message, Mapping):
        content = message.get("content")
    else:
        content = message[1] if isinstance(message, tuple) else getattr(message, "content", "")
    if isinstance(content, str):
        return text_of(content)
    return "".join(map(_block_text, content)) if isinstance(content, list) else ""


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return text_of(block)
    if isinstance(block, Mapping) and block.get("type") in ("text", "output_text", None):
        return text_of(block.get("text") or "")
    # A result of a search as Anthropic's models take it: its text is in blocks again.
    if isinstance(block, Mapping) and block.get("type") == "search_result":
        return message_text(block)
    return ""


def messages_in(value: Any) -> list[Any]:
    """The conversation in a value: a list of messages, a prompt value, one message, a state's `messages`."""
    if isinstance(value, (str, bytes)) or value is None:
        return []
    if is_message(value):
        return [value]
    if isinstance(value, list):
        return value if all(map(_is_spoken, value)) else []
    state = state_of(value)
    inner = state.get("messages") if state is not None else getattr(value, "messages", None)
    if _is_spoken(inner):
        return [inner]
    if isinstance(inner, (list, tuple)) and any(map(is_message, inner)):
        return list(filter(_is_spoken, inner))
    return []


def _is_spoken(value: object) -> bool:
    """Whether this is a message, or the text of one."""
    return isinstance(value, str) or is_message(value)


def prompt_texts(prompt: Any) -> Iterator[str]:
    """The texts that one model run was sent, whether as messages or as strings."""
    for part in prompt or ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, (list, tuple)):
            for message in part:
                yield message_text(message)


def last_human(messages: Sequence[Any]) -> int:
    """Where the last human message stands; -1 where there is none."""
    return next((at for at in range(len(messages) - 1, -1, -1) if role_of(messages[at]) == "human"), -1)
