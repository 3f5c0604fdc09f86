"""The latest runs of a task or thread, for the one that may be built upon what a model replied in them.

Plain Python often lets a model write the query or the parts of a question first, and asks an engine then,
with nothing around the two. Both run in one task or thread. They stay a Record each, and the Record says so
(see `notes_on_predecessors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from steelyard.recording.provenance import ModelCall, notes_on_predecessors
from steelyard_llamaindex._extract import is_conversation, reply_of, texts_of
from steelyard_llamaindex._turn import Predecessor, Turn, latest_runs

_MOST = 12
_MOST_PROMPT = 50_000


def follow_latest(turn: Turn, mark: object) -> None:
    """Tell a run that begins of those before it.

    Args:
        turn: The run.
        mark: Whose recorder sees it; runs that another saw do not count.
    """
    owner, latest = latest_runs.get()
    # A tuple, never a list: a child task takes over what came before it, and no sibling sees its own.
    turn.predecessors = (*(latest[1 - _MOST :] if owner is mark else ()), Predecessor())
    latest_runs.set((mark, turn.predecessors))


def precede(turn: Turn) -> None:
    """Keep what a run that has ended asked a model last, for those after it."""
    last = turn.calls[-1] if turn.predecessors and turn.calls else None
    if last is None:
        return
    reply = last.reply if last.reply is not None else last.step.result if last.step.kind == "llm" else None
    if reply is None and turn.pieces:
        reply = "".join(turn.pieces)
    prompts = texts_of(last.asked)
    if reply is not None and sum(map(len, prompts)) <= _MOST_PROMPT:
        own = turn.predecessors[-1]
        own.prompts, own.reply, own.ended = prompts, reply, perf_counter()


def notes_on_latest(
    turn: Turn, question: str, calls: Sequence[ModelCall], *, found: Sequence[str]
) -> list[str]:
    """Say that a turn's question, or a part of its prompt, was written by a model in a run before it."""
    if turn.loose or not turn.predecessors:
        return []
    earlier = [
        ModelCall(prompts=one.prompts, reply=reply, arguments=arguments)
        for one in turn.predecessors
        if one.prompts and one.ended < turn.root.began
        for reply, arguments in (reply_of(one.reply),)
    ]
    first = turn.calls[0].asked if turn.calls else None
    return notes_on_predecessors(
        question,
        calls,
        earlier,
        found=found,
        in_conversation=turn.root.kind == "chat" or is_conversation(first),
    )
