"""The application's own spans that looked something up for a turn, although no dialect knows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from steelyard.record import Context
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import find_passages, is_printed, plain
from steelyard_opentelemetry._evidence import FoundPassages, evidence_of
from steelyard_opentelemetry._own_questions import asked_on
from steelyard_opentelemetry._span import ParsedSpan
from steelyard_opentelemetry._tree import Node
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.dialects import own_texts

_MOST_AROUND = 64


def with_own_look_ups(turn: Turn, tree: Node) -> Turn:
    """A turn for which nothing was seen to be looked up, with the application's own spans that did it.

    Args:
        turn: The turn.
        tree: All that stands beside it.
    """
    turn.tree = tree
    if turn.retrieves or turn.agentic or not (turn.question and turn.behind.made):
        return turn
    told = list(_told_before(turn, tree))
    if not told or _is_known(evidence_of(turn)):
        return turn
    made = [node for node, texts, around in told if _is_look_up(node, texts, around, turn)]
    # What is inside the turn already is there once.
    outside = [Turn.below(node) for node in made if node not in turn.nodes]
    return Turn.of(turn.root, [*outside, turn]) if made else turn


def _is_known(found: FoundPassages) -> bool:
    """Whether the passages are known by more than what a template seems to have been filled in with."""
    if not found.contexts or found.is_guessed:
        return False
    sources = found.sources
    return found.origin.contexts_source != "in_prompt" or bool(sources.documents or sources.texts)


def _told_before(turn: Turn, tree: Node) -> Iterator[tuple[Node, Mapping[str, str], list[str]]]:
    """The spans of no dialect that had ended when the answering call began: their texts, and those around.

    A look-up may stand below the span that was asked.
    """
    begun = min(turn.llms[at][0].span.start for at in turn.behind.made)
    above: dict[int, list[str]] = {}
    for node in tree.below():
        texts = own_texts(node.span) if node.parsed is None else {}
        around = [*texts, *asked_on(node), *above.get(id(node), ())]
        above.update((id(child), around[:_MOST_AROUND]) for child in node.children)
        if texts and node.span.end <= begun:
            yield node, texts, around


def _is_look_up(node: Node, texts: Mapping[str, str], around: list[str], turn: Turn) -> bool:
    """Whether a span tells a look-up of the turn; it is then read as one."""
    # The question, or what a model made of it before.
    before = [at for at, (call, _) in enumerate(turn.llms) if call.span.end <= node.span.start]
    said = {plain(text) for at in before for text in turn.calls[at].replies}
    query = next((text for text in around if plain(text) in {plain(turn.question), *said}), "")
    documents = tuple(Context(text=text) for text in _brought(texts, turn, said)) if query else ()
    if documents:
        node.parsed = ParsedSpan(dialect="generic", kind="retrieval", query=query, documents=documents)
    return bool(documents)


def _brought(texts: Mapping[str, str], turn: Turn, said: set[str]) -> list[str]:
    """The texts that the answering call was sent for its question, and that no model had said.

    One that begins a message may as well be an instruction, unless it is told beside passages under one name;
    one that holds the question may be a prompt.
    """
    sent = [text for at in turn.behind.made for text in _sent_last(turn.llms[at][1])]
    whole = _shown(texts, sent, plain(turn.question))
    fresh = [text for text in whole if not _begins(text, said)]
    begun = list(map(plain, sent))
    named = {texts[text] for text in fresh if not _begins(text, begun)}
    return [text for text in fresh if texts[text] in named]


def _shown(texts: Iterable[str], sent: list[str], asked: str) -> list[str]:
    """The texts that say something and stand in what was sent, without parts of others."""
    able = [text for text in texts if (is_telling(text) or is_printed(text)) and asked not in plain(text)]
    found = [text for text, seen in zip(able, find_passages(able, sent), strict=True) if seen.found]
    return [text for text in found if not any(text in other != text for other in found)]


def _begins(text: str, others: Iterable[str]) -> bool:
    return any(one.startswith(plain(text)) for one in others)


def _sent_last(parsed: ParsedSpan) -> list[str]:
    """What a model was sent, without the conversation before its last message."""
    messages = parsed.messages
    return [one.text for at, one in enumerate(messages) if one.role == "system" or at == len(messages) - 1]
