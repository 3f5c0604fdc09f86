"""A question that is asked again together with an answer that was found wanting.

LlamaIndex's retrying engines write both into the query. Where its own spans are there, their root tells the
user's question; where only the model's client is instrumented, each try is a call by itself, and what the
prompt says is all there is.
"""

from __future__ import annotations

_BAD = "Here is a previous bad answer.\n"
_FEEDBACK = "\nHere is some feedback from the evaluator"
_NOW = "\nNow answer the question.\n"
_RULE = "\n----------------\n"
_CUE = "\nAnswer:"


def without_earlier_answer(text: str) -> str:
    """What was asked, without the answer that was found wanting, and what was said of it."""
    return _taken_apart(text)[0]


def earlier_answer(text: str) -> str:
    """The latest answer that was found wanting, as a prompt quotes it; empty where it quotes none."""
    return _taken_apart(text)[1]


def _taken_apart(text: str) -> tuple[str, str]:
    """The text without the earlier answer, and that answer."""
    head, mark, rest = text.partition(_BAD)
    if not mark:
        return text, ""
    answer, feedback, told = rest.partition(_FEEDBACK)
    if feedback and _NOW in told:
        # After several tries the first question stands behind all that was said of them.
        return head + told.rpartition(_NOW)[2], answer.strip()
    if not head.endswith(_RULE):
        return text, ""
    answer, cue, end = text.rpartition(_BAD)[2].partition(_CUE)
    return head.removesuffix(_RULE) + cue + end, answer.strip()
