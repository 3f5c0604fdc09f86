"""Which turns some spans of one trace hold: read once, and kept until they are recorded.

In these steps:

1. A turn is usually everything below the topmost span that a dialect knows (`_turns_of`).
2. Below such a span stand several turns if their questions differ (`_asked_apart`), or if look-ups and calls
   side by side fall into groups (`_side_by_side`).
3. The application's own spans that looked something up are read with the turn (`with_own_look_ups`).
4. What has no retrieval or no answer is a piece. Below a span that no dialect knows, as of an HTTP server,
   pieces are several turns (`_told_apart`), or all of them are one.

Pieces are told apart by what the model calls were asked, and only where the evidence is complete: every group
of calls has an answer and a look-up of its own, and no group was shown what another one replied. Steps of one
turn (parts of a map-reduce, sub-questions, drafts, graders) fail that test and stay together.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from steelyard.recording.provenance import find_passages, is_intermediate_output
from steelyard.recording.reading import spoken, strings_in
from steelyard_opentelemetry._asked import read_answered
from steelyard_opentelemetry._build import is_judgeable, is_whole
from steelyard_opentelemetry._documents import unwrapped
from steelyard_opentelemetry._evidence import evidence_of, with_own_look_ups
from steelyard_opentelemetry._joining import replied_to, used_by, was_told
from steelyard_opentelemetry._payload import loaded, squeezed
from steelyard_opentelemetry._span import Node, ParsedSpan, Span, grow
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.dialects import parse

_MOST_STEPS = 64  # below a span that tells a question or an answer; more are an agent's work
# Groups are compared with each other, so that very large traces stay one turn.
_MOST_PIECES = 2000
_FEWEST = 4  # words of a reply by which it is found again
_LEAD = 40
_MOSTLY = 0.5


@dataclass(frozen=True, slots=True)
class Candidates:
    """What some spans of one trace hold."""

    whole: list[Turn] = field(default_factory=list)
    """Turns with both a retrieval and its answer, or the turn's end in an error."""
    pieces: list[Turn] = field(default_factory=list)
    """Parts that may belong to a turn whose other parts stand elsewhere."""
    aside: list[Turn] = field(default_factory=list)
    """Model calls beside whole turns that belong to none of them: plans, combinations, titles."""

    @property
    def is_complete(self) -> bool:
        """Whether there is at least one turn from its question to its answer."""
        return any(turn.answer and is_judgeable(turn, evidence_of(turn)) for turn in self.whole)

    @property
    def is_part_of_turn(self) -> bool:
        """Whether there is a retrieval, a model call or a step of a turn, so that the rest may follow."""
        return any(turn.parsed for turn in (*self.whole, *self.pieces))


def candidates_in(spans: Iterable[Span]) -> Candidates:
    """Read the spans of one trace."""
    found = Candidates()
    for tree in grow(spans, parse):
        whole, pieces = _of_tree(tree)
        if whole:
            found.aside.extend(piece for piece in pieces if not piece.retrieves)
            pieces = [piece for piece in pieces if piece.retrieves]
        found.whole.extend(whole)
        found.pieces.extend(pieces)
    return found


def _of_tree(tree: Node) -> tuple[list[Turn], list[Turn]]:
    """The turns below a root, and the pieces that may belong to one."""
    read_answered(tree)
    tops = [turn for top in tree.tops() for turn in _turns_of(top)]
    if not tops:
        return [], [Turn.below(tree)]
    if branches := _branches(tree, tops):
        return _of_branches(tree, branches)
    if len(tops) <= _MOST_STEPS:
        tops = [with_own_look_ups(turn, tree) for turn in _asked_once(tops, tree)]
    whole, pieces = list[Turn](), list[Turn]()
    for turn in tops:
        (whole if is_whole(turn) else pieces).append(turn)
    whole, pieces = _put_together(whole, pieces)
    if whole:
        return _with_late(whole, pieces)
    if apart := _told_apart(pieces):
        return apart, []
    return _in_one(tree, pieces)


