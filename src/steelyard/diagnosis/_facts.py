"""What is known of a turn: its record and its scores, read for the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from steelyard.judge.overlap import QuestionWords, coverage, question_words, stems_of
from steelyard.record import Context, Record
from steelyard.scores import Score, Verdict
from steelyard.text import evades, sentences, spread

_OF_REFERENCES = ("context_recall", "factual_correctness", "answer_correctness")
"""Metrics whose claims are held against what somebody expected."""
_OF_RETRIEVAL = ("context_", "retrieval_")
"""How metrics begin that say nothing of the answer."""
_SUFFICIENT = 0.75
"""Sufficiency from which a question could be answered: all of it, rather than part of it."""
_NEARLY_ALL = 0.95
"""The share of a passage below which some of it was cut off."""
_MOSTLY = 0.5
_MOST_READ = 200
"""Sentences of an answer that are looked at, evenly spread over it if there are more."""
_READ = 20_000
"""Characters of an answer from its beginning on that are: finding the sentences of more would take .1 s from
the threads of the application."""
_COVERED = (0.05, 0.7)
"""Shares of a question's words that the passages have, at which they are surely about something else, or hold
what is asked; measured as `steelyard.judge.LocalJudge` was for the same question."""


@dataclass(frozen=True)
class Facts:
    """A turn as the rules see it; each fact is worked out when a rule first asks."""

    record: Record = field(repr=False)
    scores: Sequence[Score] = field(repr=False)

    @cached_property
    def failed(self) -> list[Score]:
        """Scores that are on the wrong side of their bar and are about the answer."""
        about_answer = (one for one in self.scores if not one.metric.startswith(_OF_RETRIEVAL))
        return [score for score in about_answer if score.passed is False]

    @cached_property
    def _of_answer(self) -> list[tuple[Score, int, Verdict]]:
        """Every verdict on a claim of the answer, with its score and its place there."""
        return [
            (score, place, verdict)
            for score in self.scores
            if score.status == "scored" and not score.metric.startswith((*_OF_RETRIEVAL, *_OF_REFERENCES))
            for place, verdict in enumerate(score.verdicts)
            if verdict.kind in ("supported", "contradicted")
        ]

    @cached_property
    def claims(self) -> int:
        return len({verdict.about for _, _, verdict in self._of_answer})

    @cached_property
    def wrong(self) -> list[tuple[Score, int, Verdict]]:
        """Claims of the answer that do not hold, by a metric that fails."""
        return [found for found in self._of_answer if found[2].good is False and found[0].passed is not True]

    @cached_property
    def contradicted(self) -> list[tuple[Score, int, Verdict]]:
        """Those of them that the passages exclude: by a verdict, or by what the judge saw instead."""
        return [found for found in self.wrong if found[2].kind == "contradicted" or _is_turned(found[2])]

    @cached_property
    def conflicting(self) -> list[tuple[Score, int, Verdict]]:
        """Claims that one passage supports and another excludes."""
        backed = {v.about for _, _, v in self._of_answer if v.kind == "supported" and v.value is True}
        return [
            found
            for found in self._of_answer
            if found[2].kind == "contradicted" and found[2].value is True and found[2].about in backed
        ]

    @cached_property
    def evasion(self) -> float:
        """The probability, or the share of the answer, that declines to answer."""
        votes = [
            v for s in self.scores for v in s.verdicts if v.kind == "noncommittal" and v.value is not None
        ]
        if votes:
            return max(v.probability if v.probability is not None else float(v.value is True) for v in votes)
        said = [sentence.text for sentence in spread(sentences(self.record.answer[:_READ]), _MOST_READ)]
        total = sum(map(len, said))
        return sum(len(text) for text in said if evades(text)) / total if total else 0.0

    @property
    def is_evasive(self) -> bool:
        return self.evasion >= _MOSTLY

    @cached_property
    def _rated(self) -> tuple[Score, Verdict] | None:
        found = ((score, v) for score in self.scores for v in score.verdicts if v.kind == "sufficient")
        return next((one for one in found if one[0].value is not None), None)

    @cached_property
    def sufficiency(self) -> float | None:
        """How much of the question the passages could answer, in 0..1: by the judge, else by their words."""
        if self._rated is not None:
            return self._rated[0].value
        share = self.covered
        if share is None:
            return None
        low, high = _COVERED
        return min(1.0, max(0.0, (share - low) / (high - low)))

    @property
    def sufficiency_by(self) -> Literal["judge", "words"]:
        """What says so."""
        return "judge" if self._rated is not None else "words"

    @property
    def is_by_words(self) -> bool:
        """Whether the words alone say how much could be answered; the local judge has nothing else either."""
        made = None if self._rated is None else self._rated[0].provenance
        return self._rated is None or (made is not None and made.judge.startswith("local"))

    @property
    def is_sufficient(self) -> bool | None:
        """Whether the question could be answered; None where nothing says."""
        return None if self.sufficiency is None else self.sufficiency >= _SUFFICIENT

    @property
    def is_elsewhere(self) -> bool:
        if self._rated is not None:
            return self._rated[1].value == 0.0
        return self.sufficiency == 0.0

    @cached_property
    def covered(self) -> float | None:
        """The share of the question's words that the passages have."""
        if not self.record.contexts or not self.record.asked:
            return None
        return coverage(self._asked, self._shown).share

    @cached_property
    def _asked(self) -> QuestionWords:
        return question_words(self.record.asked)

    @cached_property
    def _shown(self) -> frozenset[str]:
        return stems_of([context.text for context in self.record.contexts])

    @cached_property
    def useless(self) -> bool:
        """Whether a judge says that no passage was of use for the answer."""
        votes = [v.value for score in self.scores for v in score.verdicts if v.kind == "useful"]
        return bool(votes) and not any(votes)

    @cached_property
    def cut(self) -> list[int]:
        """Passages of which the model saw a part only."""
        return [
            place
            for place, context in enumerate(self.record.contexts)
            if context.seen is not None and context.seen < _NEARLY_ALL
        ]

    @cached_property
    def unshown(self) -> list[tuple[str, int, Context]]:
        """What was found and is not among the passages: the step that had it, its place there, and itself.

        What the retrieval as a whole returned has no step's name. Of a passage that several steps had, the
        last counts.
        """
        shown = {text_key(context) for context in self.record.contexts}
        had = [(stage.name, stage.contexts) for stage in self.record.stages]
        found = {
            text_key(context): (name, place, context)
            for name, contexts in (*had, ("", self.record.retrieved))
            for place, context in enumerate(contexts)
        }
        return [one for key, one in found.items() if key not in shown]

    def covers(self, text: str) -> float:
        """The share of the question's words that one passage has."""
        return coverage(self._asked, stems_of([text])).share

    def gain(self, text: str) -> float:
        """By how much more of the question's words the passages would have with one further passage."""
        return coverage(self._asked, self._shown | stems_of([text])).share - (self.covered or 0.0)


def text_key(context: Context) -> str:
    """A passage by its text alone, however it is spaced."""
    return " ".join(context.text.split())


def _is_turned(verdict: Verdict) -> bool:
    """Whether most of an unsupported claim stands in one place of the passages, with something changed."""
    return any(
        piece.notes.get("negation_flip") or (_differs(piece.notes) and _likeness(piece.notes) >= _MOSTLY)
        for piece in verdict.evidence
    )


def _differs(notes: Mapping[str, Any]) -> bool:
    return bool(notes.get("missing_numbers") or notes.get("missing_names"))


def _likeness(notes: Mapping[str, Any]) -> float:
    signals = notes.get("signals")
    share = signals.get("window") if isinstance(signals, Mapping) else None
    return float(share) if isinstance(share, int | float) else 0.0
