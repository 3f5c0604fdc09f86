"""What a turn's answer rests on, by the builder that all recorders share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from steelyard.record import Context
from steelyard.recording import unique
from steelyard.recording.building import Sources, Steps, decide, guess, is_telling
from steelyard.recording.provenance import (
    ModelCall,
    Origin,
    find_passages,
    is_printed,
    is_turn,
    json_strings,
    names_passages,
    plain,
    sentence,
)
from steelyard_opentelemetry._asked import asked_on
from steelyard_opentelemetry._documents import documents_in
from steelyard_opentelemetry._span import Node, ParsedSpan
from steelyard_opentelemetry._translate import ranked
from steelyard_opentelemetry._turn import EMPTY, Turn
from steelyard_opentelemetry.dialects import known_scope, names_search, own_texts


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundPassages:
    """The passages of a turn, and how they are known."""

    steps: Steps
    """The turn as the shared builder sees it."""
    sources: Sources
    """What came into it."""
    origin: Origin
    """What of it the answer rests on."""

    @property
    def contexts(self) -> tuple[Context, ...]:
        """What the answer is judged by."""
        return self.origin.contexts

    @property
    def texts(self) -> list[str]:
        """Everything that came into it from outside of a model."""
        known = (*self.contexts, *self.sources.documents)
        return [*(one.text for one in known), *(one.text for one in self.sources.texts)]

    @property
    def is_guessed(self) -> bool:
        """Whether the passages were cut out of a prompt."""
        return self.origin.contexts_source == "guessed"

    @property
    def silent(self) -> int:
        """How many documents are told by id and score alone."""
        return self.sources.look_ups.silent


def evidence_of(turn: Turn) -> FoundPassages:
    """The passages of a turn, from whatever its spans told."""
    # Kept on the turn: several readers ask for it, and matching is what takes the time.
    if not isinstance(turn.evidence, FoundPassages):
        turn.evidence = _evidence(turn)
    return turn.evidence


def follow(turn: Turn, earlier: Sequence[ModelCall]) -> None:
    """Take in what models were sent and replied before a turn; what may come from there is judged again."""
    turn.earlier = earlier
    found = evidence_of(turn)
    sources = found.sources
    stale = _kept_in_state(turn, earlier) if len(sources.made) > 1 else ()
    sources.made = [one for one in sources.made if one.text not in stale]
    sources.texts = [one for one in sources.texts if one.text not in stale]
    documents = {one.text for one in sources.documents}
    if earlier and any(one.text not in documents for one in found.contexts):
        found.steps.earlier = earlier
        turn.evidence = _evidence(turn)


def _kept_in_state(turn: Turn, earlier: Sequence[ModelCall]) -> set[str]:
    """The documents of an earlier turn that steps were still given, and that none of this turn returned."""
    passing = [p.passing for _, p in turn.seen("chain") if len(p.passing) > 1] if earlier else []
    given, returned = ({d.text for p in passing for d in documents_in(p[at])} for at in (0, -1))
    shown = [text for call in earlier for text in call.prompts] if returned else []
    return {text for text in given - returned if any(text in one for one in shown)}


def _evidence(turn: Turn) -> FoundPassages:
    steps, sources = turn.steps, turn.sources
    if marked := turn.marked("documents"):
        told = Origin(
            contexts=ranked(marked), retrieved=(), contexts_source="told", calls=turn.behind, notes=()
        )
        return FoundPassages(steps=steps, sources=sources, origin=told)
    doubtful = "question_guessed" in turn.asked.notes
    origin = decide(steps, sources, answer=turn.answer, question=turn.question, doubtful=doubtful)
    if not origin.contexts:
        origin = _untold(turn, origin)
    elif turn.has_unread:
        origin = _with_unread(turn, origin)
    if origin.retrieved and _has_cut_prompt(turn, origin):
        # What a prompt that was cut does not show may have stood in the rest of it.
        every = tuple(replace(one, seen=None) for one in origin.retrieved)
        origin = replace(origin, contexts=every, retrieved=(), contexts_source=sources.look_ups.source)
    has_failed = any(node.span.failed for node in turn.nodes)
    if turn.answer == EMPTY and origin.contexts_source != "in_prompt" and not has_failed:
        # Whatever was retrieved was left out on the way: too unlike the question, say.
        origin = replace(origin, contexts=(), retrieved=unique(sources.found), notes=())
    return FoundPassages(steps=steps, sources=sources, origin=origin)


def _untold(turn: Turn, origin: Origin) -> Origin:
    """The same with what spans tell of, although no prompt on them shows it."""
    steps, sources = turn.steps, turn.sources
    if origin.retrieved and not _shows_results(steps, origin):
        # The span tells what the model was asked first, without what its tools returned.
        return replace(origin, contexts=sources.documents, retrieved=())
    if not any(call.prompts for call in steps.calls):
        origin = _told_without_prompt(turn, origin)
    if turn.has_unread and not origin.contexts:
        return guess(origin, steps, question=turn.question)
    return origin


def _with_unread(turn: Turn, origin: Origin) -> Origin:
    """What the prompt seems to hold beside what is known, where a look-up does not tell all that it found."""
    guessed = guess(origin, turn.steps, question=turn.question)
    known, cut = ([one.text for one in found.contexts] for found in (origin, guessed))
    if all(any(text in one or one in text for one in known) for text in cut):
        return origin
    beside = (text for text in known if not any(text in one for one in cut))
    return replace(guessed, contexts=ranked(Context(text=text) for text in (*cut, *beside)))


def _told_without_prompt(turn: Turn, origin: Origin) -> Origin:
    """The same with a template's variables in place of its prompt, or what was noted beside the answer."""
    named = (one.text for one in turn.sources.texts if names_passages(one.name))
    noted = (text for _, parsed in turn.seen("chain", "agent") for text in parsed.noted)
    filled = list(filter(is_telling, named)) or list(filter(is_telling, noted))
    notes = (sentence("no_prompt_seen"),) if filled else origin.notes
    return replace(origin, contexts=ranked(Context(text=text) for text in filled), notes=notes)


