"""For each doubt the one option that settles it: a table, the same for the command line and the view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_QUESTION: Final = {
    "langchain": "question_key=, the key of the input that holds it (or a function of the input)",
    "llamaindex": "`with record(question):` around the call",
    "opentelemetry": "`steelyard.question` on the turn's outermost span",
    "": "question= of the Record",
}
_CONTEXTS: Final = {
    "langchain": "context_key=, the key of the output that holds them; or turn.contexts in a `record` block",
    "llamaindex": "turn.contexts in a `record` block",
    "opentelemetry": "`steelyard.contexts` on a span of the turn",
    "": "contexts= of the Record",
}
_ANSWER: Final = {
    "langchain": "answer_key=, the key of the output that holds it (or a function of the output)",
    "llamaindex": "turn.answer in a `record` block",
    "opentelemetry": "`steelyard.answer` on the turn's outermost span",
    "": "answer= of the Record",
}
_TOGETHER: Final = {
    "langchain": "`with record(monitor, question=...):` around the calls of the turn",
    "llamaindex": "`with record(question):` around the calls of the turn",
    "opentelemetry": "one span around the turn, or the same `steelyard.turn` on its spans",
    "": "one Record for the turn",
}
_NOTHING: Final = {"": "nothing, if that is meant"}
_SEEN: Final = {
    "langchain": "pass the callbacks on to the model, and call it inside the turn",
    "opentelemetry": "let the model client's instrumentor record content",
    "": "call the model through the framework, inside the turn",
}
_LOOK_UP: Final = {
    name: f"if nothing was looked up, nothing; else {text}" for name, text in _CONTEXTS.items()
}

OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "answer_call_unknown": _ANSWER,
    "answer_call_assumed": _SEEN,
    "no_prompt_seen": _SEEN,
    "no model run was seen": _SEEN,
    "contexts_not_in_prompt": _CONTEXTS,
    "contexts_partly_in_prompt": _NOTHING,
    "contexts_undecided": _NOTHING,
    "contexts_too_large": _CONTEXTS,
    "contexts_guessed": _CONTEXTS,
    "no_contexts": _LOOK_UP,
    "contexts: nothing under context_key": {"": "the right context_key="},
    "question_guessed": _QUESTION,
    "question_unknown": _QUESTION,
    "question_whole_prompt": _QUESTION,
    "question_rewritten_only": _TOGETHER,
    "question:": _QUESTION,
    "answer: the run returned": {"": "nested='all', or one question a run"},
    "answer:": _ANSWER,
    "no span tells what the user was given": _ANSWER,
    "no run holds": _TOGETHER,
    "this run was shown what a model replied": _TOGETHER,
    "tool_results": {
        "langchain": "tool_contexts=, the names of the tools whose results are evidence, if not all are",
        "llamaindex": "tool_contexts=, the names of the tools whose results are evidence, if not all are",
        "": _CONTEXTS["opentelemetry"],
    },
}
"""By how a note begins, for each framework (`TraceRef.framework`); under the empty name for all others."""


def option_for(note: str, framework: str | None) -> str:
    """What settles a doubt; empty of a note that says it itself, or that nothing settles."""
    found = next((options for begins, options in OPTIONS.items() if note.startswith(begins)), None)
    return "" if found is None else found.get(framework or "", found.get("", ""))
