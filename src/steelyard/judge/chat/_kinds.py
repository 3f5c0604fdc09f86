"""The kinds of question for a chat model: each with its wording, the shape of its answer and its parser.

A kind is one entry in `KINDS`; the prompt, the JSON schema and the reading of the reply all go by it. What a
wording says counts for `PROMPT_VERSION` in `_prompts`.

The wordings follow the definitions of the literature, in our own words: support is attribution, "according
to the source, the statement" (Rashkin et al. 2023, arXiv:2112.12870, section 3), and all of it or none, as in
Es et al. 2024 (arXiv:2309.15217, section 3), who also define generated questions; contradiction is that of
natural language inference (Bowman et al. 2015, arXiv:1508.05326), under which what is not mentioned is
neutral; claims stand alone (Choi et al. 2021, arXiv:2102.05169; Min et al. 2023, arXiv:2305.14251);
usefulness is what context precision asks of each passage, and evasion what makes an answer noncommittal, as
Ragas documents them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from steelyard.questions import (
    Answer,
    Choose,
    ChosenOption,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Level,
    Noncommittal,
    Predicate,
    Question,
    Rating,
    Relevant,
    Same,
    Sufficient,
    Supported,
    Texts,
    Unanswered,
    Useful,
    YesNo,
)
from steelyard.scores import Evidence

_BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
_STRING: Mapping[str, Any] = {"type": "string"}
_INTEGER: Mapping[str, Any] = {"type": "integer"}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": _STRING}
_POINTER = ' "context": number of the deciding context, 0 for none.'
_PLACES = {
    "contexts": "the contexts",
    "reference_contexts": "the expected contexts",
    "reference": "the reference",
    "answer": "the answer",
}
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_MISSING = object()

Wording = tuple[str, str]
"""The instruction, which many questions share and which may be empty, and the question's own line."""


@dataclass(frozen=True, slots=True, repr=False)
class RepliedValue:
    """What stands under a question's key in a reply."""

    value: Any
    """Any complete JSON value; an object as a rule."""
    contexts: int
    """How many contexts the request showed."""

    def pick(self, name: str) -> Any:
        """A named field of the answer, or the answer itself where the model left the object out."""
        return self.value.get(name, _MISSING) if isinstance(self.value, dict) else self.value

    @property
    def reason(self) -> str:
        reason = self.value.get("reason") if isinstance(self.value, dict) else None
        return reason.strip() if isinstance(reason, str) else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatKind:
    """How one kind of question is put to a chat model."""

    wording: Callable[[Any], Wording]
    """From a question of this kind to its words."""
    shape: Callable[[Any], Mapping[str, Any]]
    """The JSON schema of the answer's fields, without the reason."""
    parse: Callable[[Any, RepliedValue], Answer]
    """From what the model gave to the answer, or to why there is none."""
    reasoned: bool = True
    """Whether a reason may go before the answer, so that the verdict follows from it."""


def one_line(text: str) -> str:
    """The text without line breaks of any kind, so that it cannot start a line of its own."""
    return " ".join(text.split())


def malformed(detail: str) -> Unanswered:
    """The answer to a question that has no usable one."""
    return Unanswered(cause="malformed_answer", detail=detail)


# Yes or no.


def _supported(question: Supported) -> Wording:
    if question.passage is not None:
        letter = "c" if question.by == "contexts" else "e"
        place = f"context {letter}{question.passage + 1}"
    else:
        place = _PLACES[question.by]
    follows = f"According to {place} alone, is the statement true? No if any part of it does not follow."
    return follows, question.claim


def _contradicted(question: Contradicted) -> Wording:
    place = _PLACES[question.by]
    places = f"any of {place}" if question.by.endswith("contexts") else place
    excludes = f"Does what {places} say exclude that the statement is true? Silence does not exclude it."
    return excludes, question.claim


def _relevant(question: Relevant) -> Wording:
    what = "sentence help to answer" if question.of == "contexts" else "statement address"
    return f"Does the {what} the question?", question.text


def _useful(question: Useful) -> Wording:
    instruction = f"Was the context useful in arriving at the {question.toward} to the question?"
    return instruction, f"context c{question.context + 1}"


def _points(question: Question) -> bool:
    """Whether the answer also names the context that decides."""
    match question:
        case Supported(by="contexts", passage=None) | Contradicted(by="contexts"):
            return True
        case _:
            return False


def _verdict_shape(question: Question) -> Mapping[str, Any]:
    return {**({"context": _INTEGER} if _points(question) else {}), "verdict": _BOOLEAN}


def _verdict(question: Question, given: RepliedValue) -> Answer:
    """A verdict with the context it points at. A yes that rests on a missing context is malformed."""
    value = given.pick("verdict")
    verdict = _WORDS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(verdict, bool):
        return malformed("a verdict that is neither true nor false")
    plain = YesNo(value=verdict, reason=given.reason)
    context = given.value.get("context") if isinstance(given.value, dict) else None
    if not _points(question) or isinstance(context, bool) or not isinstance(context, int) or context == 0:
        return plain
    if 1 <= context <= given.contexts:
        return YesNo(value=verdict, reason=given.reason, evidence=(Evidence(context=context - 1),))
    return malformed(f"it rests on context {context}, and there are {given.contexts}") if verdict else plain


