"""From the steps of a finished turn to its Record: the work that is done in the Monitor's thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.record import Context, Record, Timings, TraceRef, text_of, to_json_value
from steelyard.recording import TurnDraft, with_given
from steelyard_llamaindex._options import Options
from steelyard_llamaindex._turn import Turn
from steelyard_llamaindex.building._contexts import TurnContexts
from steelyard_llamaindex.building._extract import answer_of, reply_of, result_of, trouble_of
from steelyard_llamaindex.building._provenance import Evidence, notes_on_latest

_SETTINGS = ("reference", "reference_contexts", "tags")
_OWN_TAGS = "llamaindex."


class LlamaIndexDraft(TurnDraft):
    """A finished turn of LlamaIndex whose Record is still to be built."""

    __slots__ = ("_options", "turn")

    def __init__(self, turn: Turn, options: Options) -> None:
        super().__init__(on_record=options.on_record)
        self.turn = turn
        self._options = options

    @property
    def id(self) -> str:
        """The id that the Record will have."""
        return self.turn.id

    @property
    def trace(self) -> TraceRef | None:
        """Where the turn lives in the host's traces."""
        return self.turn.trace

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive; measuring nodes and chats would cost more than it tells."""
        steps = (step.result for step in self.turn.steps)
        nodes = sum(len(result) for result in steps if isinstance(result, list))
        prompts = sum(len(call.asked) if isinstance(call.asked, str) else 4000 for call in self.turn.calls)
        return 2000 + 2000 * nodes + 2 * prompts + 10 * len(self.turn.pieces)

    def read(self) -> Record | None:
        """The Record; None for a workflow that retrieved nothing, which is not a RAG turn."""
        turn = self.turn
        if turn.root.kind == "retrieve":
            return None
        given = turn.given or {}
        answer = given.get("answer") or self._answer()
        found = TurnContexts(turn, self._options)
        evidence = Evidence(turn, found, answer)
        if not evidence.is_turn:
            return None
        asked, sources, notes = evidence.asked, evidence.sources, evidence.notes()
        retrieved = [context.text for context in (*sources.contexts, *sources.retrieved)]
        notes += notes_on_latest(turn, asked.question, evidence.calls, found=retrieved)
        status, error = turn.status, turn.error
        if status == "ok" and (trouble := trouble_of(answer, turn.failure)) is not None:
            status, error, answer = "error", trouble, ""
        elif status == "ok":
            notes += _doubts(turn, answer)
        tags = _Tags(turn.tags)
        record = Record(
            id=turn.id,
            question=asked.question,
            standalone_question=asked.standalone,
            contexts=sources.contexts,
            contexts_source=sources.contexts_source,
            retrieved=sources.retrieved,
            stages=tuple(found.stages()),
            answer=answer,
            reference=tags.reference,
            reference_contexts=tags.reference_contexts,
            status=status,
            error=error,
            trace=turn.trace,
            timings=self._timings(found),
            tags=tags.tags,
            metadata=tags.metadata,
            notes=tuple(notes),
        )
        return with_given(record, {name: value for name, value in given.items() if name != "contexts"})

    def _answer(self) -> str:
        turn = self.turn
        if turn.streaming:
            return text_of("".join(turn.pieces)).strip()
        result = turn.root.result
        answer = reply_of(result)[0] if turn.root.kind == "llm" else answer_of(result)
        return answer or (answer_of(turn.said) if turn.root.kind == "manual" else "")

    def _timings(self, found: TurnContexts) -> Timings:
        turn = self.turn
        seconds = [step.seconds for step in found.retrievals if step.seconds is not None]
        return Timings(
            started_at=turn.started,
            total=turn.root.seconds,
            retrieval=sum(seconds) if seconds else None,
            generation=turn.generation or None,
        )


def _doubts(turn: Turn, answer: str) -> list[str]:
    """What is doubtful about a run that ended well."""
    if turn.failure is not None:
        return [f"a step failed and the run went on: {turn.failure}"]
    if answer or turn.streaming:
        return []
    kind = type(result_of(turn.root.result)).__name__
    return [f"answer: not found in a result of type {kind}; set turn.answer in record()"]


class _Tags:
    """What the user said with `instrument_tags`: some names are settings, the rest is metadata."""

    def __init__(self, given: Any) -> None:
        tags = given.get("tags")
        self.tags = tuple(map(text_of, [tags] if isinstance(tags, str) else tags or ()))
        reference = given.get("reference")
        self.reference = None if reference is None else text_of(reference)
        expected = given.get("reference_contexts") or ()
        texts: Sequence[Any] = [expected] if isinstance(expected, str) else expected
        self.reference_contexts = tuple(Context(text=text_of(text)) for text in texts)
        self.metadata: dict[str, Any] = to_json_value(
            {
                name: value
                for name, value in given.items()
                if name not in _SETTINGS and not str(name).startswith(_OWN_TAGS)
            }
        )
