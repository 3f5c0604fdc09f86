"""Which model calls of a turn made its answer, told by what flowed from one into the next.

A turn asks models for more than the answer: it rewrites the question, grades documents, reranks, routes. What
stood in those prompts is not what the answer was made from. So the calls that count are those whose reply is
found in the answer, and, going back, those whose reply stands in the prompt of such a call (the parts of a
map-reduce, the drafts of a refinement).
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property, reduce

from steelyard.recording.provenance._find import find_passages
from steelyard.recording.provenance._notes import Note
from steelyard.recording.provenance._words import plain, plain_line, words
from steelyard.recording.reading._questions import is_question

_LABEL_WORDS = 3  # labels and verdicts have no more words
_TELLING = 4  # fewer words than this stand anywhere by chance
_FED_LONG = 8  # from so many words on, most of a reply is evidence as all of it is
_LEAVES = 2000  # texts in one JSON reply that are read, so that a huge one costs no second
_MOST_LABELS = 10  # of a reply, behind which its answer may stand
_MOST_LINES = 30  # an instruction that tells what a call is for stands among the first lines
_MOST_CALLS = 500  # an agent may make thousands; the answer came of the last ones
_VERDICTS_WORDS = """
yes no true false relevant irrelevant grounded useful correct incorrect ambiguous supported unsupported pass
fail websearch vectorstore generate retrieve none null partially fully not ok valid invalid continue end
"""
_VERDICTS = frozenset(_VERDICTS_WORDS.split())
_VERDICT_KEYS_WORDS = """
binary_score score grade verdict relevant is_relevant relevance rating label datasource route next
destination decision grounded is_supported is_useful relevance_score confidence ranking ranked_documents
reason reasoning explanation
"""
_VERDICT_KEYS = frozenset(_VERDICT_KEYS_WORDS.split())
_QUERY_KEYS_WORDS = """
query queries search_query search_queries sub_questions rewritten_query keywords standalone_question
improved_question rephrased_question next_inputs subquestions
"""
_QUERY_KEYS = frozenset(_QUERY_KEYS_WORDS.split())
_NUMBERING = re.compile(r"[\s\d\[\]>,.:;()=|-]+")


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One call of a language model within a turn, as far as it was seen."""

    prompts: tuple[str, ...] = field(default=(), repr=False)
    """The texts that the model was sent, one a message."""
    reply: str = field(default="", repr=False)
    """What it said as text; the parts of a stream joined."""
    arguments: tuple[str, ...] = field(default=(), repr=False)
    """The arguments of the tools that it called, each as JSON."""
    structured: str = field(default="", repr=False)
    """Its structured output, as JSON."""
    started: float = 0.0
    """When it started, on any clock; only the order counts."""
    name: str = ""
    """The step or parent that made the call, where that is known."""

    @cached_property
    def replies(self) -> tuple[str, ...]:
        """Everything it said, in each form."""
        return tuple(text for text in (self.reply, self.structured, *self.arguments) if text.strip())

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The first lines that it said, as they are compared; kept, since each of the next runs asks."""
        lines = (line for reply in self.replies for leaf in json_strings(reply) for line in leaf.split("\n"))
        return tuple(itertools.islice(filter(None, map(plain_line, lines)), _MOST_LINES))


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerCalls:
    """The calls that an answer came out of, as indices into the calls given."""

    made: tuple[int, ...] = ()
    """Those whose reply is in the answer, in order of start."""
    fed: tuple[int, ...] = ()
    """Those whose reply stands in the prompt of one that counts, in the order in which it stands there: calls
    that ran side by side have no other."""
    notes: tuple[Note, ...] = ()
    """`answer_call_unknown` where no reply was found in the answer, `answer_call_assumed` where there was
    only one call and its reply was not seen."""

    @property
    def known(self) -> bool:
        """Whether any call was found."""
        return bool(self.made)

    @property
    def all(self) -> tuple[int, ...]:
        """Both kinds; what fed an answer before what made it."""
        return (*self.fed, *self.made)


def calls_behind(calls: Sequence[ModelCall], answer: str, *, queries: Iterable[str] = ()) -> AnswerCalls:
    """Find the calls that made an answer.

    Args:
        calls: All model calls of the turn.
        answer: What the user was shown.
        queries: What retrievers and tools were asked. A call that replied with one of these wrote a query
            (or, for HyDE, an invented passage), not a part of the answer.

    Returns:
        The calls. None, with a note, where no reply is found in the answer: prompts of graders and rewriters
        are never taken for want of better ones.

    Example:
        >>> grade = ModelCall(prompts=("Relevant? Rome has seven hills.",), reply='{"binary_score": "yes"}')
        >>> write = ModelCall(prompts=("Rome has seven hills. How many?",), reply="Seven.", started=1)
        >>> calls_behind([grade, write], "Seven.").made
        (1,)
    """
    asked = {tuple(words(query)) for query in queries}
    # By time rather than by place: parallel calls end in any order.
    order = sorted(range(len(calls)), key=lambda at: calls[at].started)[-_MOST_CALLS:]
    # What a model called a tool with may be what another one said before: that did not write the query.
    called = {tuple(words(text)) for at in order for one in calls[at].arguments for text in json_strings(one)}
    views = {at: _View(calls[at], asked if calls[at].arguments else asked - called) for at in order}
    made = _made(views, order, answer)
    if not made:
        # A single call whose reply nobody saw made the answer, unless it is a grader's by its kind.
        only = [at for at in order if not views[at].helps]
        if len(calls) == 1 and only and not calls[0].replies:
            return AnswerCalls(made=(0,), notes=("answer_call_assumed",))
        return AnswerCalls(notes=("answer_call_unknown",) if calls else ())
    return AnswerCalls(made=made, fed=_fed(views, order, made, tuple(words(answer))))


class _View:
    """A call with the words of its replies."""

    def __init__(self, call: ModelCall, asked: set[tuple[str, ...]]) -> None:
        self.call = call
        self.texts = list(dict.fromkeys(leaf for reply in call.replies for leaf in json_strings(reply)))
        self.rows = [tuple(words(text)) for text in self.texts]
        self.helps = is_intermediate_output(call.replies) or any(row in asked for row in self.rows if row)

    @cached_property
    def quotes(self) -> set[str]:
        """The fields of a form that its own prompt holds, beside others that say something new."""
        fields = self.texts[1:]
        shown = plain("\n".join(self.call.prompts)) if len(fields) > 1 else ""
        copied = {text for text in fields if plain(text) in shown}
        is_new = any(len(words(text)) >= _TELLING for text in fields if text not in copied)
        return copied if is_new else set()


def json_strings(reply: str) -> Iterator[str]:
    """A reply, and where it is JSON the texts in it."""
    yield reply
    plain = strip_code_fence(reply)
    if plain[:1] not in ("{", "["):
        return
    try:
        waiting = [json.loads(plain)]
    except (ValueError, RecursionError):
        return
    for _ in range(_LEAVES):
        if not waiting:
            # A bad reply is text like any other; it was yielded as such above.
            return
        value = waiting.pop()
        if isinstance(value, str) and value.strip():
            yield value
        elif isinstance(value, dict):
            # Reversed, since the stack gives back last what is put in first: texts keep their order.
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif value is not None and not isinstance(value, (str, bool)):
            yield str(value)


def strip_code_fence(text: str) -> str:
    """A text without the code fence that models put around JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3].strip()
    return text


