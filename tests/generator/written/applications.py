"""Search, fill in a prompt, ask a model: with spans around it that tell more or less of each step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
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
from generator.texts import JOINERS, title_of
from generator.turns import Turn
from generator.written.ways import CLIENTS, STEPS, TEXTUAL, Call

PREVIEW = 60
LEADS = ("Here are facts about us:", "Use these sources:", "Answer from these documents only:")
ROUTE = "Classify the message as billing, technical or other. Reply with the category alone."
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
        "looks": ("search", "tool"),
        "rows": ("bare", "titled", "nested"),
        "also": ("nowhere", "nowhere", "root", "step"),
        "around": ("nothing", "asked", "filled", "prompt"),
        "tells": ("all", "all", "all", "reply", "usage"),
        "wrapped_call": ("no", "no", "yes"),
        "canned": ("no", "yes"),
        "route": ("no", "no", "yes"),
        "judged": ("no", "no", "yes"),
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
        "process": ("new",),
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
        self.is_agent = choices["looks"] == "tool" and choices["client"] not in TEXTUAL

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
            root.set_attributes(self.also(turn, "root"))
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
        if self.on("route"):
            self.called([("system", ROUTE), ("user", turn.question)], "technical")
        asked = query if query and self.choices["asking"] == "rewritten" else turn.question
        is_agent = self.is_agent
        if self.choices["search_place"] != "behind" and not is_agent:
            self.search(turn, query or turn.question)
        for text in turn.shown if self.on("grade") else ():
            self.called([("user", f"{GRADE}\n\n{text}\n\nQuestion: {turn.question}")], "yes")
        if not turn.shown and not is_agent and self.choices["search_place"] != "behind" and self.on("canned"):
            turn.prompt = asked
            return turn.answer
        said = self.answered(turn, asked, self.looped(turn, asked) if is_agent else self.prompt(turn, asked))
        if self.choices["search_place"] == "behind" and not is_agent:
            self.search(turn, query or turn.question)
        if self.on("check"):
            self.called([("user", f"{CHECK}\n\n{said}")], "yes")
        if self.on("judged"):
            given = {"question": turn.question, "answer": said, "context": self.joined(turn)}
            with self.span("evaluate", self.steps("step", given, {"score": 0.9, "passed": True})):
                pass
        return said

    def looped(self, turn: Turn, asked: str) -> list[tuple[str, str]]:
        """What a model is sent for its answer that called a tool before."""
        lead = self.choices.random("lead").choice(LEADS)
        past = [one for q, a in self.history(turn) for one in (("user", q), ("assistant", a))]
        sent = [("system", f"You help our customers. {lead}"), *past, ("user", asked)]
        call = Call(turn.queries[0])
        self.called(sent, call)
        came = self.found(self.choices["search"], turn) if turn.shown else turn.nothing
        if came is None or self.choices["search"] in ("ids", "previews"):
            came = self.joined(turn)
        for row in came if isinstance(came, list) else ():
            turn.came(row if isinstance(row, str) else json.dumps(row, ensure_ascii=False))
        shown = turn.came(came if isinstance(came, str) else json.dumps(came, ensure_ascii=False))
        self.search(turn, call, "tool", shown)
        return [*sent, ("assistant", call), ("tool", shown)]

    def answered(self, turn: Turn, asked: str, sent: list[tuple[str, str]]) -> str:
        """What the last model says, with a step around it."""
        said = "\n\n".join(text for _, text in sent) if turn.echoes else turn.answer
        turn.prompt = "\n\n".join(text for _, text in sent)
        around = self.choices["around"]
        given: dict[str, Any] = {
            "asked": asked,
            "filled": {"question": asked, "context": self.joined(turn)},
            "prompt": turn.prompt,
        }
        if around == "nothing":
            self.drafted(turn, sent, said)
            return said
        also = self.also(turn, "step")
        with self.span("generate", {**self.steps("step", given[around], said), **also}):
            self.drafted(turn, sent, said)
        return said

    def drafted(self, turn: Turn, sent: list[tuple[str, str]], said: str) -> None:
        if self.on("revise"):
            self.called(sent, turn.draft)
            words = f"{sent[-1][1]}\n\nDraft:\n{turn.draft}\n\nImprove the draft."
            is_tool = sent[-1][0] == "tool"
            more = f"Draft:\n{turn.draft}\n\nImprove the draft."
            sent = [*sent, ("user", more)] if is_tool else [*sent[:-1], ("user", words)]
        form = self.choices["reply"] == "form"
        self.called(sent, json.dumps({"finding": said, "topics": ["rules"]}) if form else said)

    def also(self, turn: Turn, place: str) -> dict[str, Any]:
        """The passages once more, elsewhere than where they were found."""
        is_there = self.choices["also"] == place and turn.shown
        return {"rag.contexts" if place == "root" else "app.context": list(turn.shown)} if is_there else {}

    def history(self, turn: Turn) -> list[tuple[str, str]]:
        return turn.history if self.choices["history"] == "sent" else []

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

    def search(self, turn: Turn, query: str, kind: str = "search", shown: str = "") -> None:
        tells, inner = self.choices["search"], self.choices["search_place"] == "inner"
        if tells == "none":
            return
        # A tool that found something returns what the model is shown, or says nothing of it.
        came = self.found(tells, turn) if kind == "search" or tells in ("ids", "previews") else shown
        came = None if kind == "tool" and tells in ("count", "nothing", "events") else came
        figures = {"app.top_k": 5, **({"app.count": len(turn.shown)} if tells == "count" else {})}
        told = {**self.steps(kind, query if tells != "nothing" else None, came), **figures}
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
        rows = [self.row(at, text) for at, text in enumerate(turn.shown)]
        made = {
            "documents": rows,
            "texts": list(turn.shown),
            "joined": self.joined(turn),
            "wrapped": {"status": "ok", "chunks": rows, "milliseconds": 12},
            "previews": [self.row(at, text[:PREVIEW]) for at, text in enumerate(turn.shown)],
            "ids": [row["id"] for row in rows],
            "json": json.dumps(rows),
            "json_each": list(map(json.dumps, rows)),
            "printed": [f"Hit(id='d{at}', score=0.5, text={text!r})" for at, text in enumerate(turn.shown)],
        }
        return made.get(tells)

    def row(self, at: int, text: str) -> dict[str, Any]:
        """A passage with what a store keeps beside it."""
        row = {"id": f"d{at}", "score": 0.5}
        beside = {"title": title_of(at), "url": f"https://example.org/{at}", "page": at + 1}
        if self.choices["rows"] == "nested":
            return {**row, "payload": {**beside, "text": text}}
        return {**row, "text": text, **(beside if self.choices["rows"] == "titled" else {})}

    def joined(self, turn: Turn) -> str:
        return turn.came(JOINERS[self.choices["joining"]](turn.shown))

    def prompt(self, turn: Turn, asked: str) -> list[tuple[str, str]]:
        """What the answering model is sent."""
        place, template = self.choices["place"], template_of(self.choices)
        past = [one for q, a in self.history(turn) for one in (("user", q), ("assistant", a))]
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
        """A model's span, or two of them: a wrapper's and its client's."""
        tracer = self.provider.get_tracer(self.scope)
        around = Context() if self.on("model_apart") else None
        with tracer.start_as_current_span(self.name, around, attributes=self.told(self.client, sent, reply)):
            if self.on("wrapped_call"):
                scope, name, client = CLIENTS["langfuse"]
                inner = self.provider.get_tracer(scope)
                with inner.start_as_current_span(name, attributes=self.told(client, sent, reply)):
                    pass
        return reply

    def told(
        self, client: Callable[[Sequence[tuple[str, str]], str], dict[str, Any]], sent: Any, reply: str
    ) -> dict[str, Any]:
        """What a model's span says: all, its reply alone, or what is alike in every call."""
        tells = self.choices["tells"]
        every = client([] if tells == "reply" else sent, reply)
        if tells != "usage":
            return every
        other = client([("user", "a")], "b")
        return {name: value for name, value in every.items() if other.get(name) == value != "user"}
