"""What spans told of a turn, as the steps that the shared builder reads."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from steelyard.record import Context
from steelyard.recording import unique
from steelyard.recording.building import (
    Step,
    StepKind,
    Steps,
    is_prompt,
    is_status,
    is_telling,
    revised,
    said_by_command,
    said_last,
    shared_end,
)
from steelyard.recording.provenance import ModelCall, json_strings, plain
from steelyard.recording.reading import asked_in, messages_in, strings_in
from steelyard_opentelemetry._documents import asked_of_tool, documents_in, has_failed, merged, told_by_tool
from steelyard_opentelemetry._payload import Words, answer_in, answer_in_form, decode, loaded, shows_object
from steelyard_opentelemetry._span import Kind, Node, ParsedSpan

if TYPE_CHECKING:
    from steelyard_opentelemetry._turn import Turn

_KINDS: dict[Kind, StepKind] = {
    "turn": "chain",
    "agent": "chain",
    "chain": "chain",
    "prompt": "chain",
    "llm": "model",
    "tool": "tool",
    "retrieval": "retrieval",
    "rerank": "rerank",
}
_MOST_ASKED = 60  # words of a line that may be a question
_SENT = frozenset(("messages", "prompt", "contents", "input", "request"))
"""Fields of a model's input that its messages are read from."""


def steps_of(turn: Turn) -> Steps:
    """The turn as steps; what the root was given is left to `given_of`."""
    calls = {id(node): call for (node, _), call in zip(turn.llms, turn.calls, strict=True)}
    known = _Known(list(_known(turn)), _words(turn))
    steps: list[Step] = []
    for node, step in _with_parents(turn, calls):
        parsed = node.parsed
        if step is None or parsed is None:
            continue
        if parsed.kind == "llm":
            step.call, step.messages = calls[id(node)], parsed.messages
        else:
            _fill(step, node, parsed, known, is_root=node is turn.root)
        steps += (step, *_beside(step, parsed))
    return Steps(
        returned=_returned(turn), steps=steps, in_conversation=turn.in_conversation, answer=turn.answer
    )


def _returned(turn: Turn) -> Any:
    """What the root returned, as its span tells it."""
    root = turn.root.parsed
    passing = root.passing if root is not None and root.kind != "llm" else ()
    return loaded(passing[-1]) if len(passing) > 1 else None


@dataclass(frozen=True, slots=True, repr=False)
class _Known:
    """What the whole turn tells, by which one step is read."""

    documents: Sequence[Context]
    """Documents that any span mentions."""
    texts: Sequence[str]
    """What is known to be words: what models were sent, and what was looked up."""


def _fill(step: Step, node: Node, parsed: ParsedSpan, known: _Known, *, is_root: bool) -> None:
    """What a step other than a model call was given and returned."""
    if parsed.kind in ("retrieval", "rerank"):
        _told(step, node, parsed, known)
    elif parsed.kind == "tool":
        step.given = asked_of_tool(parsed.passing)
        step.returned, step.silent = told_by_tool(parsed.result, known.texts)
        said = loaded(parsed.result)
        step.hands_over = said_by_command(said.get("output", said) if isinstance(said, Mapping) else said)[1]
        step.contexts = ranked(one for one in documents_in(parsed.result) if one.text) or None
        step.failed = step.failed or has_failed(parsed.result)
    elif parsed.kind != "prompt":
        _passed(step, parsed, known, is_root=is_root)
        if parsed.kind == "agent" and parsed.answer and step.is_within("tool") and not _calls_model(node):
            # Models said it, although no span tells of their calls: it is the tool's result, and no evidence.
            step.call = ModelCall(prompts=(parsed.question,), reply=parsed.answer, started=step.at)


def _with_parents(turn: Turn, calls: Container[int]) -> Iterator[tuple[Node, Step | None]]:
    """Every span with its step, in order of start; of two views of one model call the second has none."""
    above: dict[int, Step | None] = {}
    for node in turn.nodes:
        parsed, parent = node.parsed, above.get(id(node))
        step = None
        if parsed is not None and (parsed.kind != "llm" or id(node) in calls):
            step = Step(
                kind="chain" if _asks_within(node) else _KINDS[parsed.kind],
                name=parsed.tool or node.span.name,
                parent=parent,
                at=float(node.span.start),
                ended=float(node.span.end),
                failed=node.span.failed,
            )
        for child in node.children:
            above[id(child)] = step or parent
        yield node, step


def _calls_model(node: Node) -> bool:
    return any(below.parsed and below.parsed.kind == "llm" for below in node.below())


