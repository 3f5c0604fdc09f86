"""Notes on a run that is built upon what a model replied in an earlier run of the same task or thread.

A question that is answered in parts, by one run a part, is one turn in truth; so is one that a run of its own
rewrote first. Nothing but the plain code around the runs holds them together, so they stay a Record each.
What one of them was shown tells of the others: a text that a model wrote itself, and was not given in its own
prompt, stands in the question or in the prompt of a later run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.recording.provenance._calls import ModelCall
from steelyard.recording.provenance._lines import holds_replies, plain, plain_line
from steelyard.recording.provenance._notes import sentence
from steelyard.recording.provenance._words import word_count

_WRITTEN = (
    f"{sentence('question_rewritten_only')}; a model wrote it in an earlier run of the same task or thread: "
    "`with record(...):` around both keeps the user's"
)
_SHOWN = (
    "this run was shown what a model replied in an earlier run of the same task or thread, and no run holds "
    "them together; `with record(...):` around all of them does"
)

_LABEL_WORDS = 3  # as in "Follow Up Input: ..."
_FEWEST_CHARACTERS = 8  # "Why?" stands in many prompts
_FEWEST_WORDS = 6  # a shorter line may be a heading that every prompt has
_MOST_PROMPT = 200_000


def notes_on_predecessors(
    question: str,
    calls: Sequence[ModelCall],
    earlier: Sequence[ModelCall],
    *,
    found: Iterable[str],
    in_conversation: bool,
) -> list[str]:
    """Say that a turn's question, or a part of its prompt, was written by a model in an earlier run.

    Args:
        question: The turn's question.
        calls: Its model calls.
        earlier: Calls of the latest runs before it in the same task or thread, ended when it began.
        found: The passages that it retrieved; what stands there was not passed on.
        in_conversation: Whether its prompts hold an earlier exchange, where earlier replies belong.
    """
    if not earlier:
        return []
    asked = plain_line(question)
    is_long = len(asked) >= _FEWEST_CHARACTERS
    notes = [_WRITTEN] if is_long and any(_wrote(call, asked) for call in earlier) else []
    if in_conversation:  # earlier replies belong into the prompt, and tell nothing
        return notes
    prompt = "\n".join(text for call in calls for text in call.prompts)[:_MOST_PROMPT]
    is_shown = _is_shown(earlier, prompt, known=[question, *found]) and not holds_replies(prompt)
    return [*notes, _SHOWN] if is_shown else notes


def _wrote(call: ModelCall, asked: str) -> bool:
    """Whether a question is a whole line of a reply, perhaps behind a number or a label."""
    most = word_count(asked) + _LABEL_WORDS
    is_line = any(line.endswith(asked) and word_count(line) <= most for line in call.lines)
    # The prompt last: it is long, and most replies do not hold the question.
    return is_line and asked not in plain("\n".join(call.prompts))


def _is_shown(earlier: Sequence[ModelCall], prompt: str, *, known: Sequence[str]) -> bool:
    """Whether a prompt holds what was replied before, at a place that nothing known accounts for."""
    shown = plain(prompt)
    said = [(call, line) for call in earlier for line in call.lines if _is_telling(line) and line in shown]
    told = plain("\n".join(known)) if said else ""
    # What an earlier call was sent is looked at last, since it is long.
    return any(line not in told and line not in plain("\n".join(call.prompts)) for call, line in said)


def _is_telling(line: str) -> bool:
    """Whether a line is too long to stand somewhere by chance."""
    return word_count(line) >= _FEWEST_WORDS
