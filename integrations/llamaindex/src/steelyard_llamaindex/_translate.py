"""What the dispatcher told of a run, as the steps of a turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.building import Step, StepKind, Steps, is_telling
from steelyard.recording.provenance import (
    ModelCall,
    guessed_question,
    is_history,
    plain,
    unescaped,
    word_count,
)
from steelyard.recording.reading import asked_in, attribute, messages_in, since_last_asked
from steelyard_llamaindex._extract import Nodes, answer_of, fields_of, nodes_of, reply_of, result_of, texts_of
from steelyard_llamaindex._kinds import bases_of
from steelyard_llamaindex._turn import Call, LiveStep, Predecessor, Turn, in_conversation, unused

_MOST_ASKED = 20
"""Words of a question; a longer one may be a prompt."""
_TELLING = 8
"""Words that stand in two prompts only if both were given the same passage."""
_QUERIED = {"sql_query": "result", "pandas_instruction_str": "raw_pandas_output"}
"""What engines over tables tell in a response's metadata: the query that a model wrote, and its rows."""
_Taken = tuple[tuple[LiveStep, ...], list[list[Step]]]
_KINDS: dict[str, StepKind] = {"retrieve": "retrieval", "query": "rerank", "chat": "rerank", "tool": "tool"}
"""An engine returns what its postprocessors left of what it retrieved, so that it stands for a reranker."""


def turn_of(turn: Turn) -> Steps:
    """The turn as steps."""
    read = Nodes([text for call in turn.calls for text in texts_of(call.asked)])
    before = _before(turn, read)
    parts, asked = _answered_in_parts(turn, read)
    is_searched = bool(parts) or any(before) or any(span.kind == "retrieve" for span in turn.steps)
    steps = [*_steps(turn, read), *parts, *([] if is_searched else _strays(turn, read))]
    replied = [] if turn.is_alone or is_searched else list(_replied_elsewhere(turn, read))
    return Steps(
        given=asked or _given(_asked_alone(turn) if turn.root.kind == "llm" else turn.root.asked),
        returned=result_of(turn.root.result),
        steps=sorted(steps, key=lambda step: step.at),
        before=before,
        earlier=[*earlier_calls(turn), *replied],
        elsewhere=bool(replied),
        instructions=sorted(turn.headers),
        said=[asked_in(_given(task)) for task in turn.tasks],
        in_conversation=turn.root.kind == "chat",
    )


def _asked_alone(turn: Turn) -> Any:
    """What a call that no run holds was made with: what its template was filled with, or what it was sent."""
    filled = next((value for _, value, is_variables in turn.passed if is_variables), None)
    return filled or (turn.calls[0].asked if turn.calls else turn.root.asked)


def _steps(turn: Turn, read: Nodes) -> list[Step]:
    made: dict[int, Step] = {}
    steps: list[Step] = []
    for span in turn.steps:
        parent = _parent(span, made)
        step = _step(span, parent, read, is_root=span is turn.root)
        if step is not None:
            made[id(span)] = step
            steps += [step, *_queried(span, step)]
    steps += (_model(call, _parent(call.step, made, own=True)) for call in turn.calls)
    steps += (_passed(*one) for one in turn.passed)
    return steps


def _before(turn: Turn, read: Nodes) -> list[list[Step]]:
    """What was retrieved before the turn, by run: in its own task or thread, else in others."""
    found = [_retrieval(span, read) for span in unused(turn)]
    shown = [any(read.holds(one.text) for one in step.contexts or ()) for step in found]
    # A run that may search by itself is judged by that, unless its prompts hold what was found before.
    before = [
        [step] if turn.is_alone or is_shown else [] for step, is_shown in zip(found, shown, strict=True)
    ]
    if not any(shown):
        turn.taken, before = _found_elsewhere(turn, read) or ((), before)
    return before