def _asks_within(node: Node) -> bool:
    """Whether a span tells passages and an answer, and the model call that made it stands below."""
    parsed = node.parsed
    if parsed is None or parsed.kind != "retrieval" or not parsed.answer:
        return False
    return _calls_model(node)


def _told(step: Step, node: Node, parsed: ParsedSpan, known: _Known) -> None:
    """What a retrieval or a reranker returned: its own documents, else those of the retrieval inside it."""
    typed = loaded(parsed.passing[0], known.texts) if parsed.passing else None
    step.given = typed if isinstance(typed, Words) else parsed.query or None
    lists = list(_lists(node, parsed))
    texts = next((found for found in lists if any(one.text for one in found)), ())
    if texts or parsed.empty:
        documents = (one for one in texts if one.text)
        step.contexts = ranked(merged(documents, known.documents))
    step.silent = sum(not one.text for one in (texts or next(filter(None, lists), ())))


def _lists(node: Node, parsed: ParsedSpan) -> Iterator[Sequence[Context]]:
    """The lists of documents that a retrieval may stand for, the best first."""
    if parsed.empty:
        return
    below = [n.parsed for n in node.below() if n.parsed and n is not node]
    # Of rerankers the inner one has what comes from the ranking itself.
    yield from (one.documents for one in below if one.kind == "rerank" == parsed.kind)
    yield parsed.documents
    yield from (one.documents for one in below if one.kind == "retrieval")


def ranked(documents: Iterable[Context]) -> tuple[Context, ...]:
    """The documents with their places."""
    return tuple(
        Context(text=one.text, id=one.id, score=one.score, rank=rank) for rank, one in enumerate(documents)
    )


def _passed(step: Step, parsed: ParsedSpan, known: _Known, *, is_root: bool) -> None:
    """What a step was given and returned; what the root was given is the turn's."""
    values = [loaded(payload, known.texts) for payload in parsed.passing]
    if values and not is_root:
        step.given = values[0]
    if len(values) > 1 and not shows_object(values[-1]):
        step.returned = values[-1]
    documents = [one for value in values for one in documents_in(value) if one.text]
    step.contexts = ranked(unique(documents)) or None


def _beside(step: Step, parsed: ParsedSpan) -> Iterator[Step]:
    """What a template was filled with, and the text around documents that a later step may have shown."""
    if parsed.variables:
        yield Step(kind="prompt", given=dict(parsed.variables), parent=step.parent, at=step.at)
    if parsed.kind == "llm" and parsed.passing and isinstance(rest := loaded(parsed.passing[0]), Mapping):
        given = {name: value for name, value in rest.items() if name not in _SENT}
        yield Step(kind="chain", given=given, parent=step.parent, at=step.at)
    if found := [Context(text=text) for one in parsed.messages for text in one.documents]:
        yield Step(kind="chain", contexts=ranked(unique(found)), parent=step.parent, at=step.at)
    if parsed.noted:
        yield Step(kind="chain", returned=list(parsed.noted), parent=step.parent, at=step.at)
    if parsed.windows:
        yield Step(kind="chain", contexts=ranked(parsed.windows), parent=step.parent, at=step.at)


def _words(turn: Turn) -> list[str]:
    """What is known to be words, and what a state that the root returned holds as one text."""
    returned = turn.root.parsed.passing[1:] if turn.root.parsed is not None else ()
    fields = (value for state in returned if isinstance(state, Mapping) for value in state.values())
    return [*turn.prompts, *turn.queries, *(value for value in fields if isinstance(value, str))]


def _known(turn: Turn) -> Iterator[Context]:
    """Documents that any span mentions with an id or a score: the same text is the same document."""
    for _, parsed in turn.seen("retrieval", "rerank", "chain", "tool", "agent"):
        yield from (one for one in parsed.documents if one.text)
        for payload in parsed.passing:
            yield from documents_in(payload)


def given_of(turn: Turn, steps: Steps) -> tuple[Any, bool]:
    """What the turn was given, and whether somebody else than the user may have written it.

    The input of its outermost step, else what was looked up first and stands in a prompt; the input of an
    inner step; what a template was filled with; or what the first model was sent. A model may have written
    what came after its call, and an application what the first of several calls was sent alone.
    """
    if outermost := list(_inputs(turn, steps)):
        return _asking(_unwritten(outermost, turn), outermost), False
    sent, filled = _sent(steps), _filled_in(steps)
    spoken_last = asked_in(sent)
    is_alone = isinstance(sent, list) and len(sent) == 1 and len(steps.models) > 1
    if query := looked_up(steps):
        return query, _may_be_written(steps, next(s.at for s in steps.retrievals if s.given == query))
    if asked_in(filled):
        return filled, False
    if spoken_last and "\n" not in spoken_last:
        return sent, is_alone
    if inner := next(_within(turn, steps), None):
        return inner
    return (filled, False) if filled else (sent, is_alone) if sent else (_said_once(turn, steps), True)


