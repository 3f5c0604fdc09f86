"""What was looked up in a turn: by retrievers, by tools, and by tools that only messages tell of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from steelyard.record import Context, ContextsSource, Stage, text_of
from steelyard.recording.building._beside import MUCH, MUCH_SHARE
from steelyard.recording.building._steps import WHOLLY, Step, Steps, is_telling, is_written, parts_of
from steelyard.recording.provenance import (
    ModelCall,
    find_passages,
    is_printed,
    json_strings,
    names_passages,
    plain,
    unescaped,
    word_count,
)
from steelyard.recording.reading import (
    Message,
    attribute,
    contexts_of,
    documents_in,
    is_question,
    messages_in,
    since_last_asked,
    state_of,
    strings_in,
)

_HAND_OVER = re.compile(r"handoff|transfer_(?:back_)?to_\w{1,80}")
"""Tools by which LlamaIndex's, LangGraph's and OpenAI's agents hand a turn to each other."""


@dataclass(slots=True, repr=False)
class LookUps:
    """What was looked up, in order."""

    found: list[Context] = field(default_factory=list)
    """What retrievals and tools returned; each that finds something is a hop."""
    queries: list[str] = field(default_factory=list)
    """What they were asked."""
    source: ContextsSource = "retrieved"
    """How `found` came in: by a retriever, or by tools alone."""
    any: bool = False
    """Whether anything was looked up, whatever it found."""
    silent: int = 0
    """How many documents have no text."""
    stages: tuple[Stage, ...] = ()
    """Retrievals within others."""
    receipts: set[str] = field(default_factory=set)
    """Texts of a few words by tools that were told more than they returned: "Notes recorded.", say."""
    _whole: set[str] = field(default_factory=set)
    """Whole texts that tools returned."""


def look_ups_of(turn: Steps, tool_contexts: Collection[str]) -> LookUps:
    """Outermost retrievals and tools, and the tools of an agent that is a tool itself.

    Args:
        turn: The turn.
        tool_contexts: The tools whose results count, if the application names them; else all do.
    """
    made = LookUps()
    for step in turn.steps:
        if step.kind == "retrieval" and step in turn.retrievals:
            query = text_of(step.given) if isinstance(step.given, str) else None
            _add(made, step, list(step.contexts or ()), query)
        elif step.kind == "tool" and not (
            _serves_another(turn, step) or step.hands_over or _hands_over(step.name)
        ):
            _add_tool(made, turn, step, tool_contexts)
    _add_told(made, turn, tool_contexts)
    made.found = _without_joined(made)
    made.stages = tuple(_stages(turn))
    return made


def _serves_another(turn: Steps, tool: Step) -> bool:
    """Whether what a tool returns is for the code around it, not for a model: a part of another look-up."""
    return any(
        above.kind == "retrieval" or (above.kind == "tool" and not turn.inside(above, "model"))
        for above in tool.above()
    )


def _hands_over(tool: str) -> bool:
    """Whether a tool only hands the turn to another agent: what it returns is the framework's own."""
    return _HAND_OVER.fullmatch(tool) is not None


def _without_joined(made: LookUps) -> list[Context]:
    """What was found, without a tool's text that joins what a retriever brought: each would count twice.

    Of a name and a text that tells about it the text counts, and of passages and a text that has more of
    its own.
    """
    whole = made._whole
    if not whole:
        return made.found
    parts = [one.text for one in made.found if one.text not in whole and is_telling(one.text)]
    wider = {text for text in whole if _says_more(text, parts)}

    def is_twice(text: str) -> bool:
        if text in whole:
            return text not in wider and any(part in text for part in parts)
        return any(text in other for other in (wider if is_telling(text) else whole))

    return [one for one in made.found if not is_twice(one.text)]


def _stages(turn: Steps) -> Iterator[Stage]:
    for step in turn.steps:
        if step.kind == "retrieval" and step not in turn.retrievals:
            yield Stage(name=text_of(step.name), query=text_of(step.given), contexts=step.contexts or ())


def _add(made: LookUps, step: Step, contexts: Sequence[Context], query: str | None) -> None:
    hop = 1 + max((one.hop for one in made.found), default=-1)
    made.any = True
    made.silent += step.silent
    made.queries += [query] if query else []
    made.found += (replace(one, query=query, hop=hop) for one in contexts)


