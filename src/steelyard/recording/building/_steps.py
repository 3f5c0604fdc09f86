"""A turn as steps: the one shape that recorders translate what their framework says into.

What a step brought is divided into parts: the passages of a list, or the whole of a text.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from steelyard.record import Context, to_json_value
from steelyard.recording.provenance import (
    ModelCall,
    calls_behind,
    find_passages,
    finds_nothing,
    is_printed,
    json_strings,
    plain,
    plain_line,
    unescaped,
    word_count,
    words,
)
from steelyard.recording.reading import (
    Message,
    attribute,
    is_question,
    messages_in,
    passages_of,
    read_shown,
    strings_in,
)

StepKind = Literal["chain", "prompt", "retrieval", "rerank", "tool", "model"]


@dataclass(eq=False, kw_only=True, slots=True, repr=False)
class Step:
    """One thing that ran within a turn, as far as its framework tells of it."""

    kind: StepKind
    """What ran: a `prompt` is a template that was filled in."""
    name: str = ""
    """The component's or the tool's own name."""
    parent: Step | None = None
    """The step that it ran in; None directly below the root."""
    given: Any = None
    """What it was given, as the framework has it: an input, a query, a tool's arguments, variables."""
    returned: Any = None
    """What it returned, as the framework has it; None if it failed or that is not told."""
    contexts: tuple[Context, ...] | None = None
    """What a retrieval returned, in order; empty if it found nothing, None if that is not told. Of a chain
    or a tool, the documents that it passed on, if the recorder reads them itself."""
    silent: int = 0
    """How many documents a retrieval returned that have no text."""
    call: ModelCall | None = None
    """What a model was sent and what it replied."""
    messages: tuple[Message, ...] = ()
    """What a model was sent, with who said it."""
    at: float = 0.0
    """When it began, on the clock of all steps of the turn; only the order counts."""
    ended: float | None = None
    """When it ended; None if it did not."""
    failed: bool = False
    """Whether it ended in an error."""
    hands_over: bool = False
    """Whether it is a tool that only hands the turn to another agent, as far as the framework tells."""

    def above(self) -> Iterator[Step]:
        """The steps that it ran in, nearest first."""
        step = self.parent
        while step is not None:
            yield step
            step = step.parent

    def is_within(self, *kinds: StepKind) -> bool:
        """Whether it ran in a step of one of these kinds."""
        return any(step.kind in kinds for step in self.above())


