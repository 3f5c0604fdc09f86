"""Look-ups on spans of an application's own, in no convention: known by what they were asked and brought.

No name says what such an attribute holds. A span is a look-up if it ended before the answering call, tells
the question, and tells another text that stands in that call's prompt. A text that begins a message may as
well be an instruction, and one that holds the question a prompt: neither counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.record import Context
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import find_passages, plain
from steelyard_opentelemetry.building._evidence import evidence_of
from steelyard_opentelemetry.building._turn import Turn
from steelyard_opentelemetry.dialects import own_texts
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._tree import Node


def with_own_look_ups(turn: Turn, tree: Node) -> Turn:
    """A turn for which nothing was seen to be looked up, with the application's own spans that did it.

    Args:
        turn: The turn.
        tree: All that stands beside it.
    """
    if turn.retrieves or turn.agentic or not (turn.question and turn.behind.made):
        return turn
    told = list(_told_before(turn, tree))
    if not told or (evidence_of(turn).contexts and not evidence_of(turn).is_guessed):
        return turn
    made = [node for node, texts in told if _is_look_up(node, texts, turn)]
    # What is inside the turn already is there once.
    outside = [Turn.below(node) for node in made if node not in turn.nodes]
    return Turn.of(turn.root, [*outside, turn]) if made else turn


def _told_before(turn: Turn, tree: Node) -> Iterator[tuple[Node, list[str]]]:
    """The spans of no dialect that had ended when the answering call began, with their texts."""
    begun = min(turn.llms[at][0].span.start for at in turn.behind.made)
    for node in tree.below():
        if node.parsed is None and node.span.end <= begun and (texts := own_texts(node.span)):
            yield node, texts


def _is_look_up(node: Node, texts: list[str], turn: Turn) -> bool:
    """Whether a span tells a look-up of the turn; it is then read as one."""
    query = _query(texts, turn)
    documents = tuple(Context(text=text) for text in _brought(texts, turn)) if query else ()
    if documents:
        node.parsed = ParsedSpan(dialect="generic", kind="retrieval", query=query, documents=documents)
    return bool(documents)


def _query(texts: list[str], turn: Turn) -> str:
    """The text that was looked up under: the question, or what a model made of it."""
    asked = {plain(turn.question), *(plain(text) for call in turn.calls for text in call.replies)}
    return next((text for text in texts if plain(text) in asked), "")


def _brought(texts: list[str], turn: Turn) -> Iterator[str]:
    """The texts that stand in the prompt of the answer, and neither begin a message nor hold the question."""
    sent = [text for at in turn.behind.made for text in turn.calls[at].prompts]
    beginnings = tuple(map(plain, sent))
    asked = plain(turn.question)
    said = [text for text in texts if is_telling(text) and asked not in plain(text)]
    for text, seen in zip(said, find_passages(said, sent), strict=True):
        if seen.found and not any(one.startswith(plain(text)) for one in beginnings):
            yield text
