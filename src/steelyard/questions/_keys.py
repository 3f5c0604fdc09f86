"""The keys of a request: short names that say where the thing stands that a question is about.

`s3` is the third statement, `c2` is context 2, and `s3c2` asks about the one in the light of the other. Where
a statement is asked several things they are told apart by letters, `s3a` and `s3b`, the same letter for the
same thing throughout. Everything else is `q1`, `q2`, ... So a model never has to count its way from a key to
what it means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_lowercase

from steelyard.questions._question import Question, Supported, Useful


def keyed(questions: Sequence[Question]) -> dict[str, Question]:
    """The questions by key, in the order given; equal statements have the same number.

    Args:
        questions: The questions of one request, all different.
    """
    times = Counter(_squeezed(question.quoted) for question in questions if question.quoted is not None)
    statements = {text: number for number, text in enumerate(times, start=1)}
    several = any(times[_squeezed(q.quoted)] > 1 for q in questions if q.quoted is not None and _lettered(q))
    letters: dict[str, str] = {}
    found: dict[str, Question] = {}
    for question in questions:
        if question.quoted is not None:
            key = f"s{statements[_squeezed(question.quoted)]}"
            if isinstance(question, Supported) and question.passage is not None:
                key += f"{'c' if question.by == 'contexts' else 'e'}{question.passage + 1}"
            elif several:
                key += letters.setdefault(_asked(question), ascii_lowercase[len(letters) % 26])
        elif isinstance(question, Useful):
            key = f"c{question.context + 1}"
        else:
            key = f"q{len(found) + 1}"
        found[_unused(key, found)] = question
    return found


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _lettered(question: Question) -> bool:
    """Whether a letter tells it from what else is asked of its statement, and not the number of a context."""
    return not (isinstance(question, Supported) and question.passage is not None)


def _asked(question: Question) -> str:
    """What is asked of a statement, without the statement itself."""
    named = ("by", "among", "of")
    return repr([question.kind, *(getattr(question, name, None) for name in named)])


def _unused(key: str, taken: dict[str, Question]) -> str:
    """The key, or one like it: two different questions may be about the same thing in record mode."""
    if key not in taken:
        return key
    return next(name for letter in ascii_lowercase if (name := f"{key}{letter}") not in taken)
