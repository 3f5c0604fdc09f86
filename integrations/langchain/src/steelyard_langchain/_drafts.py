"""A finished turn on its way to the Monitor."""

from __future__ import annotations

import logging
from functools import lru_cache

from steelyard.record import Record, TraceRef
from steelyard_langchain._build import build
from steelyard_langchain._options import Options
from steelyard_langchain._turn import Chain, Turn

__all__ = ["TurnDraft"]

_log = logging.getLogger("steelyard.langchain")

_PER_RUN = 500
_LOOKED_AT = 200


class TurnDraft:
    """A closed turn whose Record is built when the Monitor asks for it."""

    __slots__ = ("_chain", "_options", "id", "trace", "turn")

    def __init__(self, turn: Turn, options: Options, *, chain: Chain | None = None) -> None:
        self.turn = turn
        self._options = options
        self._chain = chain
        self.trace: TraceRef | None = turn.trace
        self.id = turn.trace.run_id or str(turn.root)
        if chain is not None:
            self.id = f"{self.id}/{chain.key:032x}"

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive: the documents, the prompts, and a constant for every run."""
        turn = self.turn
        size = _PER_RUN * (len(turn.parents) + 1)
        try:
            for retrieval in turn.retrievals.values():
                documents = retrieval.documents or ()
                found = sum(len(document.page_content) for document in documents[:_LOOKED_AT])
                size += found * max(1, len(documents) // _LOOKED_AT)
            for model in turn.models.values():
                for messages in model.prompt:
                    last = messages if isinstance(messages, str) else messages[-1].content
                    size += len(last)
        except Exception:  # noqa: BLE001 - documents without text, prompts of a shape of their own
            size += _PER_RUN
        return size

    def build(self) -> Record | None:
        """The Record; None where the run was no RAG turn."""
        try:
            record = build(self.turn, self._options, chain=self._chain)
        except Exception as error:  # noqa: BLE001 - objects of the host may raise anything, anywhere
            note = f"the run could not be read: {type(error).__name__}"
            record = Record(id=self.id, trace=self.trace, status="error", error=note, notes=(note,))
        if record is not None and self._options.on_record is not None:
            try:
                record = self._options.on_record(record) or record
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                _complain(type(error).__name__)
        return record


@lru_cache(maxsize=64)
def _complain(kind: str) -> None:
    """Say it once for each kind of error."""
    _log.warning("on_record raised %s; records go on unchanged, said once", kind, exc_info=True)
