"""Texts that code asked a model about one by one: what differs in prompts that are alike otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix

from steelyard.recording.building._steps import is_telling
from steelyard.recording.provenance import AnswerCalls, ModelCall

_LEAST_ALIKE = 20
"""Characters that prompts of one template share."""
_MOST = 100_000
_BEGINS = ("\n", ": ", ">", '"', "'", "`")
"""What a template has in front of a place that is filled in."""
_ENDS = (".", "!", "?", "\u3002")


def asked_one_by_one(calls: Sequence[ModelCall], behind: AnswerCalls, question: str) -> list[str]:
    """What differs in the prompts of calls that were all asked the question; none if they are not alike.

    Args:
        calls: The calls of a turn.
        behind: Which of them made the answer, and whose replies those put together; if they did with none,
            code may have chosen one of several.
        question: What was asked.
    """
    used = behind.fed or behind.made
    size = len(calls[used[0]].prompts) if used and question else 0
    last = {*behind.made}.difference(used)
    others = [one.prompts for at, one in enumerate(calls) if at not in last]
    asked = [one for one in others if len(one) == size and question in "\n".join(one)]
    place = _place_that_differs(asked)
    if place is None:
        return []
    texts = list(dict.fromkeys(prompts[place] for prompts in asked))
    slots = dict(zip(texts, _between(texts, question), strict=False))
    found = [slots.get(text, "") for at in used for text in calls[at].prompts[place : place + 1]]
    return found if all(map(is_telling, found)) else []


def _place_that_differs(asked: Sequence[Sequence[str]]) -> int | None:
    """The only message in which these prompts differ; None if they differ in several, or in none."""
    columns = list(zip(*asked, strict=True))
    varying = [at for at, texts in enumerate(columns) if len(set(texts)) > 1]
    if len(varying) != 1 or sum(map(len, columns[varying[0]])) > _MOST:
        return None
    return varying[0]


def _between(texts: Sequence[str], question: str) -> list[str]:
    """What stands between the words that all of these begin with and those that all end with."""
    shared = commonprefix(list(texts))
    begin = max((at + len(mark) for mark in _BEGINS if (at := shared.rfind(mark)) >= 0), default=0)
    rests = [text[begin:] for text in texts]
    end = commonprefix([rest[::-1] for rest in rests])[::-1]
    if len((shared[:begin] + end).replace(question, "")) < _LEAST_ALIKE:
        return []
    end = end[_own(end) :]
    return [rest[: len(rest) - len(end)].strip() for rest in rests]


def _own(end: str) -> int:
    """How much of what texts end with alike is their own: a stop, or words up to one."""
    if end[:1] in _ENDS:
        return 1
    if not end.lstrip(" ")[:1].isalnum():
        return 0
    return min((at + len(mark.strip()) for mark in (*_ENDS, "\n") if (at := end.find(mark)) >= 0), default=0)