def _in_one(tree: Node, pieces: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    together = Turn.of(tree, pieces)
    return ([together], []) if len(pieces) > 1 and is_whole(together) else ([], pieces)


def _branches(tree: Node, tops: Sequence[Turn]) -> list[Node]:
    """What stands side by side below the application's own spans, if it holds several turns: a loop, a batch.

    Each of them says what it was asked and answered, these differ, and none builds on another.
    """
    node, inner = tree, [tree]
    while node.parsed is None and len(inner) == 1:
        node = inner[0]
        inner = [child for child in node.children if any(child.tops())]
    told = _held(inner, tops) if node.parsed is None else []
    if not 1 < len(told) <= _MOST_STEPS:
        return []
    asked = [one for one in told if one.is_told and _stands_alone(one)]
    if len({one.question for one in asked}) < 2:
        return []
    return [] if _builds(asked, told) else inner


def _held(branches: Sequence[Node], tops: Sequence[Turn]) -> list[Turn]:
    """What each branch holds that tells an answer."""
    places = {id(below): at for at, child in enumerate(branches) for below in child.below()}
    held: dict[int, list[Turn]] = {}
    for top in tops:
        if id(top.root) in places:
            held.setdefault(places[id(top.root)], []).append(top)
    parts = (Turn.of(branches[at], each) for at, each in held.items())
    return [one for one in parts if any(parsed.answer for _, parsed in one.parsed)]


def _of_branches(tree: Node, branches: Sequence[Node]) -> tuple[list[Turn], list[Turn]]:
    """The turns and the pieces of each branch; what stands alone is a turn, guessed passages or not."""
    whole, pieces = list[Turn](), list[Turn]()
    for branch in branches:
        found, rest = _of_tree(branch)
        for turn in (*found, *rest):
            turn.tree = tree
            (whole if turn in found or _stands_alone(turn) else pieces).append(turn)
    return whole, pieces


def _with_late(turns: list[Turn], pieces: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    """The turns with what was looked up for one, and was written down beside it; and the other pieces."""
    for piece in [one for one in pieces if one.retrieves]:
        shown = next((turn for turn in turns if not turn.retrieves and used_by([piece], turn)), None)
        if shown is not None:
            turns = [Turn.of(turn.root, [turn, piece]) if turn is shown else turn for turn in turns]
            pieces.remove(piece)
    return turns, pieces


def _put_together(turns: list[Turn], pieces: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    """The turns and the pieces, where a later call made one answer of what several turns replied."""
    for piece in list(pieces) if len(turns) > 1 else ():
        before = [turn for turn in turns if turn.root.span.end <= piece.root.span.start]
        if parts := replied_to(before, piece):
            turns = [*(turn for turn in turns if turn not in parts), Turn.of(piece.root, [*parts, piece])]
            pieces.remove(piece)
    return turns, pieces


def _asked_once(tops: Sequence[Turn], tree: Node) -> list[Turn]:
    """The turns, where model calls side by side that were asked the same are one: grades, drafts, tries.

    A later call may be asked the same with an earlier one's reply beside it, and a step may only tell once
    more what another was asked and answered.
    """
    found: list[Turn] = []
    for top in sorted(tops, key=lambda top: top.root.span.start):
        top.tree = tree
        same = next((one for one in found if _asks_once_more(top, one)), None)
        if same is not None:
            found.remove(same)
        found.append(top if same is None else Turn.of(top.root, [same, top]))
    return found


def _asks_once_more(call: Turn, earlier: Turn) -> bool:
    before, said = squeezed(earlier.question), squeezed(earlier.answer)
    if not before:
        return False
    is_same = squeezed(call.question) == before
    if not all(one.root.parsed is not None and one.root.parsed.kind == "llm" for one in (call, earlier)):
        # A step that did nothing may only write down what was asked and answered.
        is_idle = not call.seen("llm", "retrieval", "rerank", "tool")
        asked = squeezed(call.question)
        return is_idle and squeezed(call.answer) == said != "" and asked != "" and asked in before
    # What was asked may stand in an earlier message than what is to be improved.
    sent, last = squeezed("\n".join(call.prompts)), squeezed("".join(call.prompts[-1:]))
    return is_same or (said != "" and before in sent and said in last)


def _turns_of(top: Node) -> list[Turn]:
    """The turns that one of the topmost known spans holds: mostly one, that of the span."""
    parsed = top.parsed
    if parsed is None or parsed.kind not in ("chain", "agent"):
        return [Turn.below(top)]
    nodes = [node for child in top.children for node in child.tops()]
    if len(nodes) == 1 and _is_bracket(parsed) and len(inner := _turns_of(nodes[0])) > 1:
        return inner  # the one step of a workflow, which asks several things
    return _asked_apart(parsed, nodes) or _side_by_side(parsed, nodes) or [Turn.below(top)]


def _asked_apart(parsed: ParsedSpan, nodes: Sequence[Node]) -> list[Turn]:
    """The parts below a span, if some are turns with different questions: a loop, a batch, a session."""
    # Most spans hold one turn, which is seen before anything is read.
    if len(set(filter(None, map(_own_question, nodes)))) < 2:
        return []
    inner = [Turn.below(node) for node in nodes]
    if parsed.kind == "agent" and any(turn.agentic for turn in inner):
        return []  # what an agent's steps are asked is its own
    asked = [turn for turn in inner if _own_question(turn.root) and _stands_alone(turn)]
    if len({turn.question for turn in asked}) < 2:
        return []
    return inner if _is_bracket(parsed) or _tells_one_of(parsed, asked, inner) else []


def _side_by_side(parsed: ParsedSpan, nodes: Sequence[Node]) -> list[Turn]:
    """The turns whose look-ups and model calls stand side by side below a span."""
    kinds = Counter(node.parsed.kind for node in nodes if node.parsed)
    may_hold = min(kinds["llm"], kinds["retrieval"]) > 1 and len(nodes) <= _MOST_STEPS
    if not (may_hold or _is_bracket(parsed)):
        return []
    inner = [Turn.below(node) for node in nodes]
    apart = _told_apart(inner)
    return apart if _is_bracket(parsed) or (apart and _tells_one_of(parsed, apart, inner)) else []


def _is_bracket(parsed: ParsedSpan) -> bool:
    """Whether a span says nothing of a question or an answer, so that it may hold any number of turns."""
    return not (parsed.question or parsed.answer)


def _own_question(node: Node) -> str:
    """What a step below says that it was asked, so that it may be a turn of its own."""
    parsed = node.parsed
    return parsed.question if parsed is not None and parsed.kind in ("chain", "agent", "turn") else ""


def _stands_alone(turn: Turn) -> bool:
    """Whether a part has an answer and passages of its own, be it that only its prompt has them."""
    return is_whole(turn) or (turn.answer != "" and is_judgeable(turn, evidence_of(turn)))


@dataclass(eq=False, slots=True, repr=False)
class _Group:
    """The calls that were asked the same, with what was looked up for them."""

    said: str
    calls: list[Turn] = field(default_factory=list)
    parts: list[Turn] = field(default_factory=list)

    @property
    def answer(self) -> str:
        return self.calls[-1].answer


def _told_apart(pieces: Sequence[Turn]) -> list[Turn]:
    """The turns in some pieces that have no span of their own above them; none where they are one turn.

    Args:
        pieces: What stands side by side below one span: look-ups, tools and model calls.
    """
    # Two turns need two look-ups and two answers at least.
    if not 4 <= len(pieces) <= _MOST_PIECES:
        return []
    ordered = sorted(pieces, key=lambda piece: piece.root.span.start)
    callers = [piece for piece in ordered if piece.seen("llm") and not piece.retrieves]
    found = _grouped(ordered, callers)
    if len(found) < 2 or any(_is_told(group, ordered) for group in found):
        return []
    if not _share_out(ordered, callers, found) or not _stand_alone(found):
        return []
    return [Turn.of(group.calls[-1].root, [*group.parts, *group.calls]) for group in found]


def _tells_one_of(parsed: ParsedSpan, parts: Sequence[Turn], inner: Sequence[Turn]) -> bool:
    """Whether a span above several turns tells one's question, one's answer, or one of each that do not fit.

    So a batch's input may be read as its first item and its output as its last. Where a model or a tool made
    one question of another, or one holds another, they are steps of one turn.

    Args:
        parsed: What the span says.
        parts: The turns.
        inner: All that stands below the span.
    """
    question, answer = squeezed(parsed.question), squeezed(parsed.answer)
    pairs = [(squeezed(turn.question), squeezed(turn.answer)) for turn in parts]
    questions, answers = {one for one, _ in pairs}, {one for _, one in pairs}
    if (question, answer) in pairs or question not in questions | {""} or answer not in answers | {""}:
        return False
    return not (any(turn.agentic for turn in inner) or _follow(questions, inner) or _builds(parts, inner))


def _follow(questions: set[str], inner: Sequence[Turn]) -> bool:
    """Whether one question holds another, or a model wrote it."""
    replies = [squeezed(text) for turn in inner for call in turn.calls for text in call.replies]
    return any(one in text for one in questions for text in (*replies, *(questions - {one})))


def _grouped(ordered: Sequence[Turn], callers: Sequence[Turn]) -> list[_Group]:
    """The calls by what they were asked, without those that help; none where one was asked nothing."""
    queries = {squeezed(query) for piece in ordered for query in piece.queries}
    groups: dict[str, _Group] = {}
    for piece in callers:
        if not _helps(piece, queries):
            said = squeezed(_said(piece))
            groups.setdefault(said, _Group(said)).calls.append(piece)
    # A call that nothing is known of could belong to any group.
    return [] if "" in groups else list(groups.values())


def _said(piece: Turn) -> str:
    """The user's last words in the first prompt."""
    said = (words[-1] for _, parsed in piece.seen("llm") if (words := spoken(parsed.messages)))
    return next(said, "")


def _stand_alone(groups: Sequence[_Group]) -> bool:
    """Whether each group has a look-up and an answer, and none was shown what another one replied."""
    if not all(group.parts and group.answer for group in groups):
        return False
    return not any(_leans(after, before) for before, after in itertools.permutations(groups, 2))


def _is_told(group: _Group, pieces: Sequence[Turn]) -> bool:
    """Whether calls were told what a tool returned, as agents do that reason in text, rather than asked."""
    texts = list({squeezed(text) for piece in pieces for text in _returned(piece)} - {""})
    pairs = zip(texts, find_passages(texts, [group.said]), strict=True)
    returned = [text for text, seen in pairs if seen.found or text in group.said]
    length = sum(map(len, returned))
    return bool(returned) and (length >= len(group.said) * _MOSTLY or len(group.said) <= length + _LEAD)


def _returned(piece: Turn) -> Iterator[str]:
    """What a look-up or a tool came to, and the texts of what its tools returned."""
    if piece.seen("tool") or piece.retrieves:
        yield piece.answer
    for _, parsed in piece.seen("tool"):
        # A model is told a result as it stands or without what frameworks put around it.
        for result in (loaded(parsed.result), unwrapped(parsed.result)):
            yield from (text for _, text in strings_in(result))


def _helps(piece: Turn, queries: set[str]) -> bool:
    """Whether a call grades, routes or writes a query; one that only calls tools does not."""
    replies = [reply for call in piece.calls for reply in ([call.reply] if call.reply.strip() else [])]
    return bool(replies) and (is_intermediate_output(replies) or squeezed(replies[-1]) in queries)


def _share_out(ordered: Sequence[Turn], callers: Sequence[Turn], groups: Sequence[_Group]) -> bool:
    """Give each look-up and helping call to the group it belongs to; False where an owner is not certain."""
    of_call = {id(call): group for group in groups for call in group.calls}
    begun = callers[0].root.span.start  # in their order
    is_serial = all(a.root.span.end <= b.root.span.start for a, b in itertools.pairwise(ordered))
    for at, piece in enumerate(ordered):
        if id(piece) in of_call:
            continue
        named = _named(piece, groups)
        # Of calls side by side, the one before or after says nothing.
        if len(named) != 1 and not is_serial:
            return False
        owners = named if len(named) == 1 else _beside(ordered, at, of_call, begun)
        if piece.retrieves and not owners:
            return False
        for owner in owners:
            owner.parts.append(piece)
    return True


def _named(piece: Turn, groups: Sequence[_Group]) -> list[_Group]:
    """The groups whose question holds what was looked up."""
    asked = [query for query in map(squeezed, piece.queries) if query]
    return [group for group in groups if any(query in group.said for query in asked)]


def _beside(ordered: Sequence[Turn], at: int, of_call: dict[int, _Group], begun: int) -> list[_Group]:
    """The group of the call before a tool, which asks for it; for a look-up, of the call after it."""
    piece = ordered[at]
    is_asked = bool(piece.seen("tool")) and not piece.retrieves and begun < piece.root.span.start
    side = ordered[at::-1] if is_asked else ordered[at:]
    return [of_call[id(other)] for other in side if id(other) in of_call][:1]


def _leans(group: _Group, other: _Group) -> bool:
    """Whether a group was shown what another one replied, other than as a turn before it, or was asked it."""
    # An answer that repeats the question leans on it in every prompt.
    is_asked = squeezed(other.answer) in ("", group.said)
    return is_asked or any(was_told(call, other.calls[-1]) for call in group.calls)


def _builds(parts: Sequence[Turn], inner: Sequence[Turn]) -> bool:
    """Whether what stands beside some turns was shown what one of these replied; not asked of many."""
    pairs = itertools.product(parts, inner if len(inner) <= _MOST_STEPS else ())
    return any(was_told(other, one) for one, other in pairs if one.root is not other.root)
