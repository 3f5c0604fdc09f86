"""Plain Python: search, fill in a prompt, ask a model; or let the model call a function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from generator.choices import CONTENT, Axes, Choices
from generator.conversing import Application, run_conversations
from generator.plain.client import CHECK, FORM, REWRITE, aclient, client
from generator.receiving import Run
from generator.results import TEXTUAL
from generator.spans import Spans
from generator.templates import names, template_of
from generator.texts import JOINERS
from generator.turns import Turn

MODEL = "gpt-small"
PREVIEW = 60
"""Characters of a passage that an application writes on its own spans, if it does not write all of it."""


def axes(*, heldout: bool = False) -> Axes:
    """What these applications differ in."""
    return {
        "shape": ("filled", "tools"),
        "template": names(heldout),
        "joining": tuple(JOINERS),
        "tool_result": tuple(TEXTUAL),
        "hops": ("1", "2"),
        "history": ("none", "sent"),
        "rewrite": ("no", "yes"),
        "check": ("no", "yes"),
        "way": ("invoke", "ainvoke", "stream"),
        "together": ("one_thread", "gather", "pool"),
        "served": ("yes", "no"),
        "own_spans": ("none", "question", "look_up", "previews", "numbered", "counts"),
        "asking": ("words", "rewritten"),
        "reply": ("words", "form"),
        "outer": ("none", "figures"),
        **CONTENT,
    }


def run(choices: Choices, spans: Spans | None = None) -> Run:
    """Run an application; only spans tell of it."""
    assert spans is not None
    made = filled(choices, spans) if choices["shape"] == "filled" else tools(choices, spans)
    return run_conversations(made, choices, spans.recording, spans)


async def asked(way: str, messages: list[dict[str, Any]], **more: Any) -> Any:
    """A model's message, or its text where it streams."""
    given: Any = {"model": MODEL, "messages": messages, **more}
    if way == "ainvoke":
        return (await aclient().chat.completions.create(**given)).choices[0].message
    if way == "stream" and not more:
        stream = client().chat.completions.create(**given, stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    return client().chat.completions.create(**given).choices[0].message


def text_of(said: Any) -> str:
    """The text of a message."""
    return said if isinstance(said, str) else str(said.content)


def past(choices: Choices, turn: Turn) -> list[dict[str, Any]]:
    """The conversation, where it is sent along."""
    if choices["history"] == "none":
        return []
    pairs = [(("user", question), ("assistant", answer)) for question, answer in turn.history]
    return [{"role": role, "content": text} for pair in pairs for role, text in pair]


async def before(choices: Choices, turn: Turn) -> str:
    """A model writes the query; what the answer's prompt then asks."""
    if choices["rewrite"] == "no":
        return turn.question
    query = text_of(await asked("invoke", [{"role": "user", "content": f"{REWRITE}\n\n{turn.question}"}]))
    return query if choices["asking"] == "rewritten" else turn.question


async def after(choices: Choices, answer: str) -> None:
    """A model looks at the answer."""
    if choices["check"] == "yes":
        await asked("invoke", [{"role": "user", "content": f"{CHECK}\n\n{answer}"}])


def told(choices: Choices) -> list[dict[str, Any]]:
    """What form the reply is to have, if it is to have one."""
    return [{"role": "system", "content": FORM}] if choices["reply"] == "form" else []


@contextmanager
def around(choices: Choices, turn: Turn, spans: Spans) -> Iterator[None]:
    """A chain's span around the turn that tells figures alone, and how it ended."""
    if choices["outer"] == "none":
        yield
        return
    with spans.provider.get_tracer("app").start_as_current_span("run") as span:
        span.set_attribute("openinference.span.kind", "CHAIN")
        span.set_attribute("input.value", json.dumps({"characters": len(turn.question)}))
        yield
        span.set_attribute("output.value", json.dumps({"status": "done", "seconds": 2}))


@contextmanager
def traced(choices: Choices, turn: Turn, spans: Spans) -> Iterator[None]:
    """The application's own spans: one around the turn with the question, and one of what it looked up.

    Of a preview no span tells how it goes on, and of a count not what was found.
    """
    if (own := choices["own_spans"]) == "none":
        yield
        return
    tracer = spans.provider.get_tracer("app")
    with tracer.start_as_current_span(
        "handle", attributes={"app.user_text": turn.question, "app.lang": "en"}
    ):
        if own == "counts":
            with tracer.start_as_current_span("docs.retrieve", attributes={"app.found": len(turn.shown)}):
                pass
        if own in ("look_up", "previews", "numbered"):
            cut = PREVIEW if own == "previews" else None
            with tracer.start_as_current_span("find", attributes={"app.top_k": 5}) as span:
                for at, text in enumerate(turn.shown):
                    if own == "numbered":
                        span.set_attribute(f"app.hits.{at}.text", text)
                    else:
                        span.add_event("hit", {"rank": at, "text": text[:cut]})
        yield


def filled(choices: Choices, spans: Spans) -> Application:
    """A prompt filled in by hand."""
    template = template_of(choices)
    join = JOINERS[choices["joining"]]
    roles = {"system": "system", "human": "user"}

    async def answer(turn: Turn) -> str:
        with around(choices, turn, spans), traced(choices, turn, spans):
            return await said(turn)

    async def said(turn: Turn) -> str:
        question = await before(choices, turn)
        history = "\n".join(f"{each['role']}: {each['content']}" for each in past(choices, turn))
        values = {"context": turn.came(join(turn.shown)), "question": question, "history": history}
        *system, human = [
            {"role": roles[role], "content": text.format(**values)} for role, text in template.messages()
        ]
        sent = [] if template.takes_history else past(choices, turn)
        reply = text_of(await asked(choices["way"], [*told(choices), *system, *sent, human]))
        await after(choices, reply)
        return reply

    return Application(answer=lambda: answer)


def tools(choices: Choices, spans: Spans) -> Application:
    """A model that calls a function, in a loop."""
    hops, shape = choices.number("hops"), choices["tool_result"]
    declared = {
        "name": "look_up",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    }
    given = [{"type": "function", "function": declared}]

    async def answer(turn: Turn) -> str:
        with around(choices, turn, spans):
            return await said_with_tools(turn)

    async def said_with_tools(turn: Turn) -> str:
        messages = [*told(choices), *past(choices, turn), {"role": "user", "content": turn.question}]
        way = "invoke" if choices["way"] == "stream" else choices["way"]
        while (said := await asked(way, messages, tools=given)).tool_calls:
            messages.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls:
                found = turn.find(json.loads(call.function.arguments)["query"])
                result = TEXTUAL[shape](found) if found else turn.nothing
                text = turn.came(result if isinstance(result, str) else json.dumps(result))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        return text_of(said)

    return Application(answer=lambda: answer, hops=hops, everything=True)
