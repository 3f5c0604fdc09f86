"""Which of a turn's model runs made the answer, told by what flowed from one into the next.

A turn may ask models for more than the answer: rewrite the question, grade documents, rerank them. Documents
in such a prompt were not what the answer was made from. So the prompts that count are those of the runs whose
reply is in the answer, and, going back, of the runs whose reply stands in such a prompt (map-reduce, refine).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard_langchain._shapes import message_text, prompt_texts
from steelyard_langchain._turn import Model

__all__ = ["generation_prompts", "reply_text"]

_TELLING = 12


def generation_prompts(models: Sequence[Model], answer: str) -> tuple[list[str], list[str]]:
    """The prompts that the answer came out of, and all prompts."""
    texts = [list(prompt_texts(model.prompt)) for model in models]
    every = [text for group in texts for text in group]
    if len(models) < 2:
        return every, every
    replies = [reply_text(model).strip() for model in models]
    chosen: set[int] = set()
    answer = answer.strip()
    reached = {
        at
        for at, reply in enumerate(replies)
        if reply and (reply == answer or (reply in answer and _telling(reply, texts[at])))
    } or {len(models) - 1}
    while reached:
        chosen |= reached
        seen = [text for at in reached for text in texts[at]]
        reached = {
            at
            for at, reply in enumerate(replies)
            if at not in chosen and _telling(reply, texts[at]) and any(reply in text for text in seen)
        }
    return [text for at in sorted(chosen) for text in texts[at]], every


def _telling(reply: str, prompt: Sequence[str]) -> bool:
    """Whether a reply that stands in another prompt came from this run.

    A short one that its own prompt offers, such as a grader's yes or no, may stand anywhere.
    """
    return len(reply) >= _TELLING or (bool(reply) and not any(reply in text for text in prompt))


def reply_text(model: Model) -> str:
    """What a model run replied, as text; empty while it runs, and for tool calls."""
    generations: Any = getattr(model.reply, "generations", None) or ()
    for batch in generations:
        for generation in batch:
            message = getattr(generation, "message", None)
            return message_text(message) if message is not None else str(getattr(generation, "text", ""))
    return message_text(model.reply) if hasattr(model.reply, "content") else ""
