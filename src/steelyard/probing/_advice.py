"""What to take a judge for, by its figures and by nothing else: its name does not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.probing._figures import JudgeCheck

_CHANCE = 0.5  # what a coin gets right
_SINGLE = 0.9
_MOVES = 0.05
_CALIBRATED = 0.08


def advice(check: JudgeCheck, baselines: Sequence[JudgeCheck]) -> tuple[str, ...]:
    """Sentences that say what a judge is good for.

    A claim is made only where the interval carries it: a judge `tells` a kind where the lower end lies above
    one half, and beats the baselines where its interval lies above theirs. It may decide on single answers
    from a lower end of .9; a verdict is called unsteady from 5 % moved, taken at the lower end of the
    interval; probabilities are called usable from an expected calibration error under .08.
    """
    if check.again is None:
        return ("It answered nothing; see the causes above. There is nothing to say about its judgement.",)
    return (
        _use(check, baselines),
        *_kinds(check),
        _probabilities(check),
        *_unsteady(check),
        _mode(check),
    )


def _use(check: JudgeCheck, baselines: Sequence[JudgeCheck]) -> str:
    right = check.overall.right
    best = max(baselines, key=lambda baseline: baseline.overall.right.value, default=None)
    if right.low <= _CHANCE:
        return "Do not use it: it is not clearly better than a coin."
    if best is not None and right.low <= best.overall.right.value:
        return (
            f"Do not rely on it: it is not clearly better than {best.judge} ({best.overall.right.value:.2f})."
        )
    if right.low >= _SINGLE:
        return (
            "Take it for single answers, for trends and for alarms: nine verdicts in ten or more are right."
        )
    return (
        "Take it for trends and comparisons over many answers, not for single ones: "
        f"about one verdict in {1 / (1 - right.value):.0f} is wrong."
    )


def _kinds(check: JudgeCheck) -> Iterator[str]:
    told = [kind for kind, figures in check.kinds.items() if figures.right.low > _CHANCE]
    rest = [kind for kind in check.kinds if kind not in told]
    if told:
        yield f"It tells true from false in: {_listed(told)}."
    if rest:
        yield f"Take another judge for what it does not tell clearly better than a coin: {_listed(rest)}."


def _probabilities(check: JudgeCheck) -> str:
    if check.calibration is None:
        return "It gives no probabilities: verdicts can be counted, not ranked."
    error = check.calibration.error
    if error < _CALIBRATED:
        return f"Its probabilities can be read as such on material like this (calibration error {error:.2f})."
    return f"Its probabilities are not shares (calibration error {error:.2f}): calibrate before use."


def _unsteady(check: JudgeCheck) -> Iterator[str]:
    for found, message in (
        (
            check.again,
            "Its verdicts differ from one time to the next: ask twice, or average over many turns.",
        ),
        (
            check.swapped,
            "The order of the passages moves its verdicts: compare only runs with the same order.",
        ),
        (
            check.longer,
            "The length of a claim moves its verdicts: do not compare terse with wordy applications.",
        ),
        (
            check.injected,
            "Text that speaks to the judge moves its verdicts: not for answers or documents that "
            "somebody may have written for it.",
        ),
    ):
        if found is not None and found.moved is not None and found.moved.low > _MOVES:
            yield message


def _mode(check: JudgeCheck) -> str:
    """The first of `view`, `record` and `off` that is not clearly less often right than the best of them."""
    changes = (("record", check.fused_record), ("off", check.fused_off))
    modes = {
        "view": check.overall.right,
        **{name: found.after for name, found in changes if found is not None},
    }
    best = max(right.value for right in modes.values())
    name = next(name for name, right in modes.items() if right.high >= best)
    return (
        f"Ask it with fuse {name!r}: right in {modes[name].value:.2f}, and no other mode is clearly better."
    )


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(kind.replace("_", " ") for kind in kinds)
