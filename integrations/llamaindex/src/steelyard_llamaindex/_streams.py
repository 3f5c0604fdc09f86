"""Streamed answers: the user's generator goes on as it is, and the turn ends when it does.

A turn that streams is held by its generator and by nothing else. A stream that nobody reads takes its turn
along when it is thrown away; one that is left early ends the turn as `truncated`. The stream of a model call
that no run holds cannot be replaced, so that its turn follows the model's events instead.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any

from steelyard_llamaindex._kinds import stream_of
from steelyard_llamaindex._open_turns import OpenTurns
from steelyard_llamaindex._turn import Turn, current_place

_STREAMED = (Generator, AsyncGenerator)
_END = object()


def defer(turns: OpenTurns, turn: Turn, result: Any) -> bool:
    """Arrange for a turn to end with its stream.

    Args:
        turns: The turns under way.
        turn: Whose root has just returned.
        result: What the root returned; the stream in it is replaced by one that also tells the turn.

    Returns:
        False where the answer is there already.
    """
    if turn.root.kind == "llm" and isinstance(result, _STREAMED):
        _await_reply(turns, turn, result)
        return True
    response = (
        result if turn.root.kind in ("query", "chat", "synthesis") else getattr(result, "result", result)
    )
    stream = stream_of(response)
    if stream is None:
        return turn.root.kind == "workflow" and _defer_raw(turns, turn, result)
    turn.streaming = True
    # The nodes are here already; only the text is still to come.
    turn.root.result = response.source_nodes
    if stream == "chat":
        return _defer_chat(turns, turn, response)
    source = response.response_gen
    # A response whose text was read before it was returned has no stream any more.
    if source is None or response.response_txt is not None:
        turn.said = response.response_txt
        turn.streaming = False
        return False
    turns.release(turn)
    response.response_gen = _followed(source, turns, turn)
    return True


def _await_reply(turns: OpenTurns, turn: Turn, stream: Any) -> None:
    """A call that no run holds streams its reply: events of its span tell what is said, and the end."""
    turn.root.seconds = None
    turn.open.add(turn.id)
    turns.places[turn.id] = (turn, turn.root)
    # No event tells of a stream that is thrown away unread.
    turn.stream = weakref.ref(stream, lambda _: _abandon(turns, turn))
    turns.streams[turn.id] = turn


def _abandon(turns: OpenTurns, turn: Turn) -> None:
    turn.status = "truncated"
    turns.end_stream(turn)


def hear(turns: OpenTurns, event: Any) -> None:
    """A model's stream has come so far."""
    turn = turns.streams.get(event.span_id)
    if turn is not None:
        turn.said = event.response


def break_off(turns: OpenTurns, event: Any) -> None:
    """A model's stream ended with an exception: the model's, or that of a reader who left."""
    turn = turns.streams.get(event.span_id)
    if turn is None:
        return
    if isinstance(event.exception, GeneratorExit):
        _abandon(turns, turn)
        return
    turn.root.result = turn.said
    turns.fail(turn, event.exception)


def _defer_raw(turns: OpenTurns, turn: Turn, stopped: Any) -> bool:
    """A workflow may return what a model streams as it is, alone or among other values."""
    returned = getattr(stopped, "result", stopped)
    fields = returned if isinstance(returned, dict) else {}
    streams = [name for name, value in fields.items() if isinstance(value, _STREAMED)]
    if len(streams) != 1 and not (hasattr(stopped, "_result") and isinstance(returned, _STREAMED)):
        return False
    turn.streaming = True
    turn.root.result = {name: value for name, value in fields.items() if name not in streams}
    for step in turn.steps:
        # What holds the stream would hold the turn, and it is held by the stream.
        step.result = turn.root.result if step.result is stopped else step.result
    turns.release(turn)
    if streams:
        fields[streams[0]] = _followed(fields[streams[0]], turns, turn)
    else:
        stopped._result = _followed(returned, turns, turn)
    return True


def _followed(source: Any, turns: OpenTurns, turn: Turn) -> Any:
    """The stream as it is read: its own kind decides, since a response may hold either.

    A tracer's proxy has the methods of both, and the class of what it holds.
    """
    follow = _afollow if hasattr(source.__class__, "__aiter__") else _follow
    return follow(source, turns, turn)


def _defer_chat(turns: OpenTurns, turn: Turn, response: Any) -> bool:
    if response.is_writing_to_memory:
        turns.keep(turn)
        return True
    # Without a writer the user reads the model's own stream.
    turns.release(turn)
    if response.chat_stream is not None:
        response.chat_stream = _followed(response.chat_stream, turns, turn)
    elif response.achat_stream is not None:
        response.achat_stream = _followed(response.achat_stream, turns, turn)
    else:
        turn.said = response.response
        turns.finish(turn)
    return True


def _heard(turns: OpenTurns, piece: Any) -> str:
    """The text of a piece, which may be an object of the application's own and raise anything."""
    try:
        text = piece if isinstance(piece, str) else getattr(piece, "delta", "")
        return text if isinstance(text, str) else ""
    except Exception as error:  # noqa: BLE001 - the reader gets the piece all the same
        turns.complain("stream", error)
        return ""


@contextmanager
def _producing(turns: OpenTurns, turn: Turn) -> Iterator[None]:
    """What the model does to produce a piece has no parent span: this says whose it is."""
    token = current_place.set((turn, turn.root))
    began = perf_counter()
    try:
        yield
    except BaseException as error:
        turns.fail(turn, error)
        raise
    finally:
        turn.generation += perf_counter() - began
        with suppress(ValueError):  # a coroutine may be closed in a context other than its own
            current_place.reset(token)


def _follow(source: Iterator[Any], turns: OpenTurns, turn: Turn) -> Generator[Any, None, None]:
    pieces = iter(source)
    while True:
        with _producing(turns, turn):
            piece = next(pieces, _END)
        if piece is _END:
            break
        turn.pieces.append(_heard(turns, piece))
        try:
            yield piece
        # Whatever ends the reader, its `close` and a cancelled task included.
        except BaseException:
            _leave(turns, turn)
            # The source is closed as it would have been without us in between.
            if isinstance(pieces, Generator):
                pieces.close()
            raise
    turns.finish(turn)


async def _afollow(source: AsyncIterator[Any], turns: OpenTurns, turn: Turn) -> AsyncGenerator[Any, None]:
    pieces = aiter(source)
    while True:
        with _producing(turns, turn):
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                break
        turn.pieces.append(_heard(turns, piece))
        try:
            yield piece
        except BaseException:
            _leave(turns, turn)
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
            raise
    turns.finish(turn)


def _leave(turns: OpenTurns, turn: Turn) -> None:
    """The reader went away, by whatever way."""
    turn.status = "truncated"
    turns.finish(turn)
