"""Which of a turn's model calls made the answer, told by what flowed from one into the next.

A turn may ask models for more than the answer: rewrite the question, grade documents, rerank them. Documents
in such a prompt were not what the answer was made from. So the prompts that count are those of the calls
whose reply is in the answer, and, going back, of the calls whose reply stands in such a prompt (map-reduce,
refine).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_TELLING = 12


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a language model, in the order of the turn."""

    prompts: tuple[str, ...]
    """The texts it was sent."""
    reply: str
    """The text it replied; empty while it runs, and for tool calls."""


def answering_prompts(calls: Sequence[ModelCall], answer: str) -> list[str]:
    """The prompts that the answer came out of."""
    if len(calls) < 2:
        return [text for call in calls for text in call.prompts]
    replies = [call.reply.strip() for call in calls]
    chosen: set[int] = set()
    answer = answer.strip()
    reached = {
        at
        for at, reply in enumerate(replies)
        if reply and (reply == answer or (reply in answer and _telling(reply, calls[at].prompts)))
    } or {len(calls) - 1}
    while reached:
        chosen |= reached
        seen = [text for at in reached for text in calls[at].prompts]
        reached = {
            at
            for at, reply in enumerate(replies)
            if at not in chosen and _telling(reply, calls[at].prompts) and any(reply in text for text in seen)
        }
    return [text for at in sorted(chosen) for text in calls[at].prompts]


def _telling(reply: str, prompts: Sequence[str]) -> bool:
    """Whether a reply that stands in another prompt came from this call.

    A short one that its own prompt offers, such as a grader's yes or no, may stand anywhere.
    """
    return len(reply) >= _TELLING or (bool(reply) and not any(reply in text for text in prompts))