def _add_tool(made: LookUps, turn: Steps, step: Step, named: Collection[str]) -> None:
    contexts = [] if named and step.name not in named else _of_tool(turn, step)
    if not contexts and turn.inside(step, "model"):
        return  # a model was asked, and nothing was looked up but what stands below it
    if contexts and not any(one.contexts for one in turn.retrievals):
        made.source = "tool"
    if len(contexts) == 1:
        made._whole.add(text := contexts[0].text)
        made.receipts.update([text] * _may_be_receipt(text, step))
    _add(made, step, contexts, _argument(step.given))


def _of_tool(turn: Steps, step: Step) -> list[Context]:
    """What a tool returned: documents, the parts of a list, or its whole text."""
    if step.failed or step.returned is None or _is_told_inside(turn, step) or _finds_nothing(step, turn):
        return []  # what went wrong is told to the model, and is not evidence
    if turn.models and step in turn.models[-1].above():
        return []  # a function around the model that answered returned its reply: none was shown it
    result = step.returned
    message = next(iter(messages_in(result)), None)
    if message is not None and message.failed:
        return []
    if documents := step.contexts or documents_in(attribute(result, "artifact")) or documents_in(result):
        return list(documents)
    found = list(_parts_of_object(result) if message is None else _parts_shown(message))
    # What a model inside replied is its own; what that model was shown counts by its prompt.
    asked = list(_calls_inside(turn, step))
    return [one for one in found if not is_written(one.text, asked)] if asked else found


def _parts_of_object(returned: Any) -> Iterable[Context]:
    """The parts of what a tool returned to code, which reads the fields of an object."""
    return parts_of(state_of(returned) or returned)


def _parts_shown(message: Message) -> Iterable[Context]:
    """The parts of what a tool returned; of its words alone, if what it kept beside them is not in these."""
    parts = list(parts_of(message.result, message.text))
    shown = plain(message.text)
    unseen = [one.text for one in parts if plain(one.text) not in shown]
    if not unseen or all(seen.seen >= WHOLLY for seen in find_passages(unseen, [message.text])):
        return parts
    return parts_of(message.text)


def _may_be_receipt(text: str, tool: Step) -> bool:
    """Whether a tool returned few words that nothing asked for, or much less than it was told: no data."""
    if is_printed(text) or any(map(str.isdigit, text)):
        return False
    most = 2 * word_count(text) if is_telling(_beside_call(text, tool)) else 0
    told = [told for _, told in strings_in(tool.given) if is_telling(told)]
    return not (most or told) or any(word_count(one) >= most for one in told if not is_question(one))


def _calls_inside(turn: Steps, tool: Step) -> Iterator[ModelCall]:
    """What models were asked within a tool."""
    return (step.call for step in turn.steps if step.call is not None and tool in step.above())


def _finds_nothing(tool: Step, turn: Steps) -> bool:
    """Whether a tool brought nothing from outside: its name, its own arguments, or a prompt that it wrote.

    A model wrote its call, as of a structured answer or a plan; a prompt was a model's only message.
    """
    message = next(iter(messages_in(tool.returned)), None)
    returned = tool.returned if message is None else message.result
    if isinstance(returned, str) and _only_repeats(returned, tool):
        return not _is_called_by_code(tool, turn)
    return isinstance(returned, str) and any(
        len(call.prompts) == 1 and plain(call.prompts[0]) == plain(returned) for call in turn.calls
    )


def _is_called_by_code(tool: Step, turn: Steps) -> bool:
    """Whether no model can have written a tool's arguments: those before it said other things in words.

    With none before it, the model that filled them in may not have been seen.
    """
    before = [step.call for step in turn.models if step.at < tool.at]
    if not before or any(call is None or call.arguments or not call.reply.strip() for call in before):
        return False
    said = plain("\n".join(reply for call in before if call for reply in call.replies))
    return not any(part in said for part in _leaves(tool.given) if is_telling(part))


