"""Passages that no retriever returned: documents that a step made, and texts under a name that says so.

A step of a chain or a node of a graph may search the web, read a database, or join chunks. What it makes is a
passage if it is a document, or stands under a key such as `context`; whether it reached the model, the prompt
decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.record import Context
from steelyard.recording.provenance import find_passages, names_passages, passages_of
from steelyard_langchain.building._extract import documents_in, is_document, state_of

_DEPTH = 3
_MOST = 200
_MOST_KNOWN = 500  # comparing each with each would cost more than such a turn is worth
_LEAST_WORDS = 2
_SENTENCE = 4  # cells have fewer words; where none has so many, the texts are rows of a table
_MUCH = 12
_CUT = "contexts: cut out of one text, which does not say where a passage ends"
_MORE = "contexts: text beside the retrieved passages came from a place that was not seen; see turn.contexts"


@dataclass(slots=True)
class Named:
    """What stands under the names."""

    passages: list[Context] = field(default_factory=list)
    """The passages, in the order of the values."""
    notes: list[str] = field(default_factory=list)
    """What is doubtful about them."""


def named_passages(values: Iterable[Any], known: Sequence[str], replies: Sequence[str]) -> Named:
    """Passages that stand as text or as mappings under a name that says so.

    Args:
        values: Inputs and results of steps.
        known: Texts of the documents that are known already. A text that holds one of them was made of them.
        replies: What models said. A text with such a reply in it is a draft or a summary, not a passage.
    """
    named = Named()
    found, texts = _split(values)
    for block in texts:
        if any(text in block for text in known) or any(one.found for one in find_passages(known, [block])):
            if _has_more(block, known) and _is_passage(block, known, replies):
                named.notes.append(_MORE)
            continue
        for passage in in_text(block):
            found.setdefault(passage.text, passage)
            if _is_passage(passage.text, known, replies):
                named.notes.append(_CUT)
    named.passages = [one for one in found.values() if _is_passage(one.text, known, replies)]
    return named


def _split(values: Iterable[Any]) -> tuple[dict[str, Context], dict[str, None]]:
    """What stands under the names: the passages in lists, by their text, and the texts."""
    found: dict[str, Context] = {}
    texts: dict[str, None] = {}
    for value in values:
        for block in _blocks(value, _DEPTH):
            if isinstance(block, str):
                texts.setdefault(block)
            else:
                for passage in passages_of(block):
                    found.setdefault(passage.text, passage)
        if len(texts) + len(found) > _MOST:
            break
    return found, texts


def in_text(text: str) -> tuple[Context, ...]:
    """The passages in a text; rows of a table stay together, since they tell more than their cells."""
    found = passages_of(text)
    is_table = len(found) > 1 and not any(len(one.text.split()) >= _SENTENCE for one in found)
    return (Context(text=text.strip()),) if is_table else found


def _has_more(block: str, known: Sequence[str]) -> bool:
    """Whether a text that holds known passages holds much else besides; not asked of very many."""
    if len(known) > _MOST_KNOWN:
        return False
    rest = block
    for text in sorted(known, key=len, reverse=True):
        rest = rest.replace(text, "\0")
    longest = max(len(piece.split()) for piece in rest.split("\0"))
    return rest != block and longest >= _MUCH


def _is_passage(text: str, known: Sequence[str], replies: Sequence[str]) -> bool:
    if text in known or len(text.split()) < _LEAST_WORDS:
        return False
    if any(one.found for one in find_passages([text], replies)):
        return False
    return not any(one.found and one.seen >= 0.5 for one in find_passages(replies, [text]))


def _blocks(value: Any, depth: int) -> Iterator[Any]:
    """What stands under the names: texts, and lists of texts or mappings."""
    state = state_of(value) if depth > 0 else None
    for key, part in (state or {}).items():
        if not names_passages(str(key)):
            if isinstance(part, Mapping):
                yield from _blocks(part, depth - 1)
        elif isinstance(part, str) or (isinstance(part, (list, tuple)) and not documents_in(part)):
            yield part
        elif isinstance(part, Mapping) and not is_document(part):
            yield from _blocks(part, depth - 1)
