"""What came into a turn from outside of a model: the only texts that an answer can rest on.

Retrievals, tools, documents that steps made or were given, and other texts that a step or a function
returned, a template was filled with, or the root was given. No name decides: what stands in the prompt of the
answer counts, what only a model wrote does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.record import Context
from steelyard.recording.building._look_ups import (
    LookUps,
    as_shown,
    look_ups_of,
    rows_named,
    told_again,
    without_left,
)
from steelyard.recording.building._steps import Step, Steps, is_telling, tells_nothing
from steelyard.recording.provenance import (
    find_passages,
    is_printed,
    names_passages,
    plain,
    unescaped,
    word_count,
)
from steelyard.recording.reading import (
    Leaf,
    Message,
    asked_in,
    documents_in,
    is_schema,
    leaves_in,
    messages_in,
    state_of,
    strings_in,
)
from steelyard.recording.reading._passages import unique
from steelyard.text import sentences

_LEAST_CUT = 40
_CUT = ("\n", "\r", ".", "…", "[", "(", '"', "'", "<", "`", "|", "}", "]")
_LEAST_SENTENCE = 20


def reaches(text: str, prompts: Sequence[str]) -> bool:
    """Whether a passage stands in one of the prompts: whole, cut at its end, or most of its sentences."""
    # A list as JSON has its texts escaped.
    forms = dict.fromkeys(form for prompt in prompts for form in (prompt, unescaped(prompt)))
    return any(test(text, form) for test in (_is_whole, _is_cut, _is_mostly) for form in forms)


def _is_whole(text: str, prompt: str) -> bool:
    form = plain(text)
    return bool(form) and form in plain(prompt)


def _is_cut(text: str, prompt: str) -> bool:
    """Whether a beginning of it stands there that ends as what was cut ends: not within other words."""
    text = text.strip()
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] in prompt else (low, middle - 1)
    if low < _LEAST_CUT:
        return False
    # What follows each place where it stands.
    _, *rests = prompt.split(text[:low].rstrip())
    return any(not rest or rest.startswith(_CUT) for rest in rests)


def _is_mostly(text: str, prompt: str) -> bool:
    form = plain(prompt)
    said = [plain(one.text) for one in sentences(text)]
    sizes = [(len(one), len(one) >= _LEAST_SENTENCE and one in form) for one in said]
    return 2 * sum(size for size, is_there in sizes if is_there) > sum(size for size, _ in sizes)


_MOST_TEXTS = 400
_PASSING = ("chain", "prompt")


@dataclass(frozen=True, slots=True)
class Text:
    """A text beside documents, where it was first seen."""

    name: str
    """The name that it stood under; empty if it was all that a step returned."""
    text: str = field(repr=False)
    """What it says."""
    at: float
    """When it was first seen, on the clock of the turn's steps."""
    is_given: bool
    """Whether the root was given it, so that nothing in the turn made it."""
    column: tuple[float, int, str] | None = None
    """The column that it stood in, of a list of mappings: when that was seen, which list, and its name."""
    row: tuple[float, int] | None = None
    """The entry of a list that it stood in beside other texts: when that was seen, and which."""


@dataclass(slots=True, repr=False)
class Passed:
    """What went from step to step."""

    value: Any
    at: float
    until: float
    """When the step ended that was given it."""
    is_given: bool = False
    """Whether the root was given it."""
    is_returned: bool = False


@dataclass(slots=True, repr=False)
class Sources:
    """Everything that came into a turn from outside of a model, before the prompt decides."""

    reranked: list[Context] = field(default_factory=list)
    """What the last step after the retrievals left of them, in its order; it may have changed their texts."""
    made: list[Context] = field(default_factory=list)
    """Documents that steps made or were given."""
    kept: list[Context] = field(default_factory=list)
    """Documents in what the root returned; a thread's state may hold an earlier turn's."""
    before: list[list[Context]] = field(default_factory=list)
    """What look-ups before the turn found that no answer has used yet, by run, latest first."""
    queries_before: list[str] = field(default_factory=list)
    """What those look-ups were asked, latest first."""
    texts: list[Text] = field(default_factory=list)
    """Other texts, by when they were first seen."""
    look_ups: LookUps = field(default_factory=LookUps)
    """What was looked up in the turn."""
    looked_up: bool = False
    """Whether anything was looked up, in the turn or just before it, whatever it found."""
    passed: list[Passed] = field(default_factory=list)
    """What went from step to step, in order."""

    @property
    def found(self) -> list[Context]:
        """What retrievals and tools returned, in order."""
        return self.look_ups.found

    @property
    def queries(self) -> list[str]:
        """What retrievers and tools were asked."""
        return self.look_ups.queries

    @property
    def documents(self) -> tuple[Context, ...]:
        """Every passage that is known as such, each once."""
        left = {one.text.strip(): one for one in self.reranked}
        found = (left.get(one.text.strip(), one) for one in self.found)
        before = (one for run in self.before for one in run)
        return unique((*found, *self.reranked, *self.made, *before, *self.kept))