def _found_elsewhere(turn: Turn, read: Nodes) -> _Taken | None:
    """What other tasks and threads retrieved before the turn, or what it kept, if its prompts hold that."""
    if turn.root.kind in ("query", "chat"):
        # What is in the prompts may be an earlier turn's; what the engine was given is not.
        asked = asked_in(turn.root.asked)
        read = Nodes([asked] if word_count(asked) > _MOST_ASKED else [])
    elif turn.root.kind not in ("llm", "synthesis"):
        return None
    return _strays_before(turn, read, _unclaimed(turn)) or _kept_before(turn)


def _strays(turn: Turn, read: Nodes) -> Iterator[Step]:
    """What threads that knew nothing of the turn retrieved during it, as far as its prompts hold it.

    Not for a turn that has a retrieval of its own: then that is where its passages come from.
    """
    for span in _unclaimed(turn):
        if span.began >= turn.root.began and (step := _stray(span, read)):
            yield replace(step, given=None)


def _strays_before(turn: Turn, read: Nodes, spans: Iterable[LiveStep]) -> _Taken | None:
    """The same of a call that no run holds, before it: an event loop has a thread search for it.

    Only what is too long to stand in its prompt by chance; of several that found the same the latest counts.
    """
    taken: dict[LiveStep, Step] = {}
    known: set[str] = set()
    for span in reversed(list(spans)):
        ended = _ended(span)
        step = _stray(span, read) if ended is not None and ended <= turn.root.began else None
        texts = {one.text for one in step.contexts or ()} if step else set[str]()
        if step and not texts <= known and sum(map(word_count, texts)) >= _TELLING:
            known |= texts
            taken[span] = step
    runs = [[step] for step in reversed(taken.values())]
    return (tuple(reversed(taken)), runs) if runs else None


def _kept_before(turn: Turn) -> _Taken | None:
    """What was found for an earlier call that no run holds, if code kept it and fills the same template anew.

    What stands in the conversation is that call's own.
    """
    if turn.root.kind != "llm" or not turn.calls:
        return None
    asked = turn.calls[0].asked
    messages = messages_in(asked) if isinstance(asked, (list, tuple)) else ()
    own = [one.text for one in (*messages[:1], *since_last_asked(messages))] or texts_of(asked)
    before = [one for one in (*turn.predecessors, *turn.replied) if 0 < one.ended <= turn.root.began]
    spans = {span for one in before if _is_filled_anew(one, texts_of(asked)) for span in one.found}
    return _strays_before(turn, Nodes(own), sorted(spans, key=lambda span: span.began))


def _is_filled_anew(run: Predecessor, prompts: tuple[str, ...]) -> bool:
    """Whether prompts have every line and label of an earlier one's, beside what it asked and was shown."""
    steps = [_retrieval(span, Nodes(run.prompts)) for span in run.found]
    filled = [one.text for step in steps for one in step.contexts or ()] + [
        step.given or "" for step in steps
    ]
    template = _pieces(run.prompts, filled)
    return template <= _pieces(prompts, filled) if template else prompts == run.prompts


def _pieces(prompts: Iterable[str], filled: Iterable[str]) -> set[str]:
    """The lines and labels of prompts, without what they are filled in with and without signs."""
    text = unescaped("\n".join(prompts))
    for one in sorted(map(unescaped, filled), key=len, reverse=True):
        text = text.replace(one or "\n", "\n")
    parts = (re.findall(r"\w+", part) for line in text.split("\n") for part in line.split(":"))
    return {" ".join(words) for words in parts if words}


def _answered_in_parts(turn: Turn, read: Nodes) -> tuple[list[Step], str]:
    """What earlier runs looked up and replied, if a call that no run holds was shown that.

    Its prompt names the question that an engine searched for, or several runs searched for what it holds: of
    files, of chapters, of indexes. What these replied differs: one refusal may stand in every prompt. Of an
    engine that was asked the question, what it found may be shown without its reply.
    """
    runs = [one for one in turn.predecessors if _joins(turn) and 0 < one.ended <= turn.root.began]
    named = _named_in(turn) if runs else set()
    told = [one for one in runs if _is_told(one, named, read)]
    asked = _asked_of_all(told, read) or _asked_of_one(told, named)
    return [step for one in told if asked for step in _part(one, asked, read)], asked


