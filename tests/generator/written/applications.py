"""Search, fill in a prompt, ask a model: with spans around it that tell more or less of each step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span

from generator.choices import CONTENT, Axes, Choices
from generator.conversing import Application, run_conversations
from generator.plain.client import CHECK, FORM, REWRITE
from generator.receiving import Run
from generator.spans import Spans
from generator.templates import names, template_of
from generator.texts import JOINERS
from generator.turns import Turn
from generator.written.ways import CLIENTS, STEPS

PREVIEW = 60
LEADS = ("Here are facts about us:", "Use these sources:", "Answer from these documents only:")
GRADE = "Does this passage help to answer the question? Reply yes or no."


def axes(*, heldout: bool = False) -> Axes:
    """What these applications differ in."""
    return {
        "steps": tuple(STEPS),
        "client": tuple(CLIENTS),
        "root": ("both", "question", "answer", "nothing", "object", "none"),
        "search": (
            *("documents", "texts", "joined", "wrapped", "previews", "ids", "count", "nothing", "none"),
            *("events", "json", "json_each", "printed"),
        ),
        "search_place": ("step", "inner", "behind"),
        "search_name": ("retrieve", "vector_search", "fetch_notes", "step_two"),
        "place": ("template", "second_system", "beside", "persona"),
        "template": names(heldout),
        "joining": tuple(JOINERS),
        "rewrite": ("no", "yes"),
        "asking": ("words", "rewritten"),
        "grade": ("no", "yes"),
        "check": ("no", "yes"),
        "revise": ("no", "yes"),
        "reply": ("words", "form"),
        "history": ("none", "sent"),
        "noise": ("none", "embedding", "database", "log"),
        "outer": ("request", "none", "session"),
        "model_apart": ("no", "yes"),
        "together": ("one_thread", "gather", "pool"),
        "served": ("no",),
        **CONTENT,
        # A request in JSON with these names is what the user asked, and its fields, on a span.
        "typing": tuple(one for one in CONTENT["typing"] if one != "json"),
    }


def run(choices: Choices, spans: Spans | None = None) -> Run:
    """Run an application; only spans tell of it."""
    assert spans is not None
    made = _Application(choices, spans)
    return run_conversations(Application(answer=lambda: made.answer), choices, spans.recording, spans)


class _Application:
    """One application, and the spans that it writes."""

    def __init__(self, choices: Choices, spans: Spans) -> None:
        self.choices = choices
        self.steps = STEPS[choices["steps"]]
        self.own_scope = "traceloop.tracer" if choices["steps"] == "traceloop" else "app"
        self.scope, self.name, self.client = CLIENTS[choices["client"]]
        self.provider = spans.provider

    @contextmanager
    def span(self, name: str, told: dict[str, Any]) -> Iterator[Span]:
        with self.provider.get_tracer(self.own_scope).start_as_current_span(name, attributes=told) as span:
            yield span

    async def answer(self, turn: Turn) -> str:
        outer = self.choices["outer"]
        tracer = self.provider.get_tracer("web")
        if outer == "none":
            return self.asked(turn)
        told = {"http.request.method": "POST"} if outer == "request" else {"session.id": turn.thread}
        with tracer.start_as_current_span("POST /chat", context=Context(), attributes=told):
            return self.asked(turn)

    def asked(self, turn: Turn) -> str:
        tells = self.choices["root"]
        if tells == "none":
            return self.worked(turn)
        is_object = tells == "object" and self.choices["steps"] != "genai"
        request = {"message": turn.question, "user": "u1", "top_k": 5} if is_object else turn.question
        given = request if tells in ("both", "question", "object") else None
        with self.span("handle", self.steps("root", given, None)) as root:
            reply = self.worked(turn)
            result = {"reply": reply, "sources": ["a.md"], "status": "ok"} if is_object else reply
            if tells in ("both", "answer", "object"):
                root.set_attributes(self.steps("root", given, result))
        return reply

    def worked(self, turn: Turn) -> str:
        query = (
            self.called([("user", f"{REWRITE}\n\n{turn.question}")], turn.rewritten)
            if self.on("rewrite")
            else ""
        )
        self.noise()
        if self.choices["search_place"] != "behind":
            self.search(turn, query or turn.question)
        for text in turn.shown if self.on("grade") else ():
            self.called([("user", f"{GRADE}\n\n{text}\n\nQuestion: {turn.question}")], "yes")
        asked = query if query and self.choices["asking"] == "rewritten" else turn.question
        sent = self.prompt(turn, asked)
        said = "\n\n".join(text for _, text in sent) if turn.echoes else turn.answer
        turn.prompt = "\n\n".join(text for _, text in sent)
        if self.on("revise"):
            self.called(sent, turn.draft)
            sent = [*sent[:-1], ("user", f"{sent[-1][1]}\n\nDraft:\n{turn.draft}\n\nImprove the draft.")]
        form = self.choices["reply"] == "form"
        self.called(sent, json.dumps({"finding": said, "topics": ["rules"]}) if form else said)
        if self.choices["search_place"] == "behind":
            self.search(turn, query or turn.question)
        if self.on("check"):
            self.called([("user", f"{CHECK}\n\n{said}")], "yes")
        return said

    def on(self, axis: str) -> bool:
        return self.choices[axis] == "yes"

    def noise(self) -> None:
        kinds: dict[str, dict[str, Any]] = {
            "embedding": {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e"},
            "database": {"db.system": "postgresql", "db.statement": "SELECT id, text FROM chunks"},
            "log": {"app.step": "validated", "app.milliseconds": 12},
        }
        if told := kinds.get(self.choices["noise"]):
            with self.span(self.choices["noise"], told):
                pass

    def search(self, turn: Turn, query: str) -> None:
        tells, inner = self.choices["search"], self.choices["search_place"] == "inner"
        if tells == "none":
            return
        came = self.found(tells, turn)
        figures = {"app.top_k": 5, **({"app.count": len(turn.shown)} if tells == "count" else {})}
        told = {**self.steps("search", query if tells != "nothing" else None, came), **figures}
        if inner:
            with self.span("prepare", {"app.stage": 2}):
                self.write_search(told, turn if tells == "events" else None)
        else:
            self.write_search(told, turn if tells == "events" else None)

    def write_search(self, told: dict[str, Any], turn: Turn | None) -> None:
        with self.span(self.choices["search_name"], told) as span:
            for at, text in enumerate(turn.shown if turn else ()):
                span.add_event("hit", {"rank": at, "text": text})

    def found(self, tells: str, turn: Turn) -> Any:
        """What a search says that it found."""
        rows = [{"id": f"d{at}", "score": 0.5, "text": text} for at, text in enumerate(turn.shown)]
        made = {
            "documents": rows,
            "texts": list(turn.shown),
            "joined": self.joined(turn),
            "wrapped": {"status": "ok", "chunks": rows, "milliseconds": 12},
            "previews": [{**row, "text": text[:PREVIEW]} for row, text in zip(rows, turn.shown, strict=True)],
            "ids": [row["id"] for row in rows],
            "json": json.dumps(rows),
            "json_each": list(map(json.dumps, rows)),
            "printed": [f"Hit(id='d{at}', score=0.5, text={text!r})" for at, text in enumerate(turn.shown)],
        }
        return made.get(tells)

    def joined(self, turn: Turn) -> str:
        return turn.came(JOINERS[self.choices["joining"]](turn.shown))

    def prompt(self, turn: Turn, asked: str) -> list[tuple[str, str]]:
        """What the answering model is sent."""
        place, template = self.choices["place"], template_of(self.choices)
        sends = self.choices["history"] == "sent"
        past = [one for q, a in turn.history for one in (("user", q), ("assistant", a))] if sends else []
        written = "\n".join(f"{role}: {text}" for role, text in past)
        values = {"context": self.joined(turn), "question": asked, "history": written}
        system, human = template.split() if place == "beside" else ("", "")
        if place == "second_system":
            sent = [
                ("system", "You answer questions of our staff."),
                ("system", f"Relevant documents:\n\n{values['context']}"),
                *past,
                ("user", asked),
            ]
        elif place == "persona":
            lead = self.choices.random("lead").choice(LEADS)
            text = f"You help our customers. {lead}\n{values['context']}\n\nNever invent anything."
            sent = [("system", text), *past, ("user", asked)]
        elif place == "beside":
            sent = [("system", system.format(**values)), *past, ("user", human.format(**values))]
        else:
            *first, last = [
                (role.replace("human", "user"), text.format(**values)) for role, text in template.messages()
            ]
            sent = [*first, *([] if template.takes_history else past), last]
        return [("system", FORM), *sent] if self.choices["reply"] == "form" else sent

    def called(self, sent: Sequence[tuple[str, str]], reply: str) -> str:
        """A model's span."""
        tracer = self.provider.get_tracer(self.scope)
        around = Context() if self.on("model_apart") else None
        with tracer.start_as_current_span(self.name, around, attributes=self.client(sent, reply)):
            pass
        return reply