def sources_of(turn: Steps, *, tool_contexts: Collection[str] = ()) -> Sources:
    """Gather what came into a turn.

    Args:
        turn: The turn.
        tool_contexts: The tools whose results count, if the application names them; else all do.
    """
    look_ups = look_ups_of(turn, tool_contexts)
    made = Sources(look_ups=look_ups, looked_up=look_ups.any)
    prompts = [text for call in turn.calls for text in call.prompts]
    look_ups.found = _telling(as_shown(look_ups.found, prompts))
    known = {context.text.strip() for context in made.found}
    for steps in reversed(turn.before):
        earlier = look_ups_of(Steps(steps=steps), tool_contexts)
        earlier.found = list(as_shown(earlier.found, prompts))
        if earlier.found and not any(reaches(one.text, prompts) for one in earlier.found):
            continue  # of another turn, or used by none
        made.looked_up = made.looked_up or earlier.any
        made.queries_before += earlier.queries
        if fresh := _fresh(earlier.found, known):
            made.before.append(fresh)
    made.before.append(_fresh(told_again(turn, tool_contexts), known))
    made.looked_up = made.looked_up or has_empty_place(turn)
    made.reranked = _reranked(turn, made.found)
    _add_documents(made, turn, known | {one.text.strip() for one in made.reranked})
    made.passed = list(_passed(turn))
    made.texts = [*_texts(made.passed), *_put_in(turn, made.passed)]
    _leave_out_said(made, turn)
    return made


def _reranked(turn: Steps, found: Iterable[Context]) -> list[Context]:
    """What the steps after the retrievals left, each with the query and the hop that brought it."""
    steps = [one for one in turn.steps if one.kind == "rerank" and not one.is_within("rerank", "tool")]
    by_text: dict[str, Context] = {}
    for one in found:
        by_text.setdefault(one.text.strip(), one)
    left = unique(_telling(one for step in steps for one in step.contexts or ()))
    pairs = ((one, by_text.get(one.text.strip())) for one in left)
    return [one if same is None else replace(one, query=same.query, hop=same.hop) for one, same in pairs]


def _telling(found: Iterable[Context]) -> list[Context]:
    """What was found, without rows of a table that are none: as a text they say that nothing was found."""
    return [one for one in found if not tells_nothing(one.text)]


def has_empty_place(turn: Steps) -> bool:
    """Whether what a state or a template's variables hold under a name for passages tells of nothing."""
    values = [value for step in turn.steps if step.kind != "tool" for value in (step.given, step.returned)]
    return any(
        names_passages(str(name)) and (tells_nothing(value) if isinstance(value, str) else value == [])
        for fields in (turn.given, *values)
        for name, value in (fields.items() if isinstance(fields, Mapping) else ())
    )


def _leave_out_said(made: Sources, turn: Steps) -> None:
    """Leave out what only repeats what engines in the turn were asked, and what they and models replied."""
    engines = list(_engines(made, turn))
    if not engines:
        return
    said = [text for step in engines for text in (asked_in(step.given), _reply(step.returned))]
    said += [*made.queries, *(reply for call in turn.calls for reply in call.replies)]
    parts = sorted({plain(one) for one in said} - {""}, key=len, reverse=True)

    def is_news(one: Context | Text) -> bool:
        rest = plain(one.text)
        for part in parts:
            rest = rest.replace(part, " ")
        # Labels are repeated for each engine.
        return is_telling(" ".join(dict.fromkeys(rest.split())))

    made.reranked, made.made = list(filter(is_news, made.reranked)), list(filter(is_news, made.made))
    made.kept, made.texts = list(filter(is_news, made.kept)), list(filter(is_news, made.texts))


def _engines(made: Sources, turn: Steps) -> Iterator[Step]:
    """Steps that looked something up and answered with words of their own, for another step to go on with."""
    inner = {one: None for step in turn.retrievals for one in step.above() if one.parent is not None}
    found = [one.text for one in (*made.found, *made.reranked)]
    for step in inner:
        if step.kind not in ("chain", "rerank") or not (reply := _reply(step.returned)):
            continue
        # What only puts passages together replies nothing.
        if not any(one.found for one in find_passages(found, [reply])):
            yield step


