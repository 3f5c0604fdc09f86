"""Asking a person about turns in the terminal."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from steelyard._internal.text import printable, shorten
from steelyard.calibration import Judged, Material, chances_by, collect, drawn_to_label
from steelyard.cli._words import amount, counted
from steelyard.cli.calibrating._material import Sources
from steelyard.errors import ConfigurationError
from steelyard.report import Label, LabelValue, open_labels, open_results
from steelyard.scores import Evaluation, Score

_ANSWER = 3_000
_CONTEXT = 1_200
_CONTEXTS = 10

Say = Callable[[str], None]
Ask = Callable[[str], str | None]


class _Quit(Exception):
    """The person has had enough."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """The turns to label, and by which metric they were put in order."""

    metric: str
    """The metric whose scores decide what is worth labelling."""
    turns: list[tuple[Judged, float]]
    """The turns, the most useful first, each with the probability with which it was drawn."""
    labelled: int
    """How many turns have a label already."""


def waiting(sources: Sources, *, of_claims: bool, limit: int) -> Waiting:
    """The turns whose labels would tell the most.

    Raises:
        ConfigurationError: If there are no judged turns.
    """
    about = sources.metric if of_claims else None
    said = [label for label in open_labels(sources.db) if label.metric == about]
    by_metric: defaultdict[str, list[Material]] = defaultdict(list)
    for material in collect(sources.evaluations(), said):
        by_metric[material.key.metric].append(material)
    if not by_metric:
        what = f"scored by {sources.metric!r}" if sources.metric else "with a score"
        raise ConfigurationError(f"{sources.db!r} holds no turn {what}")
    turns = {name: _judged(parts) for name, parts in by_metric.items()}
    metric = max(turns, key=lambda name: (len(turns[name]), name == "faithfulness"))
    known = {label.record_id for label in said} & turns[metric].keys()
    # What somebody picked may come again: drawn turns must tell of all, not of those nobody had picked.
    drawn = {label.record_id for label in said if label.drawn is not None}
    chance = chances_by([pair for part in by_metric[metric] for pair in part.labelled])
    found = drawn_to_label(turns[metric].values(), drawn, chance=chance, limit=limit)
    return Waiting(metric=metric, turns=found, labelled=len(known))


def _judged(parts: Sequence[Material]) -> dict[str, Judged]:
    return {one.record_id: one for part in parts for one in part.judged}


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """One sitting."""

    db: str
    """The results."""
    who: str
    """Who labels."""
    say: Say
    """Shows a line."""
    ask: Ask
    """Asks for a letter; None where there is nobody to ask any more."""

    def run(self, turns: list[tuple[Judged, float]], metric: str | None) -> int:
        """Ask about turns, or about the claims of one metric in them; returns how many labels were stored."""
        count = 0
        for place, (judged, chance) in enumerate(turns, 1):
            evaluation = self._evaluation(judged.record_id)
            if evaluation is None or evaluation.record is None:
                continue
            self._show(evaluation, f"{place} of {len(turns)}")
            try:
                for label in self._of_claims(evaluation, metric) if metric else self._of_turn(evaluation):
                    open_labels(self.db).put([replace(label, drawn=chance)])
                    count += 1
            except _Quit:
                return count
        return count

    def _evaluation(self, record_id: str) -> Evaluation | None:
        with closing(open_results(self.db)) as results:
            return results.evaluation(record_id)

    def _show(self, evaluation: Evaluation, place: str) -> None:
        record = evaluation.record
        assert record is not None
        self.say(f"\n-- {place} {'-' * 50}")
        self.say(f"Question: {shorten(record.asked, _ANSWER)}")
        for number, context in enumerate(record.contexts[:_CONTEXTS], 1):
            self.say(f"  [{number}] {shorten(context.text, _CONTEXT)}")
        if len(record.contexts) > _CONTEXTS:
            self.say(f"  and {counted(len(record.contexts) - _CONTEXTS, 'more passage')}")
        self.say(f"Answer: {shorten(record.answer, _ANSWER)}")

    def _of_turn(self, evaluation: Evaluation) -> Iterator[Label]:
        letter = self._letter("Is this a good answer? [g]ood [b]ad [s]kip [q]uit: ", "gbs")
        if letter != "s":
            # Stored before the judge's word is shown, which must not sway anybody.
            yield self._label(evaluation, "good" if letter == "g" else "bad")
            said = ", ".join(
                f"{printable(score.metric)} {amount(score.value)}"
                for score in evaluation.scores
                if score.value is not None
            )
            self.say(f"The judge: {said}")

    def _of_claims(self, evaluation: Evaluation, metric: str) -> Iterator[Label]:
        score: Score = evaluation[metric]
        for place, verdict in enumerate(score.verdicts):
            self.say(f"Claim {place + 1} of {len(score.verdicts)}: {shorten(verdict.about, _ANSWER)}")
            letter = self._letter("Do the passages support it? [y]es [n]o [s]kip [q]uit: ", "yns")
            if letter != "s":
                yield self._label(
                    evaluation, "supported" if letter == "y" else "not_supported", metric, place
                )

    def _letter(self, question: str, letters: str) -> str:
        while True:
            answer = self.ask(question)
            if answer is None or answer.strip().lower()[:1] == "q":
                raise _Quit
            letter = answer.strip().lower()[:1]
            if letter and letter in letters:
                return letter
            self.say(f"please answer with one of {', '.join(letters)} or q")

    def _label(
        self, evaluation: Evaluation, value: LabelValue, metric: str | None = None, claim: int | None = None
    ) -> Label:
        return Label(
            record_id=evaluation.record_id,
            value=value,
            who=self.who,
            labelled_at=time.time(),
            metric=metric,
            claim=claim,
        )
