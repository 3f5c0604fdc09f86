"""What LlamaIndex applications differ in."""

from __future__ import annotations

from generator.choices import CONTENT, Axes
from generator.llamaindex.build import SHAPES
from generator.llamaindex.parts import KEEPING, MODES, RETRIEVERS, TOOL_RESULTS, TOOLS, WRAPS
from generator.results import TOOL_NAMES
from generator.templates import names
from generator.texts import JOINERS


def axes(*, heldout: bool = False) -> Axes:
    """The axes of an application, with the templates of one half of the corpus."""
    return {
        "shape": tuple(SHAPES),
        "retriever": RETRIEVERS,
        "keeping": KEEPING,
        "mode": MODES,
        "model": ("completes", "chats"),
        "prompting": ("own", "template", "bound"),
        "template": names(heldout),
        "joining": tuple(JOINERS),
        "chat": ("context", "condense_question", "condense_plus"),
        "agent": ("function", "workflow"),
        "agent_prompt": ("system", "none"),
        "tool": TOOLS,
        "tool_name": TOOL_NAMES,
        "tool_result": TOOL_RESULTS,
        "told_nothing": ("text", "form"),
        "calling": ("yes", "no"),
        "filling": ("format", "predict"),
        "looking": ("retriever", "own"),
        "wrapped": tuple(WRAPS),
        "before": ("nothing", "routed"),
        "process": ("long", "new"),
        "hops": ("1", "2", "3"),
        "history": ("none", "stored", "sent", "memory"),
        "outside": ("no", "yes"),
        "picking": ("code", "form"),
        "searching": ("here", "thread"),
        "asking": ("once", "again", "in_parts", "engine"),
        "tools": ("given", "found"),
        "researching": ("itself", "agent", "agent_given"),
        "start_key": ("query", "question", "user_msg", "topic", "request", "made_with"),
        "outlined": ("no", "yes"),
        "way": ("invoke", "ainvoke", "stream", "astream"),
        "together": ("one_thread", "gather", "pool"),
        "served": ("yes", "no"),
        **CONTENT,
    }