def is_intermediate_output(replies: Sequence[str]) -> bool:
    """Whether a reply is a verdict, a score, a route, an order of passages, or queries, by its kind alone.

    Only what is plain from the reply counts; a short text such as "Paris" is not a helper's.
    """
    return bool(replies) and all(map(_is_helper_text, replies))


def is_score(reply: str) -> bool:
    """Whether a reply is a form of verdicts alone: numbers, or true or false with reasons and queries."""
    form = form_of(reply)
    is_plain = all(isinstance(value, (int, float)) for value in form.values())
    has_verdict = any(isinstance(value, bool) for value in form.values())
    return _is_verdict(form) and (has_verdict or (is_plain and form.keys() <= _VERDICT_KEYS))


def form_of(reply: str) -> dict[str, object]:
    """The fields of a reply that is one JSON object, with their names in lower case; none of any other."""
    text = strip_code_fence(reply)
    if text[:1] != "{":
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {str(key).lower(): one for key, one in value.items()} if isinstance(value, dict) else {}


def _is_verdict(form: Mapping[str, object]) -> bool:
    """Whether a form has verdicts and queries alone: by its names, or since it says true or false."""
    named = _VERDICT_KEYS | _QUERY_KEYS
    return bool(form) and all(name in named or isinstance(value, bool) for name, value in form.items())