def _asked_of_all(told: Iterable[Predecessor], read: Nodes) -> str:
    """What several runs searched for and a prompt holds."""
    said = {(query, plain(one.reply[0])) for one in told for query in _queries(one)}
    counts = Counter(query for query, _ in said)
    return next((query for query, count in counts.items() if count > 1 and read.holds(query)), "")


def _asked_of_one(told: Iterable[Predecessor], named: Collection[str]) -> str:
    """The question that an engine searched for and a prompt names."""
    return next((query for one in told if one.name for query in _queries(one) if query in named), "")


def _named_in(turn: Turn) -> set[str]:
    return {guessed_question(text) for call in turn.calls for text in texts_of(call.asked)}


def _joins(turn: Turn) -> bool:
    """Whether a call that no run holds may make an answer of others, and goes on with no conversation."""
    return turn.is_alone and not (turn.calls and in_conversation(turn.calls[0].asked))


def _queries(run: Predecessor) -> list[str]:
    return [asked_in(span.asked) for span in run.found]


def _is_told(run: Predecessor, named: Collection[str], read: Nodes) -> bool:
    """Whether a prompt holds what a run replied, or, if it names what that was asked, what that found."""
    if is_telling(run.reply[0]) and read.holds(run.reply[0]):
        return True
    spans = [span for span in run.found if run.name and asked_in(span.asked) in named]
    found = (one.text for span in spans for one in _retrieval(span, read).contexts or ())
    return any(map(read.shows, filter(is_telling, found)))


def _part(run: Predecessor, asked: str, read: Nodes) -> Iterator[Step]:
    own = Nodes(run.prompts) if read.holds(run.reply[0]) else read
    yield from (_retrieval(span, own) for span in run.found if asked_in(span.asked) == asked)
    call = ModelCall(prompts=run.prompts, reply=run.reply[0], started=run.ended)
    yield Step(kind="model", call=call, at=run.ended, ended=run.ended)


def _unclaimed(turn: Turn) -> Iterator[LiveStep]:
    own = {id(span) for span in turn.loose}
    return (one for one in turn.strays if id(one) not in own and one.used_by in (None, turn.id))


def _stray(span: LiveStep, read: Nodes) -> Step | None:
    """What was retrieved elsewhere, as far as the turn's prompts hold it, the query too.

    Without ids and scores: where two turns hold the same text, they may be another user's.
    """
    step = _retrieval(span, read)
    shown = tuple(Context(text=one.text) for one in step.contexts or () if read.shows(one.text))
    given = step.given if isinstance(step.given, str) and read.holds(step.given) else None
    return replace(step, given=given, contexts=shown) if shown else None


def _replied_elsewhere(turn: Turn, read: Nodes) -> Iterator[ModelCall]:
    """What models replied in threads that knew nothing of the turn, if its prompts hold it: no passages.

    Without their prompts, which may be another user's. Not for a turn that has a retrieval of its own.
    """
    for run in turn.replied:
        if not run.prompts or run.ended <= turn.root.began:
            continue
        reply, arguments = run.reply
        if is_telling(reply) and read.holds(reply):
            yield ModelCall(prompts=(), reply=reply, arguments=arguments, started=run.ended)


def _passed(at: float, value: Any, is_variables: bool) -> Step:
    """What a template was filled with, or what a step of a workflow returned: of an event its fields."""
    if is_variables:
        return Step(kind="prompt", given=value, at=at)
    # What a tool returned its own step tells, and whether that is an error.
    returned = None if attribute(value, "tool_output") is not None else fields_of(value)
    return Step(kind="chain", returned=returned, at=at, ended=at)


def _given(asked: Any) -> Any:
    """What the root was called with; of an event, its fields."""
    if isinstance(asked, Mapping):
        return {
            name: text for name, text in asked.items() if not (isinstance(text, str) and is_history(text))
        }
    if asked is None or isinstance(asked, (str, list, tuple)) or messages_in(asked):
        return asked
    query = attribute(asked, "query_str")
    if isinstance(query, str):
        return query
    # What a memory holds is the conversation, and what was set up before it.
    fields = {name: one for name, one in fields_of(asked).items() if "BaseMemory" not in bases_of(one)}
    # An agent may be given its question as the last message of a conversation, which it then goes on with.
    history = None if fields.get("user_msg") else fields.get("chat_history")
    return {**fields, "messages": history} if history else fields