def _only_repeats(returned: str, tool: Step) -> bool:
    """Whether a text says nothing beside its tool's name or arguments, which say something: a note taken."""
    whole, rest = plain(returned), _beside_call(returned, tool)
    if not any(part in whole and is_telling(part) for part in _leaves(tool.given)):
        return whole == plain(tool.name)
    return not is_telling(rest) and not any(map(str.isdigit, rest))


def _beside_call(returned: str, tool: Step) -> str:
    """The words of what a tool returned, each once, but for those of its name and its arguments."""
    name, rest = plain(tool.name), plain(returned)
    for part in sorted({name, name.replace("_", " "), *_leaves(tool.given)} - {""}, key=len, reverse=True):
        rest = rest.replace(part, " ")
    return " ".join(dict.fromkeys(word for word in rest.split() if any(map(str.isalnum, word))))


def _leaves(value: Any, depth: int = 8) -> Iterator[str]:
    """What stands in a value, at any depth: texts and numbers as text."""
    state = value if isinstance(value, (list, tuple)) else state_of(value)
    if state is None or depth <= 0:
        yield from () if value in (None, "") else (plain(text_of(value)),)
        return
    for one in state.values() if isinstance(state, Mapping) else state:
        yield from _leaves(one, depth - 1)


def _is_told_inside(turn: Steps, tool: Step) -> bool:
    """Whether a retrieval within a tool tells what was found."""
    inside = (one for one in turn.steps if one.kind == "retrieval" and tool in one.above())
    told = [one.contexts for one in inside if one.contexts is not None]
    found = [one.text for part in told for one in part]
    returned = " ".join(message.text for message in messages_in(tool.returned)) or text_of(tool.returned)
    return bool(told) and not (_says_more(returned, found) or _is_shown_instead(found, returned, turn))


def _says_more(text: str, found: Sequence[str]) -> bool:
    """Whether a text has much beside the passages in it, in lines that are longer than labels."""
    inside = [one for one in found if one in text]
    for one in inside:
        text = text.replace(one, "\n")
    more = sum(count for line in text.split("\n") if (count := word_count(line)) >= MUCH)
    return bool(inside) and more >= max(MUCH, MUCH_SHARE * sum(map(word_count, inside)))


def _is_shown_instead(found: Sequence[str], returned: str, turn: Steps) -> bool:
    """Whether a prompt shows what a tool returned, and none shows a document: a service's answer, say."""
    prompts = [text for call in turn.calls for text in call.prompts]
    if not (found and returned.strip()) or not any(returned.strip() in text for text in prompts):
        return False
    return not any(one.found for one in find_passages(found, prompts))


def as_shown(found: Iterable[Context], prompts: Sequence[str]) -> Iterator[Context]:
    """What was found; of a row of which code put only a text into a prompt, that text."""
    for one in found:
        texts = islice(json_strings(one.text), 1, None) if one.text.startswith(("{", "[")) else ()
        alone = [text for text in texts if is_telling(text) and any(_is_alone(text, one) for one in prompts)]
        yield replace(one, text=max(alone, key=len)) if alone else one


def _is_alone(text: str, prompt: str) -> bool:
    """Whether a text stands in a prompt, and not between quotes as in a printed row."""
    return text in prompt and not any(quote + text in prompt for quote in "'\"")


def _argument(given: Any) -> str | None:
    """What a tool was asked: its only text argument."""
    if isinstance(given, str):
        return text_of(given)
    if not isinstance(given, Mapping):
        return None
    texts = [value for value in given.values() if isinstance(value, str)]
    return text_of(texts[0]) if len(texts) == 1 else None


def _add_told(made: LookUps, turn: Steps, named: Collection[str]) -> None:
    """What tools returned that nobody saw run, out of what a model was told after the user's last words."""
    known = {context.text for context in made.found}
    for message in _told_unseen(turn, named):
        fresh = [one for one in _brought(message) if one.text not in known]
        known.update(one.text for one in fresh)
        made.any = True
        made.source = "tool" if fresh and not turn.retrievals else made.source
        made.found += fresh


