"""An open turn: what the handler keeps of a run tree until its root ends.

Everything here is written on the host's own thread, so it only takes references; reading them is `_build`'s
work, in the Monitor's thread. Runs are keyed by the integer of their UUID, which hashes in less than half the
time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from steelyard.record import Status, TraceRef

__all__ = ["Chain", "Model", "Retrieval", "Tool", "Turn"]


class Retrieval:
    """One retriever run."""

    __slots__ = ("documents", "ended", "key", "name", "query", "started")

    def __init__(self, key: int, name: str | None, query: Any) -> None:
        self.key = key
        self.name = name
        self.query = query
        self.documents: Sequence[Any] | None = None
        self.started = time.perf_counter()
        self.ended: float | None = None


class Model:
    """One run of a chat or completion model."""

    __slots__ = ("ended", "failed", "key", "prompt", "reply", "started")

    def __init__(self, key: int, prompt: Any) -> None:
        self.key = key
        self.prompt = prompt
        self.reply: Any = None
        self.failed = False
        self.started = time.perf_counter()
        self.ended: float | None = None


class Tool:
    """One tool run."""

    __slots__ = ("inputs", "key", "name", "output", "started")

    def __init__(self, key: int, name: str | None, inputs: Any) -> None:
        self.key = key
        self.name = name
        self.inputs = inputs
        self.output: Any = None
        self.started = time.perf_counter()


class Chain:
    """One inner chain run; kept only where nested turns are recorded too."""

    __slots__ = ("ended", "error", "inputs", "key", "name", "outputs", "started")

    def __init__(self, key: int, name: str | None, inputs: Any) -> None:
        self.key = key
        self.name = name
        self.inputs = inputs
        self.outputs: Any = None
        self.error: BaseException | None = None
        self.started = time.perf_counter()
        self.ended: float | None = None


class Turn:
    """What was seen of one run tree so far."""

    __slots__ = (
        "before",
        "chains",
        "closed",
        "ended",
        "error",
        "feedback",
        "given",
        "inputs",
        "interrupted",
        "key",
        "last_model",
        "metadata",
        "models",
        "name",
        "outputs",
        "parents",
        "results",
        "retrievals",
        "root",
        "started",
        "started_at",
        "status",
        "tags",
        "tools",
        "trace",
    )

    @property
    def history(self) -> list[Turn]:
        """The interrupted turns that led to this one, earliest first."""
        return [] if self.before is None else [*self.before.history, self.before]

    def __init__(
        self,
        root: UUID,
        trace: TraceRef,
        *,
        name: str | None = None,
        inputs: Any = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.root = root
        self.key = root.int
        self.trace = trace
        self.name = name
        self.inputs = inputs
        self.tags = tags
        self.metadata = metadata
        self.started_at = time.time()
        self.started = time.perf_counter()
        self.ended: float | None = None
        self.parents: dict[int, int] = {}
        """Every run below the root, with the run it was started by."""
        self.retrievals: dict[int, Retrieval] = {}
        self.models: dict[int, Model] = {}
        self.tools: dict[int, Tool] = {}
        self.chains: dict[int, Chain] | None = None
        self.results: list[Any] = []
        """What inner chains returned while no retriever had run: documents may be in it."""
        self.last_model: Model | None = None
        self.outputs: Any = None
        self.error: BaseException | None = None
        self.status: Status = "ok"
        self.interrupted = False
        self.closed = False
        self.before: Turn | None = None
        """The interrupted turn that this one resumes."""
        self.feedback: Any = None
        self.given: Mapping[str, Any] | None = None
        """Record fields that a `record` block was given; they win over what was seen."""