@dataclass(eq=False, kw_only=True, repr=False)
class Steps:
    """Everything that was seen of one turn."""

    given: Any = None
    """What the root was given."""
    returned: Any = None
    """What the root returned."""
    steps: Sequence[Step] = ()
    """What ran below the root, in order of start."""
    before: Sequence[Sequence[Step]] = ()
    """Look-ups of earlier runs in the same task or thread, by run, earliest first; none was used yet."""
    earlier: Sequence[ModelCall] = ()
    """What models replied in earlier runs of the same task or thread; such a text is not evidence."""
    elsewhere: bool = False
    """Whether its prompts hold what models replied meanwhile in threads that knew nothing of it."""
    instructions: Sequence[str] = ()
    """Templates that the framework itself fills in and tells; no word of theirs is a passage."""
    said: Sequence[str] = ()
    """What a person said to the run on its way, beside its input; no evidence, as all of a conversation."""
    in_conversation: bool = False
    """Whether the recorder knows that there was an earlier exchange."""
    answer: str = field(default="")
    """What the user was shown, where the recorder knows it."""

    @cached_property
    def models(self) -> list[Step]:
        """The model calls outside of retrievers, in order."""
        return [step for step in self.steps if step.kind == "model" and not self._serves_retrieval(step)]

    @cached_property
    def calls(self) -> list[ModelCall]:
        """The same as provenance looks at them."""
        return [step.call or ModelCall(started=step.at) for step in self.models]

    @cached_property
    def retrievals(self) -> list[Step]:
        """The outermost retrievals: what is inside of one is a stage of it."""
        return [step for step in self.steps if step.kind == "retrieval" and not self._serves_retrieval(step)]

    @cached_property
    def tools(self) -> list[Step]:
        """The outermost tools."""
        return [s for s in self.steps if s.kind == "tool" and not s.is_within("tool")]

    @cached_property
    def answered(self) -> set[str]:
        """The answer as `plain` writes it, the fields of it, and those of the reply that code made it of."""
        made = (self.calls[at] for at in calls_behind(self.calls, self.answer).made[-1:])
        said = (self.answer, *(reply for call in made for reply in call.replies))
        return {plain(text) for one in said for text in json_strings(one)}

    def inside(self, step: Step, *kinds: StepKind) -> bool:
        """Whether a step of one of these kinds ran in a given one; what tells a call ran a model."""
        within = ((s, "model" if s.call else s.kind) for s in self.steps if step in s.above())
        return any(kind in kinds for _, kind in within)

    def _serves_retrieval(self, step: Step) -> bool:
        """Whether a step is a part of a retriever, rather than of an engine that a retriever asks."""
        for above in step.above():
            if above.kind == "rerank" or above in self._engines:
                return False
            if above.kind == "retrieval":
                return True
        return False

    @cached_property
    def _engines(self) -> set[Step]:
        """The chains within retrievers in which a model ran after something had been looked up."""
        looked_up: set[Step] = set()
        engines: set[Step] = set()
        for step in self.steps:
            if step.kind in ("model", "retrieval") and step.is_within("retrieval"):
                chains = list(itertools.takewhile(lambda one: one.kind == "chain", step.above()))
                engines.update(looked_up.intersection(chains) if step.kind == "model" else ())
                looked_up.update(chains if step.kind == "retrieval" else ())
        return engines


MOSTLY = 0.5
"""From this share on a text counts as being in another one."""
WHOLLY = 0.9
"""From this share on it counts as being there as it is."""
_COMMAND = {"graph", "update", "goto"}
"""Fields of a command of LangGraph, as JSON tells it."""


def size_of(text: str) -> int:
    """How much a text says, roughly: a Chinese sign is a word, and has three bytes."""
    return len(text.encode(errors="replace"))


def is_written(text: str, calls: Iterable[ModelCall]) -> bool:
    """Whether a text is mostly what these calls replied; one that may have copied it does not count."""
    # That it resembles a reply is not enough: the entries of a catalogue resemble each other, too.
    if not (replies := list(_said_anew(text, calls))):
        return False
    parts = [unescaped(part) for reply in replies for part in json_strings(reply)]
    form = plain(unescaped(text))  # a list of exchanges may be printed
    if any(plain(part) == form for part in parts):
        return True
    said = list(dict.fromkeys(filter(is_telling, parts)))
    if any(seen.seen >= WHOLLY for seen in find_passages([text], [*said, "\n".join(said)])):
        return True
    is_made = len(_rest(form, said)) <= len(form) * MOSTLY
    is_said = any(plain(part) in form for part in said)
    return is_made or (is_said and _is_labelled(unescaped(text), parts)) or _is_form(form, replies)


def _is_form(text: str, replies: Iterable[str]) -> bool:
    """Whether code printed a form of a model: beside its values stand only names, its own or of classes."""
    for reply in replies:
        rest = _rest(text, [*json_strings(reply)][1:])
        if rest != text and all(f"{word}(" in rest for word in {*words(rest)} - {*words(reply)}):
            return True
    return False


def _said_anew(text: str, calls: Iterable[ModelCall]) -> Iterator[str]:
    """What calls replied, without those that were shown a text."""
    for call in calls:
        if not any(seen.seen >= WHOLLY for seen in find_passages([text], call.prompts)):
            yield from call.replies


def _is_labelled(text: str, said: Sequence[str]) -> bool:
    """Whether nothing but labels stands in a text beside what was said: a form as code prints it."""
    left = (_rest(plain_line(line), said).strip() for line in text.split("\n"))
    return not any(is_telling(one) and not one.endswith(":") for one in left)


