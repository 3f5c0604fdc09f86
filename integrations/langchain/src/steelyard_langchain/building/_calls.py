"""A turn's model runs as the calls that provenance looks at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.record import to_json_value
from steelyard.recording.provenance import ModelCall
from steelyard.recording.reading import Message, searched_by_provider
from steelyard_langchain._turn import Model, Predecessor
from steelyard_langchain.building._extract import message_text, prompt_texts


def calls_of(models: Iterable[Model]) -> list[ModelCall]:
    """What each model was sent and what it said, as text, as tool calls, or as a filled-in form."""
    return [call_of(model) for model in models]


def said_before(run: Predecessor, started: float) -> ModelCall | None:
    """What an earlier run asked a model last; None unless that had ended when the present one began."""
    model = run.call
    if model is None or model.ended is None or model.ended >= started:
        return None
    if run.read is None:
        run.read = call_of(model)
    return run.read


def call_of(model: Model) -> ModelCall:
    """What a model was sent and what it said."""
    return ModelCall(
        prompts=(*prompt_texts(model.prompt), *(one.text for one in searched(model))),
        reply=reply_text(model),
        arguments=tuple(_arguments(_reply(model))),
        started=model.started,
    )


def searched(model: Model) -> tuple[Message, ...]:
    """What the model's provider searched by itself and showed it."""
    reply = _reply(model)
    # Most replies are plain texts, which hold nothing else.
    extra = getattr(reply, "additional_kwargs", None) or {}
    if isinstance(getattr(reply, "content", None), str) and "tool_outputs" not in extra:
        return ()
    return searched_by_provider(reply)


def _reply(model: Model) -> Any:
    """The reply's message, or its text where the model has no messages; None while it runs."""
    generations: Any = getattr(model.reply, "generations", None) or ()
    for batch in generations:
        for generation in batch:
            message = getattr(generation, "message", None)
            return message if message is not None else str(getattr(generation, "text", ""))
    return model.reply if hasattr(model.reply, "content") else None


def answer_message(response: Any) -> Any:
    """The message or text that a model run answered with; None where it only calls tools."""
    generations: Any = getattr(response, "generations", None) or ()
    for batch in generations:
        for generation in batch:
            message = getattr(generation, "message", None)
            if message is None:
                return getattr(generation, "text", "") or None
            return message if message.content and not getattr(message, "tool_calls", None) else None
    return None


def reply_text(model: Model) -> str:
    """What a model run replied, as text; empty while it runs, and for tool calls."""
    reply = _reply(model)
    return "" if reply is None else message_text(reply)


def _arguments(reply: Any) -> Iterator[str]:
    """The arguments of the tools that a reply calls, each as JSON."""
    for call in getattr(reply, "tool_calls", None) or ():
        yield json.dumps(to_json_value(call.get("args") or {}), ensure_ascii=False)
    extra = getattr(reply, "additional_kwargs", None) or {}
    function = extra.get("function_call")  # how models called functions before there were tools
    if isinstance(function, dict) and isinstance(function.get("arguments"), str):
        yield function["arguments"]
