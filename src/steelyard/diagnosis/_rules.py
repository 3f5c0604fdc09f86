"""The rules, in the order in which a turn passes what they are about; the first that fits names the cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steelyard.diagnosis._facts import Facts
from steelyard.record import Record
from steelyard.scores import Cause, Diagnosis, Score

MENDS: Mapping[Cause, str] = {
    "step_failed": "Look at the error: the turn ended before there was an answer.",
    "answer_cut_short": "Raise the model's limit of tokens, or ask for shorter answers.",
    "nothing_retrieved": "Look at the retriever's filter and the query that it was sent: nothing came back.",
    "passages_not_shown": "Look at the prompt: passages were found, and none of them stands in it.",
    "passage_lost": "Keep more passages after the named step, or look at the step that ranks them.",
    "passage_cut": "Give the prompt more room for passages, or make passages shorter.",
    "outside_collection": "Nothing in the collection is about this: write it down, or decline the question.",
    "passage_not_found": "Search for the passage by hand: it is missing, or ranks too low (raise k).",
    "passages_conflict": "Two passages disagree: take the one that is out of date out of the index.",
    "evasive": "Change the prompt: the answer was there, and the model declined to give it.",
    "contradicted": "Change the prompt or the model: the answer says what the passages exclude.",
    "ignored": "Change the prompt: the answer makes no use of passages that hold what was asked.",
    "distracted": "Show fewer passages, or in another order: from fewer it answers well.",
    "invented": "Change the prompt or the model: the answer adds what no passage says.",
    "unknown": "Look at the turn: a metric fails, and nothing shows why.",
}


_GAIN = 0.25
"""Share of the question's words that passages which were not shown have to add, to have been missed."""
_NOT_JUDGED = frozenset({"cancelled", "interrupted"})

Rule = Callable[[Facts], Diagnosis | None]


def diagnose(record: Record, scores: Sequence[Score]) -> Diagnosis | None:
    """What a turn suffers from, by what was recorded and judged; nothing is asked for it.

    A turn is bad if it failed, if a metric of its answer fails, if its answer declines to answer, or if what
    was retrieved is not in the prompt. Metrics of the retrieval alone make no turn bad: they say why.

    Args:
        record: The turn, with its content.
        scores: Its scores; the more kinds of verdict they hold, the more can be told apart.

    Returns:
        The first cause that the rules find, with what speaks for it; `unknown` if the turn is bad and none
        fits; without a cause if nothing is wrong; None if there is nothing to go by.
    """
    if record.status in _NOT_JUDGED:
        return None
    facts = Facts(record, scores)
    for rule in _ALWAYS:
        if (found := rule(facts)) is not None:
            return found
    if not (facts.failed or facts.is_evasive):
        return _fine(facts)
    found = next((made for rule in _OF_BAD_TURNS if (made := rule(facts)) is not None), None)
    return found or _unknown(facts)


def _fine(facts: Facts) -> Diagnosis | None:
    if not facts.claims:
        return None
    if facts.sufficiency_by == "words" or facts.sufficiency is None:
        return Diagnosis(because="every metric of the answer passes, and it does not evade")
    backing = "earned" if facts.is_sufficient else "lucky"
    shown = "hold what was asked" if facts.is_sufficient else "do not hold what was asked"
    return Diagnosis(backing=backing, because=f"the answer passes, and the passages {shown}")  # type: ignore[arg-type]


def _unknown(facts: Facts) -> Diagnosis:
    names = ", ".join(score.metric for score in facts.failed) or "the answer declines to answer"
    return Diagnosis(cause="unknown", because=f"nothing that was recorded says why: {names}")


# Whatever the scores say.


def _failed(facts: Facts) -> Diagnosis | None:
    if facts.record.status != "error":
        return None
    return Diagnosis(cause="step_failed", rule="status", strength=1.0, because="the turn ended with an error")


def _not_shown(facts: Facts) -> Diagnosis | None:
    record = facts.record
    if record.contexts or not record.retrieved:
        return None
    return Diagnosis(
        cause="passages_not_shown",
        rule="prompt",
        strength=1.0,
        because=f"{len(record.retrieved)} passages were retrieved, and none was found in the prompt",
        lost=tuple(range(len(record.retrieved))),
        answered_anyway=not facts.is_evasive,
    )


# Of turns that are bad.


def _cut_short(facts: Facts) -> Diagnosis | None:
    if facts.record.status != "truncated":
        return None
    because = "the model stopped before its answer was whole"
    return Diagnosis(cause="answer_cut_short", rule="status", strength=1.0, because=because)


def _nothing(facts: Facts) -> Diagnosis | None:
    if facts.record.contexts:
        return None
    because = "no passage was retrieved or given"
    return Diagnosis(cause="nothing_retrieved", rule="contexts", strength=1.0, because=because)


