"""Which chains within a turn are RAG turns of their own."""

from __future__ import annotations

from steelyard_langchain._turn import Chain, Turn

__all__ = ["above", "inner_turns", "outermost", "within"]


def above(turn: Turn, key: int) -> list[int]:
    """The runs that a run is below, nearest first."""
    found: list[int] = []
    while (key := turn.parents.get(key, -1)) != -1 and len(found) < 1000:
        found.append(key)
    return found


def within(turn: Turn, key: int, top: int) -> bool:
    """Whether a run is a given one or below it."""
    return key == top or top in above(turn, key)


def outermost(turn: Turn, key: int) -> bool:
    """Whether no retriever run is above a run."""
    retrievals = turn.retrievals
    if not retrievals or (len(retrievals) == 1 and key in retrievals):
        return True
    return not any(run in retrievals for run in above(turn, key))


def inner_turns(turn: Turn) -> list[Chain]:
    """The smallest chains below the root that retrieve and then ask a model.

    The smallest: a chain that only wraps one of them is the same turn. First retrieve, then ask: a model that
    rewrites the question for a retriever makes no answer.
    """
    candidates: dict[int, Chain] = {}
    for retrieval in turn.retrievals.values():
        if not outermost(turn, retrieval.key):
            continue
        over = above(turn, retrieval.key)
        for model in turn.models.values():
            if model.started > retrieval.started and outermost(turn, model.key):
                shared = set(above(turn, model.key))
                top = next((run for run in over if run in shared), None)
                if top is not None and turn.chains and top in turn.chains:
                    candidates[top] = turn.chains[top]
    nested = {run for key in candidates for run in above(turn, key)}
    return [chain for key, chain in candidates.items() if key not in nested]