def _inputs(turn: Turn, steps: Steps) -> Iterator[Any]:
    """What the outermost steps were given, without whole prompts."""
    given = chain(map(_input, _outermost(turn), repeat(_words(turn))), map(_sent_by, turn.wrappers))
    return (one for one in given if one and not is_prompt(asked_in(one), steps))


def _unwritten(inputs: Sequence[Any], turn: Turn) -> Any:
    """The first that asks what no model wrote before the turn: a planner's query may stand beside it."""
    replies = (reply for call in turn.earlier for reply in call.replies if len(inputs) > 1)
    written = {"", *(text.strip() for reply in replies for text in json_strings(reply))}
    return next((one for one in inputs if asked_in(one).strip() not in written), inputs[0])


def _asking(given: Any, inputs: Sequence[Any]) -> Any:
    """Of a prompt of several lines what a step beside it was asked, which is the part that asks."""
    parts = [one for one in inputs if asked_in(one) and asked_in(one) in asked_in(given)]
    return min(parts, key=lambda one: len(asked_in(one)), default=given) if "\n" in asked_in(given) else given


def _sent_by(parsed: ParsedSpan) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.words} for message in parsed.messages]


def _within(turn: Turn, steps: Steps) -> Iterator[tuple[Any, bool]]:
    """What inner steps were given that asks something and that no model wrote."""
    words = _words(turn)
    told = [(node, parsed) for node, parsed in turn.seen("chain", "agent", "turn")]
    inner = [(node, parsed) for node, parsed in told if "tool" not in turn.above[id(node)]]
    said = {text.strip() for call in steps.calls for text in call.replies}
    return (
        (given, _may_be_written(steps, node.span.start))
        for node, parsed in inner
        if (given := _input(parsed, words)) and asked_in(given) not in {*said, turn.answer, ""}
    )


def _may_be_written(steps: Steps, at: float) -> bool:
    """Whether a model may have written a text by then: one that was asked before, or that nobody saw."""
    return any(step.at < at for step in steps.models) or not any(call.prompts for call in steps.calls)


def told_answer(turn: Turn) -> str:
    """What the root returned in words; if it tells nothing at all, what the only step below it did."""
    root = turn.root.parsed
    if root is None or not (root.answer or root.passing or root.kind not in ("chain", "agent")):
        outer = _outermost(turn)
        return _said(outer[0], turn) if len(outer) == 1 else ""
    return _said(root, turn)


def _said(parsed: ParsedSpan, turn: Turn) -> str:
    """A step's answer: as its dialect reads it, or the text that it returned and was not given."""
    if parsed.kind not in ("chain", "agent") or len(parsed.passing) < 2:
        return parsed.answer
    returned = loaded(parsed.passing[-1])
    if whole := _whole_reply(parsed, turn):
        return whole
    if new := _new_beside(parsed, returned, turn):
        return new
    if parsed.answer:
        texts = [text for _, text in strings_in(returned)]
        return revised(parsed.answer, texts, turn.told_calls) if len(texts) > 1 else parsed.answer
    if not isinstance(returned, Mapping):
        return ""
    last = next(reversed(messages_in(returned)), None)
    if last is not None and any(last.text.strip() == call.reply.strip() != "" for call in turn.told_calls):
        return last.text  # a node puts what a model said among the messages, as whoever's
    return _new_text(loaded(parsed.passing[0]), returned, turn)


def _new_beside(parsed: ParsedSpan, returned: Any, turn: Turn) -> str:
    """The new text beside an answer in the conversation that a step was given: an earlier one's."""
    given = loaded(parsed.passing[0])
    is_kept = any(one.role == "assistant" and one.text == parsed.answer for one in messages_in(given))
    return _new_text(given, returned, turn) if is_kept else ""


def _whole_reply(parsed: ParsedSpan, turn: Turn) -> str:
    """The model's reply that a step returned, if that object says more than the answer that is read of it."""
    came = parsed.passing[-1]
    if not isinstance(came, Mapping):
        return ""
    said = (call.reply for call in turn.told_calls if call.reply.lstrip().startswith("{"))
    reply = next((one for one in said if decode(one.strip()) == came), "")
    more = (text for _, text in strings_in(came) if text.strip() != parsed.answer and is_telling(text))
    return reply if answer_in_form(reply) == reply and any(more) else ""


