"""A turn, or the part of it that is below one chain, as the Record is made of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from steelyard.record import Status, Timings, text_of, to_json_value
from steelyard.recording.provenance import ModelCall, plain
from steelyard_langchain._options import Options
from steelyard_langchain._turn import Chain, Earlier, Passed, Predecessor, Turn, outermost, within
from steelyard_langchain.building._calls import said_before
from steelyard_langchain.building._extract import prompt_texts

_NOISE_TAGS = (
    "seq:step:",
    "graph:step:",
    "map:key:",
    "langsmith:",
    "retry:attempt:",
    "condition:",
    "branch:",
)
_NOISE_METADATA = ("ls_", "lc_", "langgraph_", "checkpoint", "__", "LANGSMITH_", "LANGCHAIN_", "revision_id")


def id_of(turn: Turn, chain: Chain | None) -> str:
    """The id of the Record of a turn, or of one chain within it."""
    root = str(turn.root)
    return root if chain is None else f"{root}/{chain.key:032x}"


class TurnPart:
    """A turn, or the part of it that is below one chain."""

    def __init__(self, turn: Turn, chain: Chain | None) -> None:
        self.turn = turn
        self.chain = chain
        self.id = id_of(turn, chain)
        part: Turn | Chain = turn if chain is None else chain
        self.name = part.name
        # What a graph is resumed with answers the graph; what it brings besides is an input.
        is_command = type(part.inputs).__name__ == "Command"
        self.inputs = part.inputs.update if is_command else part.inputs
        self.resumed_with = part.inputs.resume if is_command else None
        self.outputs = part.outputs
        self.error = part.error
        self.started = part.started
        self.ended = part.ended
        # What is around a chain within the turn is not the chain's.
        self.status: Status = "error" if self.error else "ok"
        self.history: list[Turn] = []
        self.results: list[Passed] = []
        self.nearby: tuple[Earlier, ...] = ()
        self.predecessors: tuple[Predecessor, ...] = ()
        self.is_last_reply = False
        """Whether the answer is only what a model said last, since the run returned none."""
        self.replied_elsewhere = False
        """Whether a prompt holds what models replied there, to prompts that are not the turn's own."""
        if chain is None:
            self.status = turn.status
            self.history = turn.history
            self.results = [*turn.results, *turn.texts]
            self.nearby = turn.found_before
            self.predecessors = turn.predecessors
        self.retrievals = [run for run in turn.retrievals.values() if self._holds(run.key)]
        self.tools = [run for run in turn.tools.values() if self._holds(run.key)]
        self.all_models = [run for run in turn.models.values() if self._holds(run.key)]
        self.models = [run for run in self.all_models if outermost(turn, run.key)]

    @cached_property
    def earlier_calls(self) -> list[ModelCall]:
        """What earlier runs of the same task or thread asked a model last."""
        said = (said_before(one, self.started) for one in self.predecessors)
        return [call for call in said if call is not None]

    @cached_property
    def prompts(self) -> list[str]:
        """What its models were sent, as `plain` writes it."""
        return [plain(text) for model in self.all_models for text in prompt_texts(model.prompt)]

    def _holds(self, key: int) -> bool:
        return self.chain is None or within(self.turn, key, self.chain.key)


def timings_of(view: TurnPart) -> Timings:
    """When it began, and how long searching and answering took."""
    turn = view.turn
    retrieval = [r.ended - r.started for r in view.retrievals if r.ended and outermost(turn, r.key)]
    generation = [m.ended - m.started for m in view.models if m.ended]
    return Timings(
        started_at=turn.started_at + (view.started - turn.started),
        total=None if view.ended is None else view.ended - view.started,
        retrieval=sum(retrieval) if retrieval else None,
        generation=sum(generation) if generation else None,
    )


def tags_of(turn: Turn) -> tuple[str, ...]:
    """The user's own tags."""
    return tuple(text_of(tag) for tag in turn.tags or () if not str(tag).startswith(_NOISE_TAGS))


def metadata_of(turn: Turn, options: Options) -> dict[str, Any]:
    """The user's own metadata, what the options add, and feedback that has come in."""
    own = {
        name: value
        for name, value in dict(turn.metadata or {}).items()
        if not str(name).startswith(_NOISE_METADATA)
    }
    added = options.metadata
    if callable(added):
        added = added(turn.metadata or {})
    kept: dict[str, Any] = {**own, **dict(added or {})}
    if turn.name:
        kept.setdefault("run_name", turn.name)
    if turn.feedback is not None:
        kept["feedback"] = turn.feedback
    if all(type(value) is str for value in kept.values()):
        return kept
    return dict(to_json_value(kept))