def _is_helper_text(reply: str) -> bool:
    plain = strip_code_fence(reply)
    if plain[:1] == "{":
        return _is_verdict(form_of(plain))
    # Verdicts, numbers and rankings are short; a long text that begins like one is an answer.
    if len(plain) > 400:
        return False
    row = words(plain)
    if row and len(row) <= _LABEL_WORDS and set(row) <= _VERDICTS:
        return True
    return bool(plain) and _NUMBERING.fullmatch(plain) is not None


def _made(views: dict[int, _View], order: list[int], answer: str) -> tuple[int, ...]:
    """The last call that said the whole answer; else those whose replies it was put together from."""
    row = tuple(words(answer))
    if not row:
        return ()
    same = [at for at in order if row in views[at].rows]
    # A chain that repeats the answer in a last step has it from there; verdicts only if nothing else said it.
    if same:
        serious = [at for at in same if not views[at].helps]
        return ((serious or same)[-1],)
    return _put_together({at: views[at] for at in order if not views[at].helps}, row, answer)


def _put_together(able: dict[int, _View], row: tuple[str, ...], answer: str) -> tuple[int, ...]:
    """The calls whose replies stand in an answer, or hold it; verdicts on these only if nothing else does."""
    # What an earlier draft shares with the reply that the answer is does not make the answer of both.
    whole = [at for at, one in able.items() if _stands_in(answer, one)]
    rest = reduce(lambda text, at: text.replace(able[at].call.reply.strip(), "\n"), whole, answer)
    left = tuple(words(rest))
    said = [
        at
        for at, one in able.items()
        if at in whole or _holds(row, one) or _is_part_of(one.texts, left, rest)
    ]
    said = said or [at for at, one in able.items() if any(_shares_most(row, part) for part in one.rows)][-1:]
    return tuple([at for at in said if not _judges(able[at], able.values())] or said)


def _stands_in(answer: str, view: _View) -> bool:
    return view.call.reply.strip() in answer and len(words(view.call.reply)) >= _FED_LONG


def _judges(view: _View, others: Iterable[_View]) -> bool:
    """Whether a call says true or false of what another one replied, which it was shown."""
    if not any(isinstance(value, bool) for value in form_of(view.call.reply).values()):
        return False
    shown = plain("\n".join(view.call.prompts))
    return any(plain(one.call.reply) in shown for one in others if one.call.reply.strip())


def _shares_most(answer: tuple[str, ...], row: tuple[str, ...]) -> bool:
    """Whether most of a short reply stands in the answer in a row: code made links of its citations."""
    if len(row) >= 2 * _FED_LONG:
        return False
    run = SequenceMatcher(None, row, answer, autojunk=False).find_longest_match().size
    return run >= max(_TELLING, len(row) / 2)


def _holds(answer: tuple[str, ...], view: _View) -> bool:
    """Whether an answer is a part of a reply: what follows "Final answer:", a line, a stream that was cut."""
    if any(_is_part(answer, row) for row in view.rows if len(answer) <= len(row)):
        return True
    return any(tuple(words(line)) == answer for line in view.call.lines)


def _is_part(answer: tuple[str, ...], row: tuple[str, ...]) -> bool:
    size = len(answer)
    # The text behind "Final answer:" ends a reply; a stream that was cut ends within a word.
    is_last = row[-size:] == answer
    is_cut = size > _TELLING and row[: size - 1] == answer[:-1] and row[size - 1].startswith(answer[-1])
    return is_last or is_cut or _contains(row, answer, least=_TELLING)


def _contains(row: tuple[str, ...], part: tuple[str, ...], *, least: int) -> bool:
    return len(part) >= least and f" {' '.join(part)} " in f" {' '.join(row)} "