def _parent(span: LiveStep, made: dict[int, Step], *, own: bool = False) -> Step | None:
    above: LiveStep | None = span if own else span.parent
    while above is not None and id(above) not in made:
        above = above.parent
    return None if above is None else made[id(above)]


def _step(span: LiveStep, parent: Step | None, read: Nodes, *, is_root: bool) -> Step | None:
    kind = _KINDS.get(span.kind)
    if kind is None:
        return None
    if kind == "retrieval":
        return replace(_retrieval(span, read), parent=parent)
    if kind == "tool":
        return _tool(span, parent, read)
    nodes = nodes_of(result_of(span.result))
    return Step(
        kind=kind,
        name=span.name,
        parent=parent,
        given=asked_in(span.asked) or None,
        returned=answer_of(span.result) or None,
        contexts=read.contexts(nodes),
        at=span.began,
        ended=_ended(span),
    )


def _queried(span: LiveStep, engine: Step) -> Iterator[Step]:
    """The query that an engine had a model write for a table, with the rows that it returned."""
    metadata = attribute(result_of(span.result), "metadata") if span.kind == "query" else None
    if not isinstance(metadata, Mapping):
        return
    for query, rows in _QUERIED.items():
        if isinstance(metadata.get(query), str):
            returned = text_of(metadata.get(rows))
            yield replace(engine, kind="tool", given=metadata[query], returned=returned, contexts=None)


def _retrieval(span: LiveStep, read: Nodes) -> Step:
    nodes = nodes_of(span.result)
    contexts = read.contexts(nodes)
    return Step(
        kind="retrieval",
        name=span.name,
        given=asked_in(span.asked) or None,
        contexts=None if span.result is None else contexts,
        silent=len(nodes) - len(contexts),
        at=span.began,
        ended=_ended(span),
    )


def _tool(span: LiveStep, parent: Step | None, read: Nodes) -> Step | None:
    output = span.result
    raw, name = attribute(output, "raw_output"), text_of(attribute(output, "tool_name"))
    if name and name in bases_of(raw):
        return None  # a form that a model filled in: nothing was looked up
    nodes = nodes_of(output)
    is_value = isinstance(raw, (list, tuple, Mapping)) and not nodes
    given = attribute(output, "raw_input")
    return Step(
        kind="tool",
        name=name or span.name,
        parent=parent,
        given=given.get("kwargs") or given if isinstance(given, Mapping) else None,
        returned=raw if is_value else text_of(attribute(output, "content")),
        contexts=read.contexts(nodes) or None,
        at=span.began,
        ended=_ended(span),
        failed=output is None or attribute(output, "is_error") is True or attribute(raw, "isError") is True,
    )


def _model(call: Call, parent: Step | None) -> Step:
    reply, arguments = reply_of(
        call.reply if call.reply is not None or call.step.kind != "llm" else call.step.result
    )
    return Step(
        kind="model",
        name=call.step.name,
        parent=parent,
        call=ModelCall(
            prompts=texts_of(call.asked),
            reply=reply,
            arguments=arguments,
            started=call.began,
            name=call.step.name,
        ),
        messages=messages_in(call.asked) if isinstance(call.asked, (list, tuple)) else (),
        at=call.began,
        ended=call.ended,
    )


def _ended(span: LiveStep) -> float | None:
    return None if span.seconds is None else span.began + span.seconds


def earlier_calls(turn: Turn) -> list[ModelCall]:
    """What earlier runs of the same task or thread asked a model last."""
    return [
        ModelCall(prompts=one.prompts, reply=one.reply[0], arguments=one.reply[1])
        for one in turn.predecessors
        if one.prompts and one.ended < turn.root.began
    ]