def _new_text(given: Any, returned: Any, turn: Turn) -> str:
    """The only text that a step returned and was not given; of several the one that models said last."""
    # What a model said once more counts, although the conversation that was given holds it.
    replies = (one for call in turn.told_calls for one in call.replies)
    said_now = {said.strip() for one in replies for said in json_strings(one)}
    known = {text for _, text in strings_in(given)} - said_now
    new = (text for _, text in strings_in(returned) if text not in known)
    # What shows an object is no text, but a text may be JSON.
    said = {answer_in(text) or ("" if shows_object(text) else text.strip()) for text in new} - {""}
    return _said_of(said, turn)


def _said_of(texts: set[str], turn: Turn) -> str:
    """The only text, that which models said last, or the only one that says something: code may answer."""
    if len(texts) == 1 and not any(is_status(text, turn.told_calls) for text in texts):
        return next(iter(texts))
    telling = list(filter(is_telling, texts))
    return said_last(sorted(texts), turn.told_calls) or (telling[0] if len(telling) == 1 else "")


def _outermost(turn: Turn) -> list[ParsedSpan]:
    """The steps below no other one; instead of one that tells nothing, the only step below it."""
    told = {id(node): (node, parsed) for node, parsed in turn.seen("chain", "agent", "turn")}
    outer = [node for node, _ in told.values() if turn.above[id(node)].isdisjoint(("chain", "agent", "tool"))]
    found = []
    for node in outer:
        _, parsed = told[id(node)]
        inner = [one for child in node.children for one in child.tops()]
        while not (parsed.passing or parsed.question) and len(inner) == 1 and id(inner[0]) in told:
            node, parsed = told[id(inner[0])]
            inner = [one for child in node.children for one in child.tops()]
        found.append(parsed)
    return found


def _input(parsed: ParsedSpan, words: Sequence[str]) -> Any:
    """What a step was given, without what tracers put beside it; nothing if it only names an object."""
    given = loaded(parsed.passing[0], words) if parsed.passing else None
    if isinstance(given, Mapping) and (set(given) == {"resume"} or "init_state" in given):
        # A graph goes on with a person's word, and a workflow tells its state: neither is what was asked.
        return parsed.question
    # The dialect reads what Python shows of objects; what is left after it holds no words.
    is_shown = isinstance(given, str) and given != parsed.question and not isinstance(given, Words)
    is_figures = isinstance(given, Mapping) and not (any(strings_in(given)) or messages_in(given))
    return parsed.question if is_shown or is_figures or not given else given


def asked_within(steps: Steps) -> list[str]:
    """The lines that inner steps were given alone and that no step returned."""
    asked = [step.given for step in steps.steps if step.kind == "chain"]
    lines = [texts[0] for given in asked if len(texts := [text for _, text in strings_in(given)]) == 1]
    returned = {text for step in steps.steps for _, text in strings_in(step.returned)}
    short = (line for line in lines if "\n" not in line and len(line.split()) <= _MOST_ASKED)
    return [line for line in short if line not in returned]


def looked_up(steps: Steps) -> str:
    """The first query, if the prompts hold it or none was seen."""
    asked = [s for s in steps.retrievals if isinstance(s.given, str) and not s.is_within("tool")]
    if len({step.given for step in asked}) != 1:
        return ""  # of several parts none is the whole question
    query, prompts = str(asked[0].given), [plain(text) for call in steps.calls for text in call.prompts]
    return query if not prompts or any(plain(query) in text for text in prompts) else ""


def _filled_in(steps: Steps) -> Any:
    filled = (one.given for one in steps.steps if one.kind == "prompt" and not one.is_within("tool"))
    return next(filled, None)


def _said_once(turn: Turn, steps: Steps) -> str | None:
    """What a model's span tells in place of a prompt, else what was said to the first and a later one."""
    return next((one.question for _, one in turn.llms if turn.repeats(one)), None)


def _sent(steps: Steps) -> Any:
    """What the first model was sent, if nothing was looked up before it."""
    first = next((step for step in steps.models if step.messages and not step.is_within("tool")), None)
    if first is None or any(step.at < first.at or not step.is_within("tool") for step in steps.retrievals):
        return None
    if not any(one.role == "user" for one in first.messages):
        return None  # a prompt of which nobody tells who said what
    sent = [{"role": one.role, "content": one.words} for one in first.messages if one.role != "tool"]
    sent[-1]["content"] = shared_end(sent[-1]["content"], first, steps)
    return sent
