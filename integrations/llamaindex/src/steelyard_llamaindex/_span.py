"""The span of a turn's root: what LlamaIndex tells of spans, in the terms of `steelyard.recording.RunSpan`.

A tracer for LlamaIndex is a span handler of the root dispatcher beside ours, and keeps its spans by the
dispatcher's ids. LlamaIndex is not imported for asking.
"""

from __future__ import annotations

import sys

from steelyard.recording import RunSpan

_NAMES = ("llamaindex", "llama_index")
_NOT_TRACERS = frozenset({"Spans", "NullSpanHandler"})
"""Span handlers that are there without any tracer: ours, and the framework's own."""


class RootSpan(RunSpan):
    """Which span the scores of a turn go on; made when its root begins."""

    __slots__ = ("_root",)

    def __init__(self, root: str) -> None:
        super().__init__("llamaindex", _NAMES)
        self._root = root
        # A block has an id of its own, and may stand within a span.
        self._ask(root, _active())

    def ask_again(self) -> None:
        """Look for the span of the root at its end."""
        self._ask(self._root)

    def ask_of_model(self, id_: str) -> None:
        """Look for the span of a model call, at its start and at its end."""
        self._ask(id_, model=True)

    def _ask(self, *ids: str | None, model: bool = False) -> None:
        framework = sys.modules.get("llama_index_instrumentation")
        if self.settled or framework is None:
            return
        told = framework.root_dispatcher.span_handlers
        beside = [each for each in told if type(each).__name__ not in _NOT_TRACERS]
        if not beside:
            self.settled = True
        else:
            (self.ask_of_call if model else self.ask)(beside, *filter(None, ids))


def _active() -> str | None:
    module = sys.modules.get("llama_index_instrumentation.span")
    return None if module is None else module.active_span_id.get()