def _is_part_of(replies: list[str], row: tuple[str, ...], answer: str) -> bool:
    """Whether a reply, or most of it, stands in the answer."""
    for reply in replies:
        said = tuple(words(reply))
        # What stands behind "Final answer:" is put together with that of others.
        ends = (tuple(words(one)) for one in _ends_of(reply))
        if any(_contains(row, one, least=_TELLING) for one in (said, *ends)):
            return True
        if len(said) >= _FED_LONG:
            # Both ways round: an answer may add a greeting to the reply, or leave its first part out.
            there, back = find_passages([reply], [answer])[0], find_passages([answer], [reply])[0]
            if (there.found and there.seen >= 0.5) or (back.found and back.seen >= 0.5):
                return True
    return False


def _ends_of(reply: str) -> Iterator[str]:
    """What stands behind each of the last labels of a reply, to its end."""
    end = len(reply)
    for _ in range(_MOST_LABELS):
        end = reply.rfind(":", 0, end)
        if end < 0:
            return
        yield reply[end + 1 :]


def _fed(
    views: dict[int, _View], order: list[int], made: tuple[int, ...], answer: tuple[str, ...]
) -> tuple[int, ...]:
    """Going back from the calls that made the answer, those whose reply stands in a prompt that counts."""
    levels: list[list[int]] = []
    # Without the other fields of a form.
    said = {row for at in made for row in views[at].rows if _contains(answer, row, least=1)}
    left = [at for at in order if at not in made and not _asks(views[at], said)]
    reached = list(made)
    while reached and left:
        shown = (
            at
            for at, text in _shown(views, left, reached)
            # A refinement that changed nothing was offered what it replied, and is part of the answer.
            if tuple(words(text)) in said or not _offered(text, views[at].call.prompts)
        )
        reached = list(dict.fromkeys(shown))
        levels.append(reached)
        left = [at for at in left if at not in reached]
    return tuple(at for level in reversed(levels) for at in level)


def _shown(views: dict[int, _View], left: list[int], reached: list[int]) -> list[tuple[int, str]]:
    """The replies of calls, or most of each, that the prompts of later calls hold, in their order there."""
    prompts = [text for at in reached for text in views[at].call.prompts]
    # A call that began after all of these cannot have fed them.
    latest = max(views[at].call.started for at in reached)
    texts = [(at, text) for at in left for text in views[at].texts]
    seen = find_passages([text for _, text in texts], prompts)
    held = [(s.position or 0, *one) for one, s in zip(texts, seen, strict=True) if s.found and s.seen >= 0.5]
    since = [(at, text) for _, at, text in sorted(held) if views[at].call.started <= latest]
    able = [(at, text) for at, text in since if text not in views[at].quotes]
    return _once_each(able, views, prompts)


def _once_each(
    held: list[tuple[int, str]], views: dict[int, _View], prompts: list[str]
) -> list[tuple[int, str]]:
    """Of calls that replied the same the last ones, as many as the prompts hold that reply."""
    same: dict[tuple[str, ...], dict[int, None]] = {}
    for at, _ in held:
        same.setdefault(tuple(views[at].texts), {})[at] = None
    if all(len(calls) == 1 for calls in same.values()):
        return held
    shown = "\n".join(map(plain, prompts))
    left: set[int] = set()
    for texts, calls in same.items():
        longest = sorted(map(plain, texts), key=len, reverse=True)
        count = next((found for text in longest if text and (found := shown.count(text))), 0)
        left.update(sorted(calls, key=lambda at: views[at].call.started)[-count:])
    return [one for one in held if one[0] in left]


def _asks(view: _View, said: set[tuple[str, ...]]) -> bool:
    """Whether a call helps, or replied with a question and not the answer: a writer of sub-questions."""
    told = "\n".join(view.texts[1:]) or view.call.reply
    lines = [line for line in told.split("\n") if line.strip()]
    return view.helps or (bool(lines) and all(map(is_question, lines)) and said.isdisjoint(view.rows))


def _offered(reply: str, prompts: Sequence[str]) -> bool:
    """Whether a short reply stood in its own prompt, such as a label that a router may choose.

    Answers are often words of a passage too, so that two or three have to be set off there as a label is.
    """
    row = words(reply)
    if 1 < len(row) <= _LABEL_WORDS:
        # A single name is offered by many a passage; only a label is set off on both sides.
        return find_passages([reply], prompts)[0].found is True
    return len(row) == 1 and any(_contains(tuple(words(text)), tuple(row), least=1) for text in prompts)
