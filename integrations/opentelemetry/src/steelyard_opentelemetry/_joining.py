"""Which spans of different trees are parts of one turn: a retrieval, and the model call that used it.

A span link, a response's id, or `steelyard.turn`, which the user sets, are certain. A trace, a session, a
request, a task or a thread may hold several turns: what shares one may belong together, and has to show it.
Two texts that are alike may be two users' who asked the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from steelyard.recording.building import reaches
from steelyard.recording.provenance import find_passages
from steelyard.recording.reading import since_last_asked
from steelyard_opentelemetry._evidence import evidence_of
from steelyard_opentelemetry._payload import opened, squeezed
from steelyard_opentelemetry._span import Node
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.dialects import json_value

TURN = "steelyard.turn"
"""The attribute by which a user says which spans are one turn."""
SESSION = (
    *("session.id", "gen_ai.conversation.id", "traceloop.association.properties.session_id"),
    *("langfuse.session.id", "mlflow.trace.session", "ai.telemetry.metadata.sessionId"),
    *("langsmith.trace.session_id", "spring.ai.chat.client.conversation.id"),
)
"""Attributes that name a session or a conversation."""
REQUEST_SESSION = "steelyard.session"
"""The session that a request of the collector named: it counts if no span of the turn names one."""
_CONVERSATION = re.compile(r"(?:^|[._-])(?:(session)|(conversation)|(thread)|(chat))[._-]?id$", re.IGNORECASE)
"""How other names end that mean one, the best first: `copilot_chat.chat_session_id`, `threadId`."""
_OF_THE_SYSTEM = ("thread.id", "db.session.id")
"""An operating system's thread, a database's session."""
USER = (
    *("user.id", "enduser.id", "traceloop.association.properties.user_id", "langfuse.user.id"),
    *("mlflow.trace.user", "ai.telemetry.metadata.userId", "user_id", "userId"),
)
"""Attributes that name who asked."""
_METADATA = ("metadata", "langfuse.trace.metadata", "langfuse.observation.metadata")
"""Attributes that hold an application's own fields as JSON; with others, each is an attribute."""
TENANT = ("tenant.id", "tenant", "traceloop.association.properties.tenant_id")
"""Attributes that name whose data it is."""
_SHARED = (*SESSION, REQUEST_SESSION, "request.id", "http.request.id", "gen_ai.request.id")
_CERTAIN = (TURN, "gen_ai.response.id")
_MOST_RELATED = 64
_RANDOM = 16
_DISTINCT = 8
_BETWEEN = re.compile(r"[\W_]")

Key = tuple[str, ...]


class WaitingPieces:
    """Pieces in the order in which they came, found by what they share with another one."""

    def __init__(self) -> None:
        self.size = 0
        """Characters of their texts."""
        self._pieces: dict[int, Turn] = {}
        self._by_key: dict[Key, dict[int, Turn]] = {}

    def __len__(self) -> int:
        return len(self._pieces)

    def holds(self, trace_id: str) -> bool:
        """Whether a piece of a trace waits."""
        return ("trace", trace_id) in self._by_key

    @property
    def oldest(self) -> Turn | None:
        """The piece that has waited longest."""
        return next(iter(self._pieces.values()), None)

    def add(self, piece: Turn) -> None:
        """Let a piece wait."""
        self._pieces[id(piece)] = piece
        self.size += _size(piece)
        for key in _keys(piece):
            self._by_key.setdefault(key, {})[id(piece)] = piece

    def take(self, piece: Turn) -> Turn:
        """Remove a piece, and return it."""
        if self._pieces.pop(id(piece), None) is not None:
            self.size -= _size(piece)
        for key in _keys(piece) & self._by_key.keys():
            self._by_key[key].pop(id(piece), None)
            if not self._by_key[key]:
                del self._by_key[key]
        return piece

    def related(self, other: Turn) -> list[Turn]:
        """The latest pieces that share an identity with another one, in the order in which they came."""
        found: dict[int, Turn] = {}
        for key in _keys(other) & self._by_key.keys() if self._pieces else ():
            found.update(islice(reversed(self._by_key[key].items()), _MOST_RELATED))
        alike = (piece for piece in found.values() if not _differ(piece, other))
        return sorted(alike, key=lambda piece: piece.root.span.start)


