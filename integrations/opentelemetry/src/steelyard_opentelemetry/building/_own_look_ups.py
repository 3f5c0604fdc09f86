"""The application's own spans that looked something up for a turn, although no dialect knows them."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.record import Context
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import find_passages, plain
from steelyard.recording.reading import strings_in
from steelyard_opentelemetry.building._evidence import evidence_of
from steelyard_opentelemetry.building._turn import Turn
from steelyard_opentelemetry.dialects import own_texts
from steelyard_opentelemetry.spans._payload import loaded
from steelyard_opentelemetry.spans._span import ParsedSpan
from steelyard_opentelemetry.spans._tree import Node

_MOST_AROUND = 64


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
    made = [node for node, texts, around in told if _is_look_up(node, texts, around, turn)]
    # What is inside the turn already is there once.
    outside = [Turn.below(node) for node in made if node not in turn.nodes]
    return Turn.of(turn.root, [*outside, turn]) if made else turn


def _told_before(turn: Turn, tree: Node) -> Iterator[tuple[Node, list[str], list[str]]]:
    """The spans of no dialect that had ended when the answering call began: their texts, and those around.

    A look-up may stand below the span that was asked.
    """
    begun = min(turn.llms[at][0].span.start for at in turn.behind.made)
    above: dict[int, list[str]] = {}
    for node in tree.below():
        texts = own_texts(node.span) if node.parsed is None else []
        around = [*texts, *_asked_in(node), *above.get(id(node), ())]
        above.update((id(child), around[:_MOST_AROUND]) for child in node.children)
        if texts and node.span.end <= begun:
            yield node, texts, around


def _asked_in(node: Node) -> list[str]:
    """Where a question may be on a span: what its dialect reads as one, else any text of its JSON."""
    if node.parsed is not None:
        return [node.parsed.question]
    values = (value for value in node.span.attributes.values() if isinstance(value, str) and value[:1] == "{")
    # A server's span is no look-up, but it may tell what was asked.
    said = own_texts(node.span, anywhere=True)
    return [*said, *(text for value in values for _, text in strings_in(loaded(value)))]


def _is_look_up(node: Node, texts: list[str], around: list[str], turn: Turn) -> bool:
    """Whether a span tells a look-up of the turn; it is then read as one."""
    # The question, or what a model made of it.
    asked = {plain(turn.question), *(plain(text) for call in turn.calls for text in call.replies)}
    query = next((text for text in around if plain(text) in asked), "")
    documents = tuple(Context(text=text) for text in _brought(texts, turn)) if query else ()
    if documents:
        node.parsed = ParsedSpan(dialect="generic", kind="retrieval", query=query, documents=documents)
    return bool(documents)


def _brought(texts: list[str], turn: Turn) -> Iterator[str]:
    """The texts that the answering call was sent for its question, and that no model said.

    One that begins a message may as well be an instruction, and one that holds the question a prompt.
    """
    sent = [text for at in turn.behind.made for text in _sent_last(turn.llms[at][1])]
    known = [*map(plain, sent), *(plain(text) for call in turn.calls for text in call.replies)]
    asked = plain(turn.question)
    said = [text for text in texts if is_telling(text) and asked not in plain(text)]
    for text, seen in zip(said, find_passages(said, sent), strict=True):
        if seen.found and not any(one.startswith(plain(text)) for one in known):
            yield text


def _sent_last(parsed: ParsedSpan) -> list[str]:
    """What a model was sent, without the conversation before its last message."""
    messages = parsed.messages
    return [one.text for at, one in enumerate(messages) if one.role == "system" or at == len(messages) - 1]