def _lost(facts: Facts) -> Diagnosis | None:
    """Passages that were retrieved, have more of what was asked, and are not among those shown."""
    if facts.is_sufficient or not facts.unshown:
        return None
    gains = [(facts.gain(one.text), name, place) for name, place, one in facts.unshown]
    best, stage, at = max(gains)
    if best < _GAIN:
        return None
    where = f"passage {at + 1} of {stage}" if stage else f"retrieved passage {at + 1}"
    return Diagnosis(
        cause="passage_lost",
        rule=_by(facts, "gain"),
        strength=_certain(facts),
        because=f"{where} has more of what was asked, and was not shown",
        lost=tuple(sorted(place for gain, name, place in gains if name == stage and gain >= _GAIN)),
        stage=stage,
        **_answered(facts),
    )


def _cut(facts: Facts) -> Diagnosis | None:
    """Passages of which only a part was shown; what was judged is the whole of them."""
    if not facts.cut:
        return None
    least, at = min((facts.record.contexts[place].seen or 0.0, place) for place in facts.cut)
    return Diagnosis(
        cause="passage_cut",
        rule="seen",
        strength=1 - least,
        because=f"{least:.0%} of passage {at + 1} stands in the prompt",
        contexts=tuple(facts.cut),
        **_answered(facts),
    )


def _not_there(facts: Facts) -> Diagnosis | None:
    if facts.is_sufficient is not False:
        return None
    cause, because = (
        ("outside_collection", "the passages are about something else than the question")
        if facts.is_elsewhere
        else ("passage_not_found", "the passages are about the question and do not hold what it asks for")
    )
    return Diagnosis(
        cause=cause,  # type: ignore[arg-type]
        rule=_by(facts, "sufficiency"),
        strength=_certain(facts),
        because=because,
        contexts=tuple(range(len(facts.record.contexts))),
        **_answered(facts),
    )


def _conflict(facts: Facts) -> Diagnosis | None:
    if not facts.conflicting:
        return None
    score, place, verdict = facts.conflicting[0]
    return Diagnosis(
        cause="passages_conflict",
        rule="verdicts",
        strength=1.0 if verdict.probability is None else verdict.probability,
        because=f"claim {place + 1} is supported by one passage and excluded by another",
        contexts=_places(facts, verdict.about),
        claim=place,
        metric=score.metric,
    )


def _evasive(facts: Facts) -> Diagnosis | None:
    if not facts.is_evasive or not facts.is_sufficient:
        return None
    return Diagnosis(
        cause="evasive",
        rule=_by(facts, "evasion"),
        strength=min(facts.evasion, _certain(facts)),
        because="the answer declines to answer, and the passages hold what was asked",
    )


def _wrong(facts: Facts) -> Diagnosis | None:
    """Claims that fail: excluded by the passages, made without a look at them, or beyond them."""
    if not facts.wrong:
        return None
    found = facts.contradicted or facts.wrong
    score, place, verdict = found[0]
    many = f"{len({one.about for _, _, one in found})} of {facts.claims} claims"
    if facts.contradicted:
        cause, because = "contradicted", f"{many} say something else than the passages"
    elif len(facts.wrong) == facts.claims and facts.useless:
        cause, because = "ignored", f"{many} have no support, and no passage was of use for the answer"
    else:
        cause, because = "invented", f"{many} stand in no passage"
    sure = [one.probability_of_good for _, _, one in found if one.probability_of_good is not None]
    return Diagnosis(
        cause=cause,  # type: ignore[arg-type]
        rule="verdicts",
        strength=1 - min(sure, default=0.0),
        because=because,
        contexts=_places(facts, verdict.about),
        claim=place,
        metric=score.metric,
    )


_ALWAYS: tuple[Rule, ...] = (_failed, _not_shown)
_OF_BAD_TURNS: tuple[Rule, ...] = (
    *(_cut_short, _nothing, _lost, _cut, _not_there, _conflict, _evasive, _wrong),
)


def _by(facts: Facts, rule: str) -> str:
    """The rule's name, and whether a judge or the words alone said what could be answered."""
    return f"{rule} by {facts.sufficiency_by}"


def _certain(facts: Facts) -> float:
    """How far the sufficiency is from the middle of its range, in 0..1."""
    return 0.0 if facts.sufficiency is None else abs(2 * facts.sufficiency - 1)


def _answered(facts: Facts) -> dict[str, Any]:
    return {"answered_anyway": not facts.is_evasive}


def _places(facts: Facts, about: str) -> tuple[int, ...]:
    """The passages that the verdicts on a claim rest on."""
    rests = (
        piece.context
        for score in facts.scores
        for verdict in score.verdicts
        if verdict.about == about
        for piece in verdict.evidence
    )
    return tuple(dict.fromkeys(place for place in rests if place is not None))
