"""What LangChain applications differ in."""

from __future__ import annotations

from generator.choices import CONTENT, Axes
from generator.langchain.agents import AGENTS
from generator.langchain.build import SHAPES
from generator.langchain.messages import FORMS
from generator.langchain.retrievers import KINDS
from generator.langchain.tools import KINDS as TOOL_KINDS
from generator.results import TOOL_NAMES
from generator.templates import names
from generator.texts import JOINERS


def axes(*, heldout: bool = False) -> Axes:
    """The axes of an application, with the templates of one half of the corpus."""
    return {
        "shape": tuple(SHAPES),
        "retriever": KINDS,
        "template": names(heldout),
        "joining": tuple(JOINERS),
        "prompting": ("chat", "string", "fstring", "messages", "value"),
        "input": ("question", "query", "input", "user_input", "string", "messages", "odd"),
        "output": ("text", "message", "dict", "docs", "structured", "form", "nested", "revised"),
        "history": ("none", *FORMS, "written", "stored"),
        "log": ("past", "all"),
        "rewrite": ("none", "new", "same"),
        "planning": ("within", "apart"),
        "keeping": ("format", "rerank", "grade"),
        "routing": ("no", "yes"),
        "loop": ("no", "redraft", "again"),
        "judging": ("words", "reasons", "critique"),
        "opening": ("given", "fetched"),
        "graph_state": ("fields", "messages", "exchanges", "cited"),
        "saying": ("model", "system", "words"),
        "refusing": ("model", "code"),
        "found_as": ("list", "state"),
        "row": ("no", "yes"),
        "collecting": ("whole", "cleaned", "in_place"),
        "asking": ("whole", "words"),
        "guard": ("no", "yes"),
        "after": ("no", "title", "questions", "verify"),
        "thread": ("yes", "no"),
        "naming": ("never", "first"),
        "agent": tuple(AGENTS),
        "looking": ("retriever", "function", "outside"),
        "tool_name": TOOL_NAMES,
        "tool_result": TOOL_KINDS,
        "hops": ("1", "2", "3"),
        "agent_prompt": ("system", "none"),
        "mending": ("no", "yes"),
        "calling": ("yes", "no"),
        "handing": ("over", "back"),
        "scoring": ("no", "yes"),
        "way": ("invoke", "ainvoke", "stream", "astream", "batch", "events"),
        "together": ("one_thread", "pool", "gather"),
        "recorder": ("handler", "attach"),
        "served": ("yes", "no"),
        **CONTENT,
    }
