"""From the steps of a finished turn to its Record: the work that is done in the Monitor's thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.record import Context, Record, Timings, text_of, to_json_value
from steelyard.recording import TurnDraft, with_given
from steelyard_llamaindex._contexts import TurnContexts
from steelyard_llamaindex._extract import answer_of, question_of, trouble_of
from steelyard_llamaindex._options import Options
from steelyard_llamaindex._turn import Turn

_SETTINGS = ("reference", "reference_contexts", "tags")
_OWN_TAGS = "llamaindex."


class LlamaIndexDraft(TurnDraft):
    """A finished turn of LlamaIndex whose Record is still to be built."""

    __slots__ = ("_options", "turn")

    def __init__(self, turn: Turn, options: Options) -> None:
        super().__init__(turn.id, turn.trace, on_record=options.on_record)
        self.turn = turn
        self._options = options

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive: a node is taken for 2 kB, since measuring costs more."""
        steps = (step.result for step in self.turn.steps)
        nodes = sum(len(result) for result in steps if isinstance(result, list))
        return 2000 + 2000 * nodes + 4000 * len(self.turn.prompts) + 10 * len(self.turn.pieces)

    def read(self) -> Record | None:
        """The Record; None for a workflow that retrieved nothing, which is not a RAG turn."""
        turn = self.turn
        found = TurnContexts(turn, self._options)
        if turn.root.kind == "workflow" and not found.hops and not found.retrievals:
            return None
        question = question_of(turn.root.asked) or (found.hops[0].query if found.hops else "")
        contexts, notes = found.passages(question)
        answer = self._answer()
        assembled, retrieved = found.assembled(contexts, question)
        status, error = turn.status, turn.error
        if status == "ok" and (trouble := trouble_of(answer, turn.failure)) is not None:
            status, error, answer = "error", trouble, ""
        elif status == "ok" and turn.failure is not None:
            notes.append(f"a step failed and the run went on: {turn.failure}")
        tags = _Tags(turn.tags)
        record = Record(
            id=turn.id,
            question=question,
            standalone_question=self._standalone(question),
            contexts=assembled.contexts,
            contexts_source=assembled.contexts_source,
            retrieved=retrieved,
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
        return with_given(record, turn.given)

    def _answer(self) -> str:
        turn = self.turn
        if turn.streaming:
            return text_of("".join(turn.pieces)).strip()
        answer = answer_of(turn.root.result)
        return answer or (answer_of(turn.said) if turn.root.kind == "manual" else "")

    def _standalone(self, question: str) -> str | None:
        """How a chat engine rewrote the question: what it asked first."""
        if self.turn.root.kind != "chat":
            return None
        asked = (
            question_of(step.asked) for step in self.turn.steps[1:] if step.kind in ("query", "retrieve")
        )
        standalone = next(asked, "").strip()
        return standalone if standalone and standalone != question.strip() else None

    def _timings(self, found: TurnContexts) -> Timings:
        turn = self.turn
        seconds = [step.seconds for step in found.retrievals if step.seconds is not None]
        return Timings(
            started_at=turn.started,
            total=turn.root.seconds,
            retrieval=sum(seconds) if seconds else None,
            generation=turn.generation or None,
        )


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
