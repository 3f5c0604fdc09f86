"""Which turns some spans of one trace hold: read once, and kept until they are recorded.

A turn is usually everything below the topmost span that a dialect knows. A span that no dialect knows (an
HTTP server) may hold one turn in pieces or several turns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.record import Context
from steelyard.recording.building import is_telling
from steelyard.recording.provenance import find_passages, is_intermediate_output, is_turn, plain
from steelyard.recording.reading import is_question, strings_in
from steelyard_opentelemetry.building._build import failure
from steelyard_opentelemetry.building._evidence import FoundPassages, evidence_of
from steelyard_opentelemetry.building._several import tells_one_of, told_apart
from steelyard_opentelemetry.building._turn import EMPTY, Turn
from steelyard_opentelemetry.dialects import own_texts, parse
from steelyard_opentelemetry.spans._payload import loaded, squeezed
from steelyard_opentelemetry.spans._span import ParsedSpan, Span
from steelyard_opentelemetry.spans._tree import Node, grow


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
_MOST_AROUND = 64
_MOST_STEPS = 64  # below a span that tells a question or an answer; more are an agent's work
_ROW = (
    ("user_input", "question", "query", "input"),
    ("response", "answer", "actual_output", "generated_answer", "prediction"),
)
"""What a row of an evaluation holds: a question and its answer, under any of these names."""


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
    tops = [turn for top in tree.tops() for turn in _turns_of(top)]
    if not tops:
        return [], [Turn.below(tree)]
    if len(tops) <= _MOST_STEPS:
        tops = [with_own_look_ups(turn, tree) for turn in tops]
    whole: list[Turn] = []
    pieces: list[Turn] = []
    for turn in tops:
        (whole if _whole(turn) else pieces).append(turn)
    if whole:
        return whole, pieces
    if apart := told_apart(pieces):
        return apart, []
    together = Turn.of(tree, pieces)
    if len(pieces) > 1 and _whole(together):
        return [together], []
    return [], pieces


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
    return inner if _is_bracket(parsed) or tells_one_of(parsed, asked, inner) else []


def _side_by_side(parsed: ParsedSpan, nodes: Sequence[Node]) -> list[Turn]:
    """The turns whose look-ups and model calls stand side by side below a span."""
    kinds = Counter(node.parsed.kind for node in nodes if node.parsed)
    may_hold = min(kinds["llm"], kinds["retrieval"]) > 1 and len(nodes) <= _MOST_STEPS
    if not (may_hold or _is_bracket(parsed)):
        return []
    inner = [Turn.below(node) for node in nodes]
    apart = told_apart(inner)
    return apart if _is_bracket(parsed) or (apart and tells_one_of(parsed, apart, inner)) else []


def _is_bracket(parsed: ParsedSpan) -> bool:
    """Whether a span says nothing of a question or an answer, so that it may hold any number of turns."""
    return not (parsed.question or parsed.answer)


def _own_question(node: Node) -> str:
    """What a step below says that it was asked, so that it may be a turn of its own."""
    parsed = node.parsed
    return parsed.question if parsed is not None and parsed.kind in ("chain", "agent", "turn") else ""


def _stands_alone(turn: Turn) -> bool:
    """Whether a part has an answer and passages of its own, be it that only its prompt has them."""
    return _whole(turn) or (turn.answer != "" and is_judgeable(turn, evidence_of(turn)))


def _whole(turn: Turn) -> bool:
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