def _shows_results(steps: Steps, origin: Origin) -> bool:
    """Whether prompts tell what tools returned, so that what they do not hold was not shown."""
    if not steps.tools:
        return True
    return any(
        one.role == "tool" and one.text for at in origin.calls.all for one in steps.models[at].messages
    )


def _has_cut_prompt(turn: Turn, origin: Origin) -> bool:
    return turn.cut.length > 0 and any(
        turn.cut.ends(text) for at in origin.calls.all for text in turn.steps.calls[at].prompts
    )


_MOST_AROUND = 64


def with_own_look_ups(turn: Turn, tree: Node) -> Turn:
    """A turn for which nothing was seen to be looked up, with the application's own spans that did it.

    Args:
        turn: The turn.
        tree: All that stands beside it.
    """
    turn.tree = tree
    is_able = turn.question and turn.behind.made and not (turn.retrieves or turn.agentic)
    if not (is_able and is_turn(turn.calls, answer=turn.answer, queries=turn.queries)):
        return turn
    told = list(_told_before(turn, tree))
    if not told or _is_known(evidence_of(turn)):
        return turn
    made = [node for node, texts, around in told if _is_look_up(node, texts, around, turn)]
    # What is inside the turn already is there once.
    outside = [Turn.below(node) for node in made if node not in turn.nodes]
    return Turn.of(turn.root, [*outside, turn]) if made else turn


def tells_search(turn: Turn) -> bool:
    """Whether spans of the application's own say that something was looked up before the answer, not what.

    Of several model calls without a step around them the one after the look-up answers.
    """
    others = [] if turn.tree is None else [node for node in turn.tree.below() if node not in turn.nodes]
    begun = min((turn.llms[at][0].span.start for at in turn.behind.made), default=turn.root.span.end)
    if _is_model(turn.root) and any(_is_model(node) and node.span.end > begun for node in others):
        return False
    before = (node for node in (*others, *turn.nodes) if node.span.start <= begun)
    return any(names_search(node.span) for node in before if _is_own(node))


def _is_model(node: Node) -> bool:
    return node.parsed is not None and node.parsed.kind == "llm"


def _is_own(node: Node) -> bool:
    """Whether the application wrote a span itself, in a convention or in none."""
    return node.parsed is None or node.parsed.dialect == "generic" or not known_scope(node.span.scope)


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
    said = set(_said_before(node, turn))
    query = next((text for text in around if plain(text) in {plain(turn.question), *said}), "")
    documents = tuple(Context(text=text) for text in _brought(texts, turn, said)) if query else ()
    if documents:
        node.parsed = ParsedSpan(dialect="generic", kind="retrieval", query=query, documents=documents)
    return bool(documents)


def _said_before(node: Node, turn: Turn) -> Iterator[str]:
    """What models had replied when a span ended, be they none of the turn's: one that rewrites a query."""
    for one in turn.tree.below() if turn.tree is not None else ():
        if one.parsed is not None and one.parsed.kind == "llm" and one.span.end <= node.span.end:
            for reply in (one.parsed.answer, *one.parsed.arguments):
                yield from map(plain, json_strings(reply))


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
