"""What can be lost or doubtful in a record: a fixed vocabulary, with the sentence for each."""

from __future__ import annotations

from typing import Literal

Note = Literal[
    "answer_call_unknown",
    "answer_call_assumed",
    "no_prompt_seen",
    "contexts_not_in_prompt",
    "contexts_partly_in_prompt",
    "contexts_undecided",
    "contexts_too_large",
    "contexts_guessed",
    "no_contexts",
    "question_guessed",
    "question_unknown",
    "question_rewritten_only",
    "question_whole_prompt",
]
"""Names of notes; a recorder may add details of its own after them."""

NOTES: dict[Note, str] = {
    "answer_call_unknown": "no model call's reply was found in the answer, so its prompt is not known",
    "answer_call_assumed": "the only model call's reply was not seen; its prompt is taken for the answer's",
    "no_prompt_seen": "the prompt of the answer was not seen, so all that was retrieved counts",
    "contexts_not_in_prompt": "no passage was found in the prompt of the answer (it may have been rewritten)",
    "contexts_partly_in_prompt": "a passage was found in the prompt only in part",
    "contexts_undecided": "a passage is too short, or part of the question, to be told apart in the prompt",
    "contexts_too_large": "passages or prompts are too long to be compared in full",
    "contexts_guessed": (
        "passages were cut out of the prompt, since no source was seen; record() and turn.contexts take the "
        "real ones"
    ),
    "no_contexts": "no passages were seen",
    "question_guessed": "the question was cut out of a prompt; record(question=...) takes the real one",
    "question_unknown": "the user's question was not found",
    "question_whole_prompt": (
        "the question looks like a prompt that texts were put into before the turn; record(question=...) "
        "and turn.contexts take them apart"
    ),
    "question_rewritten_only": "only a rewritten form of the question was seen",
}
"""The sentence for each note."""


def sentence(note: Note, *, count: int | None = None) -> str:
    """A note as it stands in `Record.notes`: its name, how many it concerns, and what it means.

    >>> sentence("contexts_partly_in_prompt", count=2)
    'contexts_partly_in_prompt (2): a passage was found in the prompt only in part'
    """
    return f"{note}{'' if count is None else f' ({count})'}: {NOTES[note]}"
