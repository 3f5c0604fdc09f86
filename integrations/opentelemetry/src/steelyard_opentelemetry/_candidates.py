"""Which turns some spans of one trace hold: read once, and kept until they are recorded.

A turn is usually everything below the topmost span that a dialect knows. A span that no dialect knows (an
HTTP server) may hold one turn in pieces or several turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from steelyard.recording import mark_in_prompt
from steelyard_opentelemetry._build import failure
from steelyard_opentelemetry._contexts import Found, find_contexts
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.dialects import parse
from steelyard_opentelemetry.spans._span import Span
from steelyard_opentelemetry.spans._tree import Node, grow


@dataclass(frozen=True, slots=True)
class Candidates:
    """What some spans of one trace hold."""

    whole: list[Turn] = field(default_factory=list)
    """Turns with both a retrieval and its answer, or the turn's end in an error."""
    pieces: list[Turn] = field(default_factory=list)
    """Parts that may belong to a turn whose other parts stand elsewhere."""

    @property
    def is_complete(self) -> bool:
        """Whether there is at least one turn from its question to its answer."""
        return any(turn.answer and is_judgeable(turn, find_contexts(turn)) for turn in self.whole)


def candidates_in(spans: Iterable[Span]) -> Candidates:
    """Read the spans of one trace."""
    found = Candidates()
    for tree in grow(spans, parse):
        whole, pieces = _of_tree(tree)
        found.whole.extend(whole)
        found.pieces.extend(pieces)
    return found


def _of_tree(tree: Node) -> tuple[list[Turn], list[Turn]]:
    """The turns below a root, and the pieces that may belong to one."""
    tops = [Turn.below(node) for top in tree.tops() for node in _parted(top)]
    whole = [turn for turn in tops if _whole(turn)]
    pieces = [turn for turn in tops if not _whole(turn)]
    if not tops:
        return [], [Turn.below(tree)]
    if whole:
        calls = [piece for piece in pieces if not piece.retrieves]
        return [with_calls(turn, calls) for turn in whole], [piece for piece in pieces if piece.retrieves]
    together = Turn.of(tree, pieces)
    if len(pieces) > 1 and _whole(together):
        return [together], []
    return [], pieces


def _parted(top: Node) -> list[Node]:
    """The turns' roots in a tree whose top is a mere bracket around several: a loop, a batch, a session."""
    if top.parsed is None or top.parsed.kind != "chain" or top.parsed.question or top.parsed.answer:
        return [top]
    inner = [node for child in top.children for node in child.tops()]
    asked = [
        node
        for node in inner
        if node.parsed
        and node.parsed.kind in ("chain", "agent", "turn")
        and node.parsed.question
        and _whole(Turn.below(node))
    ]
    return inner if len({node.parsed.question for node in asked if node.parsed}) > 1 else [top]


def _whole(turn: Turn) -> bool:
    """Whether both a retrieval and its answer, or the turn's end in an error, are in one piece."""
    if any(parsed.documents and parsed.answer for _, parsed in turn.seen("turn")):
        return True
    models = bool(turn.seen("llm"))
    found = find_contexts(turn)
    if not turn.retrieves and not turn.agentic:
        return bool(turn.answer) and bool(found.contexts) and not found.guessed
    if _formats(turn, found):
        return False
    return bool(turn.answer) or bool(failure(turn)) or (turn.root.parsed is not None and models)


def _formats(turn: Turn, found: Found) -> bool:
    """Whether this is a step that retrieved and formatted: what it came to is the context, not an answer."""
    if turn.seen("llm", "turn") or len(found.contexts) < 2:
        return False
    return all(context.text in turn.answer for context in found.contexts)


def is_judgeable(turn: Turn, found: Found) -> bool:
    """Whether a record can come of it: a failed turn needs a question, any other one all three parts."""
    if failure(turn) and turn.question and (turn.retrieves or found.contexts):
        return True
    return bool(turn.question and found.contexts and turn.answer) and not _formats(turn, found)


def with_calls(turn: Turn, calls: Iterable[Turn]) -> Turn:
    """The turn with those model calls that were made on its behalf."""
    made = [call for call in calls if is_made_by(call, turn)]
    return Turn.of(turn.root, [turn, *made]) if made else turn


def is_made_by(call: Turn, turn: Turn) -> bool:
    """Whether a model call beside a turn was made while it ran, with the turn's content."""
    span, whole = call.root.span, turn.root.span
    if span.service != whole.service:
        return False
    if not whole.start <= span.start <= whole.end:
        return False
    passages = find_contexts(turn).contexts
    return any(c.in_prompt for c in mark_in_prompt(passages, call.prompts)) or any(
        turn.question and turn.question in text for text in call.prompts
    )
