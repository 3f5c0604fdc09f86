"""What a dialect makes of one span."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from steelyard.record import Context
from steelyard.recording.reading import Message

Kind = Literal["turn", "rerank", "retrieval", "llm", "tool", "agent", "prompt", "chain"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedSpan:
    """What one span says about a RAG turn; what it does not say is empty."""

    dialect: str
    """Name of the dialect that read it."""
    kind: Kind
    """What the span stands for; `turn` only where the user marked it by hand."""
    question: str = field(default="", repr=False)
    """The question that was put to this step."""
    answer: str = field(default="", repr=False)
    """The text this step came to."""
    query: str = field(default="", repr=False)
    """What a retrieval was asked."""
    documents: tuple[Context, ...] = ()
    """What a retrieval or a reranker returned; an empty text where only ids and scores are told."""
    windows: tuple[Context, ...] = ()
    """The text around them, where they carry it: a later step may have shown it instead."""
    noted: tuple[str, ...] = field(default=(), repr=False)
    """Texts about a retrieval that an application noted by hand: passages if a prompt shows them."""
    messages: tuple[Message, ...] = ()
    """What a model was sent."""
    arguments: tuple[str, ...] = field(default=(), repr=False)
    """Arguments of the tools that a model called, each as JSON."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables of a prompt template, by name."""
    in_conversation: bool = False
    """Whether what this step was given holds an earlier exchange."""
    empty: bool = False
    """Whether a retrieval told that it returned nothing."""
    result: object = field(default=None, repr=False)
    """What a tool returned, as it stands on the span."""
    tool: str = ""
    """Name of a tool."""
    passing: tuple[object, ...] = field(default=(), repr=False)
    """Payloads of a step, looked into for documents where nothing else has them."""
    reference: str = field(default="", repr=False)
    """The expected answer, marked by hand."""
    run: bool = False
    """Whether the instrumentor knows this as a run of its own, whatever span it stands below."""
    hidden: bool = False
    """Whether content was left out on purpose, by this dialect's own switch."""
    broken: str = ""
    """Why a part could not be read: `invalid_json` or `oversized`."""
