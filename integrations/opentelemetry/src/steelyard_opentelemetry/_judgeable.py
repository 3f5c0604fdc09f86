"""Whether spans that belong together hold a whole turn, and whether a record can come of it.

Steps of turns look like turns: what retrieves and formats, grades, routes, indexes, evaluates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from steelyard.recording.provenance import is_intermediate_output, is_turn
from steelyard.recording.reading import is_question
from steelyard_opentelemetry._build import failure
from steelyard_opentelemetry._evidence import FoundPassages, evidence_of
from steelyard_opentelemetry._payload import loaded, squeezed
from steelyard_opentelemetry._turn import EMPTY, Turn

_GIVEN = "SummaryIndexRetriever"
_SYNTHESIS = re.compile(r"\.a?synthesize\Z|(?:Refine|Summarize|Accumulate|Generation)\.(?:task|workflow)\Z")
"""How instrumentors name LlamaIndex's response synthesizers."""
_RESULT = re.compile(r"\[RESULT\]\s{0,4}[\d.]+\s*\Z")
_EVALUATING = re.compile(
    r"\b(?:information|response|context)\b[\s\S]{0,120}?"
    r"\b(?:is supported by|in line with|(?:are|is) relevant to)\b",
    re.IGNORECASE,
)
_ASKED_WITH_ANSWER = re.compile(r"\n\s{0,8}(?:Response|Answer): ?\S")
"""What LlamaIndex asks an engine about an answer: the question, and the answer below it."""
_SETTING = re.compile(r"\b(?:setup|set up|generate|write)\b[^\n.]{0,60}\bquestions\b", re.IGNORECASE)
_HEAD = 2000
_ROW = (
    ("user_input", "question", "query", "input"),
    ("response", "answer", "actual_output", "generated_answer", "prediction"),
)
"""What a row of an evaluation holds: a question and its answer, under any of these names."""


def is_whole(turn: Turn) -> bool:
    """Whether both a retrieval and its answer, or the turn's end in an error, are in one piece."""
    if any(parsed.documents and parsed.answer for _, parsed in turn.seen("turn")):
        return True
    models = bool(turn.seen("llm"))
    found = evidence_of(turn)
    if not turn.retrieves and not turn.agentic:
        return bool(turn.answer) and (_is_known(found) or turn.found_nothing or turn.asks_engine)
    if _formats(turn, found):
        return False
    if turn.answer or failure(turn):
        return True
    # A call below which only its tools ran is a step: the call that answers stands beside it.
    return turn.root.parsed is not None and turn.root.parsed.kind != "llm" and models


def _is_known(found: FoundPassages) -> bool:
    """Whether passages came into a turn, shown or not, that nobody had to guess."""
    return bool(found.contexts or found.origin.retrieved) and not found.is_guessed


def _formats(turn: Turn, found: FoundPassages) -> bool:
    """Whether this is a step that retrieved and formatted: what it came to is the context, not an answer."""
    if _only_searches(turn):
        return True
    if turn.seen("llm", "turn") or len(found.contexts) < 2:
        return False
    return all(context.text in turn.answer for context in found.contexts)


def _only_searches(turn: Turn) -> bool:
    """Whether all that models said below it was for a search: queries, or passages cut short.

    So it is below a retriever that answers nothing itself, and where each line is what a retriever was asked.
    """
    root = turn.root.parsed
    if root is not None and root.kind == "retrieval" and not root.answer:
        return bool(turn.seen("llm"))
    asked = set(map(squeezed, turn.queries)) - {squeezed(turn.question)}
    lines = [squeezed(line) for line in turn.answer.split("\n") if line.strip()]
    return bool(lines) and asked.issuperset(lines)


def is_judgeable(turn: Turn, found: FoundPassages) -> bool:
    """Whether a record can come of it.

    A failed turn needs a question; any other one question, answer and documents, be it that none was shown,
    or retrievals which told that they found nothing. A call that grades, routes or writes a query is not a
    turn of its own.
    """
    if failure(turn) and turn.question and (turn.retrieves or found.contexts):
        return True
    if not (turn.question and turn.answer) or _only_searches(turn):
        return False
    if not found.contexts and (turn.found_nothing or turn.asks_engine or turn.answer == EMPTY):
        return True
    return bool(found.contexts or found.origin.retrieved) and not _is_step(turn, found)


def _is_step(turn: Turn, found: FoundPassages) -> bool:
    """Whether it formats, grades, indexes or evaluates for another turn."""
    is_part = _formats(turn, found) or is_helper(turn)
    return is_part or _is_indexing(turn, found) or is_asked_by_evaluator(turn)


def _is_indexing(turn: Turn, found: FoundPassages) -> bool:
    """Whether a model was asked about a document, without anybody's question: to describe it for an index."""
    if turn.retrieves or turn.agentic:
        return False
    if _SYNTHESIS.search(turn.root.span.name):
        # An index gives such a step each of its documents, with an instruction in place of a question.
        return not is_question(turn.question)
    return bool(found.contexts) and all(one.text in turn.question for one in found.contexts)


def is_asked_by_evaluator(turn: Turn) -> bool:
    """Whether an evaluator, or a maker of test questions, asks about given passages.

    Ragas and its like are given a question with its answer. LlamaIndex's evaluators and makers of questions
    put what they were given into a `SummaryIndex` and ask an engine over it. Users do the same, so that what
    was asked of the model and its reply have to agree: for a verdict, or for questions.
    """
    if _is_given_answer(turn):
        return True
    retrievals = turn.outermost("retrieval")
    if not retrievals or not all(_GIVEN in node.span.name for node, _ in retrievals):
        return False
    is_verdict = is_intermediate_output((turn.answer,)) or _RESULT.search(turn.answer)
    if is_verdict or _ASKED_WITH_ANSWER.search(turn.question):
        return any(_EVALUATING.search(text[:_HEAD]) for text in turn.prompts)
    lines = [line.rstrip() for line in turn.answer.split("\n") if line.strip()]
    return _SETTING.search(turn.question) is not None and all(map(is_question, lines))


def _is_given_answer(turn: Turn) -> bool:
    """Whether the root's input holds an answer beside the question, and its output none."""
    root = turn.root.parsed
    given = loaded(root.passing[0]) if root is not None and root.passing and not root.answer else None
    if not isinstance(given, Mapping):
        return False
    return all(
        any(isinstance(text := given.get(name), str) and text.strip() for name in names) for names in _ROW
    )


def is_helper(turn: Turn) -> bool:
    """Whether the turn is a call that grades, routes, ranks or writes a query for another one."""
    looked_up = turn.retrieves or turn.agentic or bool(turn.sources.documents) or turn.found_nothing
    return not is_turn(turn.calls, answer=turn.answer, queries=turn.queries, retrieved=looked_up)