def share_left(text: str, parts: Sequence[str]) -> float:
    """The share of a text that none of its parts says: of its letters, since rules are drawn with signs."""
    rest = text
    for part in sorted(parts, key=len, reverse=True):
        rest = rest.replace(part, "")
    return sum(map(str.isalnum, rest)) / (sum(map(str.isalnum, text)) or 1)


def _rest(form: str, said: Iterable[str]) -> str:
    """What is left of a text without replies, and without lines of replies."""
    lines = {plain_line(line) for one in said for line in one.split("\n") if is_telling(line)}
    for part in sorted({*map(plain, said), *lines}, key=len, reverse=True):
        form = form.replace(part, "")
    return form


_EMPTY = "[]{}()\"' \t\n"
_LEAST = 4  # words; what is shorter is a value: a language, a name, a verdict


def parts_of(value: Any, text: str = "") -> Iterable[Context]:
    """The parts of a value, if it is a list of passages; else its whole text; nothing if it tells of nothing.

    Args:
        value: What a tool or a step returned.
        text: The same as the model was told it, if that is known.

    >>> boots = [{"for": "long walks in the rain", "sizes": [at, 44]} for at in (40, 42)]
    >>> [one.text for one in parts_of(boots)][1]
    '{"for": "long walks in the rain", "sizes": [42, 44]}'
    """
    if _is_only_text(value):
        return parts_of(value[0])
    whole = text or _written(value)
    if has_nothing(value, whole):
        return ()
    rows = _rows(whole if isinstance(value, str) else to_json_value(value))
    is_text = len(rows) == 1 and rows[0].id is None
    if is_text and _says_more(whole, rows[0].text) and not _is_hit(value):
        return (Context(text=whole.strip(), rank=0),)
    if is_text and not isinstance(value, str):
        return parts_of(rows[0].text)  # a block of text may hold a list as Python or JSON shows it
    if _are_passages(rows, whole):
        return [one for one in rows if not finds_nothing(one.text)]
    return (Context(text=whole.strip(), rank=0),)


def has_nothing(value: Any, whole: str) -> bool:
    """Whether a result says so, in each of its texts too, or lists nothing beside figures."""
    if tells_nothing(whole):
        return True
    shown = read_shown(value) if isinstance(value, str) and value.lstrip()[:1] == "{" else value
    return isinstance(shown, Mapping) and _lists_nothing(shown)


def _lists_nothing(shown: Mapping[Any, Any]) -> bool:
    """The same of a mapping; an empty list and a count of none say so, whatever is said beside them."""
    told = [text for _, text in strings_in(shown)]
    if any(one == [] for one in shown.values()):
        counts = [one for one in shown.values() if type(one) is int]
        return 0 in counts or all(finds_nothing(text) or not is_telling(text) for text in told)
    return len(told) == len(shown) and all(map(finds_nothing, told))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(to_json_value(value), ensure_ascii=False)


def _is_only_text(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], str)


def _rows(value: object) -> list[Context]:
    return [one for one in passages_of(value) if one.text.strip()]


def _is_hit(value: Any) -> bool:
    """Whether a value lists mappings, one of which has its one text: what a search found, if only once."""
    shown = read_shown(value) if isinstance(value, str) else value
    parts = shown.values() if isinstance(shown, Mapping) else (shown,)
    return any(isinstance(part, list) and any(isinstance(one, Mapping) for one in part) for part in parts)


def _says_more(whole: str, text: str) -> bool:
    """Whether a value as JSON, or JSON in it, says anything beside its one text."""
    for part in itertools.islice(json_strings(whole), 1, None):
        if _says_more(part, text) if text in part else is_telling(part) and part.strip() not in text:
            return True
    return False


