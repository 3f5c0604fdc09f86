"""From what was seen of a turn to its contexts: remove duplicates, and tell what reached the prompt.

Shared by all integrations, so that the same turn gives the same Record whichever framework ran it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steelyard.record import Context, ContextsSource

_PREFIX = 60
_SHINGLE = 40


@dataclass(frozen=True, slots=True)
class Assembled:
    """The context fields of a Record, to be passed on as keywords."""

    contexts: tuple[Context, ...]
    retrieved: tuple[Context, ...]
    contexts_source: ContextsSource


def assemble(
    contexts: Iterable[Context], *, prompts: Sequence[str] = (), source: ContextsSource = "retrieved"
) -> Assembled:
    """Decide what the answer is judged by.

    Where some of the retrieved passages are found in the prompt, only those are, since the model saw no
    others: a reranker or a cut-off after retrieval is then respected. Where none is found (a template that
    rewrites them, a prompt that was not seen), all retrieved ones are.

    Args:
        contexts: Everything retrieved, over all retrievals, best first within each.
        prompts: What language models were sent in this turn.
        source: How the passages came in, where the prompt does not decide it.
    """
    found = unique(contexts)
    if not prompts or not found:
        return Assembled(found, (), source)
    marked = mark_in_prompt(found, prompts)
    seen = tuple(context for context in marked if context.in_prompt)
    if not seen:
        return Assembled(found, (), source)
    return Assembled(seen, marked if len(seen) < len(marked) else (), "in_prompt")


def unique(contexts: Iterable[Context]) -> tuple[Context, ...]:
    """The first of each passage, in order. The same passage has the same text; ids of stores may collide."""
    found: dict[str, Context] = {}
    for context in contexts:
        found.setdefault(context.text, context)
    return tuple(found.values())


def mark_in_prompt(contexts: Iterable[Context], prompts: Sequence[str]) -> tuple[Context, ...]:
    """The same contexts, each marked with whether its text stands in one of the prompts.

    White space does not count. A passage is there if its first 60 characters are and, since the passages of a
    store often begin alike, 40 characters from its middle too.
    """
    haystack = _Haystack(prompts)
    return tuple(_marked(context, seen=float(haystack.holds(context.text))) for context in contexts)


def _marked(context: Context, *, seen: float) -> Context:
    """A copy by hand: `dataclasses.replace` takes twice as long, and this is done for every passage."""
    return Context(
        text=context.text,
        id=context.id,
        score=context.score,
        rank=context.rank,
        query=context.query,
        hop=context.hop,
        seen=seen,
    )


class _Haystack:
    """Prompts to look for passages in. Most passages stand there as they are, so that is looked at first."""

    def __init__(self, prompts: Sequence[str]) -> None:
        self._prompts = prompts
        self._normal: str | None = None

    def holds(self, text: str) -> bool:
        if any(text in prompt for prompt in self._prompts):
            return bool(text) and not text.isspace()
        if self._normal is None:
            self._normal = "\n".join(map(_normal, self._prompts))
        needle = _normal(text)
        middle = len(needle) // 2
        return (
            bool(needle)
            and needle[:_PREFIX] in self._normal
            and needle[middle : middle + _SHINGLE] in self._normal
        )


def _normal(text: str) -> str:
    return " ".join(text.split())