def _reply(returned: Any) -> str:
    """What a step replied in words: a text, or the only one beside data."""
    if not isinstance(returned, Mapping):
        return returned if isinstance(returned, str) else ""
    texts = [value for value in returned.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else ""


def _add_documents(made: Sources, turn: Steps, known: set[str]) -> None:
    """Documents among what steps returned and what the root was given or returned."""
    hop = 1 + max((context.hop for context in made.found), default=-1)
    steps = [step for step in turn.steps if step.kind in _PASSING]
    for value in (turn.given, *(value for step in steps for value in (step.given, step.returned))):
        made.made += _fresh(documents_in(value, known=known), known, hop)
    made.made += _fresh(unique(one for step in steps for one in step.contexts or ()), known, hop)
    kept = _fresh(unique((*documents_in(turn.returned, known=known), *rows_named(turn))), known, hop)
    made.made, made.kept = without_left(turn, made.made), without_left(turn, kept)


def _fresh(documents: Iterable[Context], known: set[str], hop: int | None = None) -> list[Context]:
    """The documents that are not known yet; `known` takes their texts in."""
    fresh = [one for one in documents if one.text.strip() not in known]
    known.update(one.text.strip() for one in fresh)
    return fresh if hop is None else [replace(one, hop=hop) for one in fresh]


def _texts(every: Iterable[Passed]) -> list[Text]:
    """Every other text, once, by when it was first seen."""
    seen: dict[str, Text | None] = {}
    until: dict[str, float] = {}
    for passed in every:
        for leaf in leaves_in(passed.value):
            one = seen.get(leaf.text)
            if leaf.text not in seen and len(seen) < _MOST_TEXTS:
                seen[leaf.text] = _text(leaf, passed) if _counts(leaf) else None
                until[leaf.text] = passed.until
            elif one is not None:
                seen[leaf.text] = _seen_again(one, leaf, passed, until[leaf.text])
    return [one for one in seen.values() if one is not None]


PUT_IN = "message"
"""The name of a text that code put into a conversation in the user's place."""


def _put_in(turn: Steps, every: Iterable[Passed]) -> Iterator[Text]:
    """What steps put behind the user's last words, in the user's place: mostly what they found."""
    for passed in every:
        values = (state_of(passed.value) or {"": passed.value}).values() if passed.is_returned else ()
        for value in values:
            messages = messages_in(value) if isinstance(value, (list, tuple)) else ()
            told = _since(messages, turn.given) if messages else ()
            yield from (Text(PUT_IN, text, passed.at, is_given=False) for text in told if is_telling(text))


def _since(messages: Sequence[Message], root: Any) -> list[str]:
    """What was said in the user's place since what the root was given; what was answered is older."""
    given = {one.text for one in messages_in(root)} | {text for _, text in strings_in(root)}
    asked = [at for at, one in enumerate(messages, 1) if one.text in given]
    replied = (at for at, one in enumerate(messages, 1) if one.role == "assistant")
    # Of a whole conversation that holds neither, the user's message is what asks, in other words.
    whole = len(messages) if any(one.role == "system" for one in messages) else 0
    return [one.text for one in messages[max(asked or replied, default=whole) :] if one.role == "user"]


def _text(leaf: Leaf, passed: Passed) -> Text:
    at = passed.at
    column = (at, leaf.table, leaf.name) if leaf.table else None
    return Text(leaf.name, leaf.text, at, passed.is_given, column, (at, leaf.row) if leaf.row else None)


def _seen_again(one: Text, leaf: Leaf, passed: Passed, until: float) -> Text:
    row = (passed.at, leaf.row) if leaf.row and one.row is None else one.row
    # What a step is told to have been given came to a stream only as another step returned it.
    at = passed.at if passed.is_returned and one.at < passed.at <= until else one.at
    return one if row == one.row and at == one.at else replace(one, row=row, at=at)


def _counts(leaf: Leaf) -> bool:
    is_named = names_passages(leaf.name) and word_count(leaf.text) > 1
    return (is_telling(leaf.text) or is_named or is_printed(leaf.text)) and not is_schema(leaf.text)


def _passed(turn: Steps) -> Iterator[Passed]:
    start = float("-inf")
    yield Passed(turn.given, start, start, is_given=True)
    steps = [step for step in turn.steps if step.kind in _PASSING]
    passed = [Passed(step.given, step.at, _end(step)) for step in steps]
    chains = [step for step in steps if step.kind == "chain"]
    passed += [Passed(step.returned, _end(step), _end(step), is_returned=True) for step in chains]
    yield from (one for one in sorted(passed, key=lambda one: one.at) if one.value is not None)


def _end(step: Step) -> float:
    return step.at if step.ended is None else step.ended