def _are_passages(rows: Sequence[Context], whole: str) -> bool:
    """Whether the parts of a value are passages, rather than cells of a table or fields of a status."""
    if len(rows) == 1 and rows[0].id is not None:
        return True
    if len(rows) == 1 and len(rows[0].text) <= len(whole) / 2 and not _is_hit(whole):
        return False
    return bool(rows) and all(is_telling(one.text) or is_printed(one.text) for one in rows)


def tells_nothing(text: str) -> bool:
    """Whether a text is an empty value as any language shows it, or says that nothing was found."""
    return text.strip(_EMPTY) in ("", "None", "null") or finds_nothing(text)


def is_telling(text: str) -> bool:
    """Whether a text says something, rather than names a value."""
    # Most texts are long, and their first words tell.
    return len(text.split(None, _LEAST - 1)) == _LEAST or word_count(text) >= _LEAST


def shown_instead(text: str, metadata: Any, holds: Callable[[str], bool]) -> str:
    """The text of a document, or the text of its metadata that a prompt shows in its place.

    What is searched by may be a sentence, a summary or a question. The window around it, the whole of it or
    the answer then stands in the metadata, and is longer.

    Args:
        text: The document's own text.
        metadata: What stands about it, by name.
        holds: Whether a prompt holds a text.
    """
    values = metadata.values() if isinstance(metadata, Mapping) else ()
    longer = [one for one in values if isinstance(one, str) and len(one) > len(text) and is_telling(one)]
    for one in filter(holds, longer):
        # A prompt that shows both shows more than one text of the document; a question is asked, not shown.
        if plain(text) in plain(one) or is_question(text) or not holds(text):
            return one
    return text


def said_by_command(returned: Any, given: Any = None) -> tuple[Any, bool]:
    """What a tool says that returned a graph's command, and whether that brings nothing.

    Args:
        returned: What the tool returned: an object, or the mapping that its JSON holds.
        given: What the tool was told.

    Returns:
        The message to the model that the command adds, else what was returned; and whether it goes on to
        another agent, or keeps in the state what the tool was told, and tells a model no more than that.
    """
    is_mapping = isinstance(returned, Mapping)
    if is_mapping and not returned.keys() >= _COMMAND:
        return returned, False
    update, goto = (returned[n] if is_mapping else attribute(returned, n) for n in ("update", "goto"))
    told = _told_by(update) if isinstance(update, Mapping) else None
    name, said = told or ("", returned)
    return said, _only_goes_on(goto, said) or (told is not None and _only_keeps(update, name, said, given))


def _told_by(update: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The last message to a model in what a command updates, and the name that the state keeps it under."""
    lists = ((name, value) for name, value in update.items() if isinstance(value, (list, tuple)))
    messages = ((name, one) for name, value in lists for one in value)
    told = [(name, one) for name, one in messages if (read := messages_in(one)) and read[0].role == "tool"]
    return told[-1] if told else None


def _only_keeps(update: Mapping[str, Any], messages: str, said: Any, given: Any) -> bool:
    """Whether a command puts into the state what the tool was told, and says little beside that."""
    kept = {text.strip() for name in update for text in _texts_of(update[name]) if name != messages}
    told = {text.strip() for text in _texts_of(given)}
    if not kept or not kept <= told:
        return False
    rest = whole = " ".join(message.text for message in messages_in(said))
    for text in sorted(kept, key=len, reverse=True):
        rest = rest.replace(text, " ")
    # Names of fields are repeated for each entry.
    beside = {part.strip(f"{_EMPTY},:") for part in rest.split()} - {""}
    return 2 * len(beside) <= word_count(whole) and not any(map(str.isdigit, rest))


def _texts_of(value: Any) -> Iterable[str]:
    return (text for _, text in strings_in(value))


def _only_goes_on(goto: Any, said: Any) -> bool:
    targets = goto if isinstance(goto, (list, tuple)) else (goto,)
    names = [name for one in targets if isinstance(name := getattr(one, "node", one), str)]
    text = " ".join(message.text for message in messages_in(said))
    for name in names:
        text = text.replace(name, " ")
    return bool(names) and not is_telling(text)
