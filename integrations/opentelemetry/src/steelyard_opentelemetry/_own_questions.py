"""What was asked, as the application wrote it on spans of its own around a turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from steelyard.recording.building import is_telling
from steelyard.recording.provenance import plain
from steelyard.recording.reading import is_question, strings_in
from steelyard_opentelemetry._payload import loaded
from steelyard_opentelemetry._span import Node
from steelyard_opentelemetry.dialects import own_questions, own_texts

if TYPE_CHECKING:
    from steelyard_opentelemetry._turn import Turn


def asked_above(turn: Turn, question: str) -> str:
    """The question as the application wrote it on a span of its own around a turn; empty if it did not.

    It stands in what a model was sent. It is called a question, it holds what seems to be the question, or it
    is the only such text of its span, and reads as a question or stands above what was looked up.
    """
    around = _around(turn)
    sent = list(map(plain, turn.prompts))
    for node in (one for one in around if one.parsed is None):
        # A whole prompt is not what was asked, unless it seems to be just that.
        told = [t for t in _sent_of(asked_on(node), sent) if t == question or plain(t) not in sent]
        held = [text for text in told if question and question in text]
        only = told if len(told) == 1 and (is_question(told[0]) or _tells_below(node, around, sent)) else []
        texts = [*_sent_of(own_questions(node.span), sent), *sorted(held, key=len, reverse=True), *only]
        if texts:
            return texts[0]
    return ""


def _around(turn: Turn) -> list[Node]:
    """The spans around a turn that stands in a tree, the outermost first, and its root."""
    tree = [] if turn.tree is None else list(turn.tree.below())
    above = {id(child): node for node in tree for child in node.children}
    around = [turn.root] if tree else []
    while around and (outer := above.get(id(around[0]))) is not None:
        around.insert(0, outer)
    return around


def _sent_of(texts: Iterable[str], sent: Sequence[str]) -> list[str]:
    """The texts that say something and stand in what a model was sent; what was typed may be JSON, too."""
    able = dict.fromkeys(text for text in texts if is_telling(text) or is_question(text))
    return [text for text in able if any(plain(text) in one for one in sent)]


def _tells_below(node: Node, around: Sequence[Node], sent: Sequence[str]) -> bool:
    """Whether a span of the application's own below another one, and beside a turn, tells what was sent."""
    others = (one for one in node.below() if one.parsed is None and one not in around)
    return any(_sent_of(own_texts(one.span), sent) for one in others)


def asked_on(node: Node) -> list[str]:
    """Where a question may be on a span: what its dialect reads as one, else any text of its JSON."""
    if node.parsed is not None:
        return [node.parsed.question]
    values = (value for value in node.span.attributes.values() if isinstance(value, str) and value[:1] == "{")
    # A server's span is no look-up, but it may tell what was asked.
    said = own_texts(node.span, anywhere=True)
    return [*said, *(text for value in values for _, text in strings_in(loaded(value)))]
