"""What was asked: on the application's own spans around a turn, and by calls that are about its answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from steelyard.recording.building import is_telling
from steelyard.recording.provenance import json_strings, plain
from steelyard.recording.reading import is_question, strings_in
from steelyard_opentelemetry._payload import loaded
from steelyard_opentelemetry._span import Node, ParsedSpan
from steelyard_opentelemetry.dialects import around, own_answers, own_questions, own_texts

if TYPE_CHECKING:
    from steelyard_opentelemetry._turn import Turn


def asked_above(turn: Turn, question: str) -> str:
    """The question as the application wrote it on a span of its own around a turn; empty if it did not.

    It stands in what a model was sent, be it the one that wrote what seems to be the question. It is called a
    question, it holds what seems to be the question, or it is the only such text of its span, and reads as a
    question.
    """
    sent = list(map(plain, [*turn.prompts, *_rewritten_from(turn, question)]))
    for node in (one for one in _around(turn) if one.parsed is None):
        # A whole prompt is not what was asked, unless it seems to be just that.
        told = [t for t in _sent_of(asked_on(node), sent) if t == question or plain(t) not in sent]
        held = [text for text in told if question and question in text]
        only = told if len(told) == 1 and is_question(told[0]) else []
        texts = [*_sent_of(own_questions(node.span), sent), *sorted(held, key=len, reverse=True), *only]
        if texts:
            return texts[0]
    return ""


def _rewritten_from(turn: Turn, question: str) -> Iterator[str]:
    """What the models beside a turn were sent that replied what seems to be its question."""
    for node in turn.tree.below() if turn.tree is not None and question else ():
        if node.parsed is not None and node.parsed.kind == "llm" and node.parsed.answer.strip() == question:
            yield from node.parsed.texts


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


def asked_on(node: Node, replies: Sequence[str] = ()) -> list[str]:
    """Where a question may be on a span: what its dialect reads, else texts of its JSON, replies whole."""
    if node.parsed is not None:
        return [node.parsed.question]
    values = (value for value in node.span.attributes.values() if isinstance(value, str) and value[:1] == "{")
    # A server's span is no look-up, but it may tell what was asked.
    said = own_texts(node.span, anywhere=True)
    return [*said, *(text for value in values for _, text in strings_in(loaded(value, replies)))]


def read_answered(tree: Node) -> None:
    """Read the outermost spans of the application's own that tell what a model below was asked and replied.

    No later call is asked the same: it would go on from a step. What seems to be a look-up and stands around
    others is a step that tells their passages, and the outermost function around a model is no tool of its.
    """
    tops = set(map(id, tree.tops()))
    for node in tree.below():
        if node.parsed and node.parsed.dialect == "generic" and _stands_around(node):
            node.parsed = around(node.parsed, node.span, is_topmost=id(node) in tops)
    calls = [node for node in tree.below() if node.parsed is not None and node.parsed.kind == "llm"]
    waiting = [tree] if calls else []
    while waiting:
        node = waiting.pop()
        if node.parsed is None:
            node.parsed = _answered(node, calls)
            waiting.extend(node.children if node.parsed is None else ())


def _stands_around(node: Node) -> bool:
    """Whether a look-up or a model call stands below a span."""
    inner = (one.parsed for child in node.children for one in child.below())
    return any(one is not None and one.kind in ("llm", "retrieval", "rerank") for one in inner)


def _answered(node: Node, calls: Sequence[Node]) -> ParsedSpan | None:
    below = {id(one) for one in node.below()}
    inner = [one.parsed for one in calls if one.parsed and id(one) in below]
    said = _said(replies := [one.answer for one in inner])
    answers = [text for text in asked_on(node, replies) if plain(text) in said and is_telling(text)]
    if not answers:
        return None
    answer = max(answers, key=lambda text: (text in own_answers(node.span), said[plain(text)]))
    asked = _asked_beside(node, [plain(text) for one in inner for text in one.texts], calls)
    if not asked or _asks_on(calls, node, asked):
        return None
    return ParsedSpan(dialect="generic", kind="chain", question=asked, answer=answer, passing=(asked, answer))


def _said(replies: Iterable[str]) -> dict[str, int]:
    """The texts of some replies, each with the place of the last that has it."""
    return {plain(part): at for at, reply in enumerate(replies) for part in json_strings(reply)}


def _asked_beside(node: Node, sent: Sequence[str], calls: Sequence[Node]) -> str:
    """What a span tells that models were sent and none said: what it calls a question, else the only one."""
    said = _said(one.parsed.answer for one in calls if one.parsed)
    named = [text for text in _sent_of(own_questions(node.span), sent) if plain(text) not in said]
    told = [text for text in _sent_of(asked_on(node), sent) if plain(text) not in said]
    asked = named[:1] or (told if len(told) == 1 else list(filter(is_question, told)))
    return asked[0] if len(asked) == 1 else ""


def _asks_on(calls: Iterable[Node], node: Node, asked: str) -> bool:
    """Whether a call after a span was sent its question last."""
    later = (one.parsed for one in calls if one.parsed and one.span.start >= node.span.end)
    return any(plain(asked) in plain(text) for one in later for text in one.texts[-1:])


_ABOUT = re.compile(
    r"\b(?:titles?|headline|subject line)\b"
    r"|\b(?:name|label) (?:this|the) (?:chat|conversation|thread|session)\b"
    r"|\bworth remembering\b|\b(?:extract|update|store)\b[^.\n]{0,40}\b(?:facts|memor(?:y|ies)|preferences)\b"
    r"|\b(?:follow[- ]?up|related|next|further) (?:questions?|prompts?|queries)\b"
    r"|\bquestions?\b[^.\n]{0,40}\b(?:ask|next)\b"
    r"|\b(?:judge|grade|rate|score|evaluate|assess)\b[^.\n]{0,60}\b(?:answer|response|reply)\b"
    r"|\b(?:is|does|has) (?:this|the|that) (?:answer|response|reply)\b"
    r"|\b(?:grounded(?:ness)?|hallucinat\w{1,6}|fact[- ]check\w{0,4}|faithful\w{0,4}|moderat\w{1,5}|safe)\b",
    re.IGNORECASE,
)
_ANEW = re.compile(
    r"\b(?:re-?write|re-?phrase|revise|correct(?:ed)? (?:it|the)|improve|fix|polish|refine|translate|shorten"
    r"|final answer|combine|merge|summari[sz]e)\b",
    re.IGNORECASE,
)
_MOST = 20_000
_FEWEST_WORDS = 2


def drop_followup_calls(calls: Sequence[tuple[Node, ParsedSpan]]) -> list[tuple[Node, ParsedSpan]]:
    """Calls without those that were shown an earlier reply and asked about it, not for another one."""
    return [call for call in calls if not any(_is_about(call, other) for other in calls if other is not call)]


def _is_about(call: tuple[Node, ParsedSpan], other: tuple[Node, ParsedSpan]) -> bool:
    node, parsed = call
    before, said = other
    if before.span.end > node.span.start or len(said.answer.split()) < _FEWEST_WORDS:
        return False
    texts = [message.text[:_MOST] for message in parsed.messages]
    if not any(said.answer.strip() in text for text in texts):
        return False
    # What the passages and the answer say is not what was asked for.
    ordered = "\n".join(text.replace(said.answer.strip(), "") for text in (*texts[:1], *texts[-1:]))
    return bool(_ABOUT.search(ordered)) and not _ANEW.search(ordered)