# One of several.


def _rating(question: Rating) -> Wording:
    described = [(value, one_line(text)) for value, text in question.levels if text.strip()]
    levels = "; ".join(f"{value:g} = {text}" for value, text in described)
    if len(described) < len(question.levels):
        levels += "; the numbers between them are steps from the one to the other"
    return f"Which level fits best? {levels}.", question.instruction


def _level_shape(question: Rating) -> Mapping[str, Any]:
    values = [int(value) if value == int(value) else value for value, _ in question.levels]
    whole = all(isinstance(value, int) for value in values)
    return {"level": {"type": "integer" if whole else "number", "enum": values}}


def _level(question: Rating, given: RepliedValue) -> Answer:
    value = given.pick("level")
    offered = [level for level, _ in question.levels]
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in offered:
        return malformed("a level that is not on the scale")
    return Level(value=float(value), reason=given.reason)


def _sufficient_shape(question: Sufficient) -> Mapping[str, Any]:
    return {"missing": _STRING, **_level_shape(question)}


def _sufficient(question: Sufficient) -> Wording:
    instruction, line = _rating(question)
    return f'{instruction} "missing": what the contexts lack, in one sentence; empty if nothing.', line


def _sufficiency(question: Sufficient, given: RepliedValue) -> Answer:
    answer = _level(question, given)
    missing = given.value.get("missing") if isinstance(given.value, dict) else None
    if not isinstance(answer, Level):
        return answer
    return replace(answer, reason=missing.strip() if isinstance(missing, str) else "")


def _choose(question: Choose) -> Wording:
    options = "; ".join(map(one_line, question.options))
    return "Which option fits best?", f"{question.instruction} Options: {options}."


def _option_shape(question: Choose) -> Mapping[str, Any]:
    return {"option": {"type": "string", "enum": list(question.options)}}


def _option(question: Choose, given: RepliedValue) -> Answer:
    option = given.pick("option")
    if not isinstance(option, str) or option not in question.options:
        return malformed("no option that was offered")
    return ChosenOption(value=option, reason=given.reason)


def _texts(question: Question, given: RepliedValue) -> Answer:
    items = given.value
    if isinstance(items, dict):
        lists = [entry for entry in items.values() if isinstance(entry, list)]
        items = lists[0] if len(lists) == 1 else None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return malformed("not a list of texts")
    kept = [item.strip() for item in items if item.strip()]
    return Texts(items=tuple(kept[: question.count] if isinstance(question, GeneratedQuestions) else kept))


def _yes_no(wording: Callable[[Any], Wording]) -> ChatKind:
    return ChatKind(wording=wording, shape=_verdict_shape, parse=_verdict)


def _list_of(name: str, instruction: str, line: str) -> ChatKind:
    """Texts of a name; `instruction` and `line` have the question's own fields in braces."""
    return ChatKind(
        wording=lambda question: (instruction, line.format(question=question)),
        shape=lambda _: {name: _TEXTS},
        parse=_texts,
        reasoned=False,
    )


KINDS: Mapping[type[Question], ChatKind] = {
    Supported: _yes_no(_supported),
    Contradicted: _yes_no(_contradicted),
    Useful: _yes_no(_useful),
    Relevant: _yes_no(_relevant),
    Same: _yes_no(
        lambda one: (f"Does the {one.among} make this statement too, in whatever words?", one.claim)
    ),
    Noncommittal: _yes_no(
        lambda _: (
            "",
            "Does the answer evade the question: is it vague, does it say that it does not know, or nothing "
            "to the point?",
        )
    ),
    Predicate: _yes_no(lambda one: ("Is the criterion met?", one.criterion)),
    Rating: ChatKind(wording=_rating, shape=_level_shape, parse=_level),
    Sufficient: ChatKind(wording=_sufficient, shape=_sufficient_shape, parse=_sufficiency, reasoned=False),
    Choose: ChatKind(wording=_choose, shape=_option_shape, parse=_option),
    Claims: _list_of(
        "claims",
        "List the factual claims of a text, in its language: one full sentence each, to be understood alone, "
        "with pronouns and answers to the question made complete. No claim makes an empty list.",
        "claims of the {question.of}",
    ),
    Entities: _list_of(
        "entities",
        "List the named entities of a text as written: people, places, organisations, dates, numbers, works.",
        "entities of the {question.of}",
    ),
    GeneratedQuestions: _list_of(
        "questions",
        "",
        "Write {question.count} different questions that the answer would answer, in the language of the "
        "answer.",
    ),
}
"""Everything but embeddings."""


def worded(question: Question) -> Wording:
    """A question in words, with the wish for the context that decides where one can be named."""
    instruction, line = KINDS[type(question)].wording(question)
    return instruction + (_POINTER if _points(question) else ""), line