def _told_unseen(turn: Steps, named: Collection[str]) -> Iterator[Message]:
    """What was told after the user's last words of tools that count and that nobody saw run."""
    ran = [step for step in turn.steps if step.kind == "tool" and (step.failed or step.returned is not None)]
    # A message without a name may tell of any that failed.
    names = {step.name for step in ran} | {"" for step in ran if step.failed}
    shown = [text_of(step.returned) for step in ran]
    told = (message for step in turn.models for message in since_last_asked(step.messages))
    left = (one for one in told if one.tool not in names and _is_told(one, named))
    return (one for one in left if not _is_in(one.text, shown))


def _is_in(text: str, returned: Sequence[str]) -> bool:
    """Whether a message only shows what a tool returned that was seen to run."""
    return any(plain(text) in plain(one) for one in returned) or any(
        one.seen >= WHOLLY for one in find_passages([text], returned)
    )


def _is_told(message: Message, named: Collection[str]) -> bool:
    """Whether a message is what a tool returned that counts, be it that it found nothing."""
    if message.role != "tool" or message.failed or _hands_over(message.tool):
        return False
    is_read = bool(message.text) or message.result in ("", [], {})
    return is_read and (not named or message.tool in named)


def _brought(message: Message) -> Sequence[Context]:
    """What a tool's message holds: documents, or the parts of its text."""
    return documents_in(message.result) or list(_parts_shown(message))


def told_again(turn: Steps, tool_contexts: Collection[str]) -> list[Context]:
    """What tools returned in earlier turns and code shows a model anew, beside the question or above it.

    Args:
        turn: The turn.
        tool_contexts: The tools whose results count, if the application names them; else all do.
    """
    told = (message for message in _told_before(turn) if _is_told(message, tool_contexts))
    found = {one.text: one for message in told for one in _brought(message)}
    if not found:
        return []
    exchanges, own = list(_exchanges(turn)), _own(turn)
    shown = [_without(exchanges, plain(unescaped(one.text))) for one in own if one.role in ("system", "user")]
    pairs = zip(found.values(), find_passages(list(found), shown), strict=True)
    # What the user typed may resemble a part of it.
    return [one for one, seen in pairs if seen.found and seen.seen >= WHOLLY]


def without_left(turn: Steps, documents: Sequence[Context]) -> list[Context]:
    """The documents without those that prompts show only where a tool told them in an earlier turn."""
    told = [one.text for one in _told_before(turn) if one.role == "tool"] if documents else []
    if not told:
        return list(documents)
    texts = [one.text for one in documents]
    own = [text for step in turn.models if step.call and not step.messages for text in step.call.prompts]
    own += (one.text for one in _own(turn))
    seen = zip(documents, find_passages(texts, told), find_passages(texts, own), strict=True)
    return [one for one, before, now in seen if now.found or not before.found]


def _own(turn: Steps) -> Iterator[Message]:
    """What models were told first, and since the user's last words."""
    for step in turn.models:
        yield from (*step.messages[:1], *since_last_asked(step.messages))


def _told_before(turn: Steps) -> Iterator[Message]:
    """What stands before the user's last words, in what models were sent and in what the root returned."""
    for messages in (*(step.messages for step in turn.models), messages_in(turn.returned)):
        yield from messages[: len(messages) - len(since_last_asked(messages))]


def _exchanges(turn: Steps) -> Iterator[tuple[str, str]]:
    """What the user asked before, each with what was replied."""
    asked = ""
    for one in _told_before(turn):
        asked = one.text if one.role == "user" else asked
        if one.role == "assistant" and asked and is_telling(one.text):
            yield plain(asked), plain(one.text)


def _without(exchanges: Iterable[tuple[str, str]], text: str) -> str:
    """A text without the exchanges of a conversation that is printed in it, with what tools told within."""
    for asked, replied in exchanges:
        end = text.find(replied)
        at = text.rfind(asked, 0, end) if end > 0 else -1
        text = text if at < 0 else text[:at] + text[end + len(replied) :]
    return text


def rows_named(turn: Steps) -> Iterator[Context]:
    """The rows that a final state holds under a name for passages, if no prompt shows which rows are."""
    if any(call.prompts for call in turn.calls):
        return
    for name, value in (state_of(turn.returned) or {}).items():
        if names_passages(str(name)) and isinstance(value, (list, tuple)):
            rows = contexts_of(one for one in value if isinstance(one, Mapping)) or parts_of(value)
            yield from (one for one in rows if is_telling(one.text))