def _size(piece: Turn) -> int:
    told = (value for node in piece.nodes for value in node.span.attributes.values())
    return sum(len(value) for value in told if isinstance(value, str))


def _around(piece: Turn) -> Sequence[Node]:
    """The spans of a piece, and the root that it stands below: a server's, which names who asked."""
    return [*piece.nodes, piece.tree] if piece.tree is not None else piece.nodes


def told_of(piece: Turn) -> list[Mapping[str, Any]]:
    """What spans say of a turn: their attributes, and the fields of the metadata among these."""
    found: list[Mapping[str, Any]] = []
    for node in _around(piece):
        attributes = node.span.attributes
        metadata = (opened(attributes[name]) for name in _METADATA if name in attributes)
        found += [attributes, *(fields for fields in metadata if isinstance(fields, Mapping))]
    return found


def first_named(told: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str | None:
    """The first id under any of these names, a better name first; MLflow writes what it is given as JSON."""
    every = list(told)
    found = (attributes.get(name) for name in names for attributes in every)
    return next((str(one) for one in map(json_value, found) if one and isinstance(one, (str, int))), None)


def session_of(piece: Turn) -> str | None:
    """The conversation that a turn's spans name; a usual name before one that only ends like it."""
    told = told_of(piece)
    alike = {
        name: match.lastindex or 0
        for attributes in told
        for name in attributes
        if name not in _OF_THE_SYSTEM and (match := _CONVERSATION.search(name))
    }
    return first_named(told, (*SESSION, *sorted(alike, key=alike.__getitem__), REQUEST_SESSION))


def is_certain(piece: Turn, other: Turn) -> bool:
    """Whether two pieces are linked explicitly, so that nothing else needs to be asked."""
    if not _named(piece, _CERTAIN).isdisjoint(_named(other, _CERTAIN)):
        return True
    return not (_spans(piece).isdisjoint(_links(other)) and _links(piece).isdisjoint(_spans(other)))


def _differ(piece: Turn, other: Turn) -> bool:
    """Whether two pieces name different sessions, users or tenants."""
    mine, theirs = told_of(piece), told_of(other)
    for names in (SESSION, (REQUEST_SESSION,), USER, TENANT):
        one, another = _values(mine, names), _values(theirs, names)
        if one and another and one.isdisjoint(another):
            return True
    return False


def _values(told: Iterable[Mapping[str, Any]], names: tuple[str, ...]) -> set[str]:
    return {str(json_value(found[name])) for found in told for name in names if found.get(name)}


def _keys(piece: Turn) -> set[Key]:
    traces = {("trace", node.span.trace_id) for node in piece.nodes}
    named = {*_named(piece, _SHARED, "shared"), *_named(piece, _CERTAIN)}
    flows = {("flow", one.span.service, one.span.flow) for one in _around(piece) if one.span.flow}
    return {*traces, *named, *flows, *_spans(piece), *_links(piece)}


def _named(piece: Turn, names: tuple[str, ...], kind: str = "") -> set[Key]:
    """What a piece is named by; a name that another may have too counts only within its trace and service."""
    found: set[Key] = set()
    for node in _around(piece):
        span = node.span
        for name in names:
            value = str(span.attributes.get(name) or "")
            where = () if _is_random(value) else (span.trace_id, span.service)
            found |= {(kind or name, value, *where)} if value else set()
    return found


def _is_random(value: str) -> bool:
    """Whether no two applications choose an id alike: words, dates and counters are not, however long."""
    drawn = "".join(part for part in _BETWEEN.split(value) if any(map(str.isdigit, part)))
    return len(drawn) >= _RANDOM and len(set(drawn.lower())) >= _DISTINCT


def _spans(piece: Turn) -> set[Key]:
    return {("span", node.span.trace_id, node.span.span_id) for node in piece.nodes}


def _links(piece: Turn) -> set[Key]:
    return {("span", *link) for node in piece.nodes for link in node.span.links}


_FEWEST_WORDS = 2


def is_before(part: Turn, piece: Turn, patience: int) -> bool:
    """Whether a retrieval came before a model call of the same process, and not too long before."""
    span, after = part.root.span, piece.root.span
    # Clocks of two machines differ by more than a turn takes.
    if span.service != after.service or not 0 <= after.end - span.start <= patience + after.end - after.start:
        return False
    return after.end >= span.end or span.trace_id == after.trace_id


def used_by(parts: Sequence[Turn], piece: Turn) -> list[Turn]:
    """The retrievals of which a model call's prompt holds a document, or where none is told, the query.

    Of several in other traces that found the same the latest counts: an earlier one may have been for a turn
    that failed.

    Args:
        parts: The retrievals, in the order in which they began.
        piece: The model call.
    """
    texts = [[context.text for context in evidence_of(part).contexts] for part in parts]
    new = _shown(list(dict.fromkeys(text for each in texts for text in each)), piece.prompts)
    asks = squeezed(" ".join(_asking(piece)))
    used: list[Turn] = []
    for part, each in zip(reversed(parts), reversed(texts), strict=True):
        query = squeezed(part.question)
        # A single word stands in prompts by chance.
        asked = len(query.split()) >= _FEWEST_WORDS and query in asks
        if not new.isdisjoint(each) or (not each and asked):
            used.append(part)
            new.difference_update(each if _is_elsewhere(part, piece) else ())
    return used[::-1]


def _asking(piece: Turn) -> Iterable[str]:
    """What a model call was sent, but what was asked before it in its conversation."""
    if not piece.in_conversation:
        return piece.prompts
    return (one.text for _, parsed in piece.seen("llm") for one in since_last_asked(parsed.messages))


def replied_to(parts: Sequence[Turn], piece: Turn) -> list[Turn]:
    """The turns that were asked one question, if a model call was told two different replies of theirs.

    Args:
        parts: Turns that looked something up, in the order in which they began.
        piece: The model call.
    """
    replies: dict[str, dict[str, Turn]] = {}
    for part in parts:
        if len(part.answer.split()) >= _FEWEST_WORDS and was_told(piece, part):
            replies.setdefault(squeezed(part.question), {})[squeezed(part.answer)] = part
    return [part for told in replies.values() if len(told) > 1 for part in told.values()]


def was_told(turn: Turn, other: Turn) -> bool:
    """Whether a model of a turn was shown what another came to, in a message that is no turn before it."""
    reply = squeezed(other.answer)
    sent = (message for _, parsed in turn.seen("llm") for message in parsed.messages)
    return any(one.role != "assistant" and reply in squeezed(one.text) for one in sent)


def _shown(texts: Sequence[str], prompts: Sequence[str]) -> set[str]:
    pairs = zip(texts, find_passages(texts, prompts), strict=True)
    return {text for text, sighting in pairs if sighting.found and reaches(text, prompts)}


def _is_elsewhere(part: Turn, piece: Turn) -> bool:
    """Whether a look-up stands in another trace; what only chose among passages was not asked anything."""
    return part.question != "" and part.root.span.trace_id != piece.root.span.trace_id


def root_of(piece: Turn, parts: Sequence[Turn]) -> Node:
    """The span that stands for a joined turn: a chain's if one has it, else the model call that answered."""
    chained = [
        h.root
        for h in parts
        if h.root.parsed and h.root.parsed.kind in ("chain", "agent") and h.root.parsed.question
    ]
    return chained[0] if chained else piece.root
