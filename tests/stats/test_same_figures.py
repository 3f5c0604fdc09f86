"""The same scores give the same figures in every release.

The other tests here hold what figures promise, over many samples and with room for chance. A sign or a
constant that is a little off stays within that room; here it does not. Whoever means to change a formula
writes `same_figures.json` anew with `PYTHONPATH=tests:tests/parts python tests/stats/test_same_figures.py`
and sees which figures moved.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from alarms.alarm_parts import START, scored
from steelyard.alarms import Alarm
from steelyard.alarms._watch import Watch
from steelyard.calibration import assess, chances_by, collect, drawn_to_label
from steelyard.results.labels import Label, LabelValue
from steelyard.stats import (
    ChangeAlarm,
    ConfidenceSequence,
    FallAlarm,
    GateTest,
    Neighbours,
    OpenSums,
    Sample,
    alike_by,
    assisted_sample,
    auroc,
    cluster,
    cohen_kappa,
    corrected_mean,
    ewma,
    find_changes,
    find_deploys,
    find_incidents,
    find_slices,
    fit_logistic,
    fit_ridge,
    flip_probability,
    folds_of,
    holm,
    paired_difference,
    pass_rate,
    plan_gate,
    sample_of,
    smoothed_targets,
    turns_needed,
    unpaired_difference,
    weighted_mean,
    within_kinds,
)

DAY = 86_400.0


class Turns:
    """Turns of four weeks in sessions of three: those that look bad are picked more often, and since the
    eighteenth day a new prompt makes those in German worse."""

    def __init__(self, seed: int, count: int = 360) -> None:
        draw = Random(seed)
        self.times = [28 * DAY * number / count for number in range(count)]
        self.sessions = [f"session {number // 3}" for number in range(count)]
        self.language = [draw.choice(("de", "en", "fr")) for _ in range(count)]
        late = [time > 18 * DAY for time in self.times]
        self.prompt = ["v2" if one else "v1" for one in late]
        shared = [draw.random() for _ in range(count // 3 + 1)]
        worse = [0.45 * (one and name == "de") for one, name in zip(late, self.language, strict=True)]
        self.values = [
            round(
                max(0.0, min(1.0, 0.55 + 0.3 * shared[number // 3] + 0.2 * draw.random() - worse[number])), 3
            )
            for number in range(count)
        ]
        self.inclusion = [
            1.0 if value < 0.6 else 0.25 + 0.5 * (number % 2) for number, value in enumerate(self.values)
        ]
        self.screened = [round(min(1.0, 0.7 * value + 0.3 * draw.random()), 3) for value in self.values]
        self.judged = [draw.random() < 0.4 for _ in range(count)]

    @property
    def sample(self) -> Sample:
        return sample_of(self.values, self.inclusion, self.sessions)


TURNS, OTHERS = Turns(1), Turns(2, 240)
PASSED = [value > 0.7 for value in TURNS.values]


def told(value: object) -> object:
    """Figures as they are kept: six digits; of tables the ends."""
    if is_dataclass(value) and not isinstance(value, type):
        return [told(getattr(value, one.name)) for one in fields(value) if one.name != "inside"]
    if isinstance(value, np.ndarray | list | tuple):
        return [told(one) for one in value]
    if isinstance(value, dict):
        return [len(value), *(told(one) for one in list(value.items())[-2:])]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return int(value) if isinstance(value, np.integer) else value


def unlike(found: object, kept: object, place: str = "") -> Iterator[str]:
    """Where figures differ by more than the order in which a processor adds can change."""
    if isinstance(found, list) and isinstance(kept, list) and len(found) == len(kept):
        for at, pair in enumerate(zip(found, kept, strict=True)):
            yield from unlike(*pair, f"{place}[{at}]")
    elif isinstance(found, float) and isinstance(kept, float):
        if not math.isclose(found, kept, rel_tol=1e-5, abs_tol=1e-9) and not (
            found != found and kept != kept
        ):
            yield f"{place}: {kept} is now {found}"
    elif found != kept:
        yield f"{place}: {kept} is now {found}"


def means() -> Iterator[object]:
    """Means and shares."""
    yield weighted_mean(TURNS.values)
    yield weighted_mean(TURNS.values[:25], TURNS.inclusion[:25], level=0.9)
    yield weighted_mean(TURNS.values, TURNS.inclusion, floor=0.1)
    yield weighted_mean([1.0] * 3 + [0.9] * 17 + [0.1], level=0.4)
    yield TURNS.sample.estimate()
    yield pass_rate(PASSED[:40])
    yield pass_rate(PASSED, TURNS.inclusion, sessions=TURNS.sessions)
    yield [turns_needed(0.05), turns_needed(0.01, mean=0.5, level=0.9, design_effect=2.5)]
    yield [turns_needed(0.05, mean=mean) for mean in (0.0, 1.0)]
    kind, blocks = alike_by([None] * 300, sorted(TURNS.values[:300]), TURNS.inclusion[:300])
    yield kind, blocks and [list(blocks).count(one) for one in range(8)]
    sums = OpenSums()
    for value, share, session in zip(TURNS.values, TURNS.inclusion, TURNS.sessions, strict=True):
        sums.add(value, share, session=session)
    yield sums.estimate(), sums.units, sums.design_effect
    neighbours = Neighbours()
    for value, share in zip(TURNS.values, TURNS.inclusion, strict=True):
        neighbours.add(value, share)
    yield neighbours.alone, neighbours.design_effect
    yield ewma(TURNS.values[:4], TURNS.inclusion[:4], half_life=3)


def with_a_screen() -> Iterator[object]:
    """What a cheap judge adds."""
    judged = np.where(TURNS.judged, TURNS.values, np.nan)
    shares = np.where(TURNS.judged, 0.4 * np.asarray(TURNS.inclusion), np.nan)
    makes = ["small" if number < 150 else "large" for number in range(len(judged))]
    sample = assisted_sample(
        TURNS.screened, TURNS.inclusion, judged, shares, sessions=TURNS.sessions, makes=makes
    )
    yield sample.estimate(), sample.worth
    picked = [number for number, one in enumerate(TURNS.judged) if one][:60]
    labels = [float(PASSED[number]) for number in picked]
    yield corrected_mean(TURNS.values, [TURNS.values[number] for number in picked], labels)
    yield corrected_mean(TURNS.values[:2], TURNS.values[:2], [1.0, 0.0])
    yield corrected_mean(
        TURNS.values,
        [TURNS.values[number] for number in picked],
        labels,
        judged_inclusion=TURNS.inclusion,
        labelled_inclusion=[TURNS.inclusion[number] for number in picked],
        judged_sessions=TURNS.sessions,
        labelled_sessions=[TURNS.sessions[number] for number in picked],
    )


def differences() -> Iterator[object]:
    """Two sets of scores."""
    yield unpaired_difference(TURNS.values, OTHERS.values)
    yield unpaired_difference(
        TURNS.values,
        OTHERS.values,
        first_inclusion=TURNS.inclusion,
        second_inclusion=OTHERS.inclusion,
        first_sessions=TURNS.sessions,
        second_sessions=OTHERS.sessions,
    )
    yield unpaired_difference(TURNS.values, OTHERS.values, first_sessions=TURNS.sessions)
    yield unpaired_difference(TURNS.values, OTHERS.values, second_sessions=OTHERS.sessions)
    yield from (paired_difference(TURNS.values[:few], OTHERS.values[:few]) for few in (2, 4, 12))
    yield paired_difference(TURNS.values[:240], OTHERS.values, inclusion=OTHERS.inclusion)
    yield within_kinds(TURNS.sample, OTHERS.sample, (TURNS.language, OTHERS.language))
    yield holm([0.01, 0.04, 0.03, 0.5]), holm([0.01, 0.04, 0.03], [3.0, 1.0, 1.0])


def where_and_since_when() -> Iterator[object]:
    """Slices, changes, incidents and deploys."""
    attributes = {"language": TURNS.language, "prompt": TURNS.prompt}
    yield find_slices(TURNS.sample, attributes)
    yield find_changes(TURNS.sample, TURNS.times)
    yield find_changes([0.9] * 30 + [0.6] * 30, [DAY / 10 * number for number in range(60)])
    yield [
        find_changes(TURNS.values[:count], [DAY * days * number / count for number in range(count)])
        for count, days in ((60, 10), (120, 13), (240, 17), (240, 40))
    ]
    yield find_incidents(TURNS.sample, TURNS.times, {"language": TURNS.language})
    yield find_deploys(TURNS.sample, np.asarray(TURNS.times), {"prompt": TURNS.prompt}, grown=False)


def of_equal_scores() -> Iterator[object]:
    """Where nothing varies, nothing is divided by what varies."""
    for equal in ([1.0], [0.0, 0.0], [0.5] * 12, [1.0] * 40):
        names = [str(number // 2) for number in range(len(equal))]
        yield weighted_mean(equal), weighted_mean(equal, sessions=names), pass_rate([True] * len(equal))
        yield unpaired_difference(equal, equal, first_sessions=names, second_sessions=names)
        yield (
            paired_difference(equal, equal),
            unpaired_difference(equal, [0.5] * 20),
            alike_by([None], equal, [1.0] * len(equal)),
        )
        assisted = assisted_sample(equal, [1.0] * len(equal), equal, [1.0] * len(equal))
        yield assisted.estimate(), find_changes(equal, [DAY * number for number in range(len(equal))])
        yield find_slices(equal, {"name": names}), cluster([[one, 1.0] for one in equal])


def people() -> Iterator[object]:
    """Agreement, areas and fits."""
    words = [str(value > 0.75) for value in TURNS.screened]
    yield cohen_kappa(list(map(str, PASSED)), words), cohen_kappa(words[:90], words[90:180])
    yield cohen_kappa(list(map(str, PASSED)), words, sessions=TURNS.sessions)
    yield auroc(TURNS.screened, PASSED), auroc(TURNS.screened, PASSED, sessions=TURNS.sessions)
    yield (
        fit_logistic(TURNS.screened, PASSED),
        fit_logistic(TURNS.screened[:60], smoothed_targets(PASSED[:60], 2.0)),
    )
    table = np.asarray([TURNS.screened, TURNS.inclusion]).T
    yield fit_ridge(table, np.asarray(TURNS.values), np.asarray(TURNS.inclusion), 2.0)
    yield np.bincount(folds_of(TURNS.sessions, 5))
    corners = [
        [float(min(number % 6, 4) // 2 == corner) + TURNS.values[number] / 8 for corner in range(3)]
        for number in range(60)
    ]
    yield cluster(corners)[:12]


def one_after_another() -> Iterator[object]:
    """What is asked after every turn."""
    alarm = FallAlarm(target=0.85, smallest_inclusion=0.25)
    sequence = ConfidenceSequence(smallest_inclusion=0.25)
    bounds = []
    for value, share, session in zip(TURNS.values, TURNS.inclusion, TURNS.sessions, strict=True):
        alarm.add(value, share, session=session, usual=0.1, doubt=0.02, design_effect=1.5)
        bounds.append(sequence.add(value, share, session=session))
    yield alarm.raised_at, alarm.evidence, bounds[30], bounds[-1], sequence.mean
    wavering = ChangeAlarm(repeated=40, wavered=3)
    for number in range(60):
        wavering.add(number % 4 != 0, confirmed=number % 8 == 0)
    yield wavering.raised_at, wavering.settled, wavering.tolerated
    yield flip_probability(wrong=9, answers=30, wrong_before=4, before=60)


def gates() -> Iterator[object]:
    """Decisions over cases."""
    earlier = {number: (OTHERS.values[number], OTHERS.values[number + 40]) for number in range(40)}
    heavy = {number: 1.0 + number % 3 for number in range(40)}
    for gate in (
        GateTest(least=0.7, exact=True),
        GateTest(least=0.78, weights=heavy),
        GateTest(earlier=earlier, fall=0.02, weights=heavy, power=0.8),
        GateTest(earlier=earlier, fall=0.1),
        GateTest(earlier=earlier, once=True),
    ):
        for number in range(80):
            gate.add(number % 40, TURNS.values[number])
        yield gate.mean, gate.bar, gate.standard_error, gate.interval(), gate.decision
    yield plan_gate(60, noise=0.2), plan_gate(40, noise=0.05, fall=0.1)
    yield plan_gate(30, noise=0.1, fall=0.1, passes=2, earlier=1)
    yield plan_gate(30, noise=0.1, fall=0.1, passes=2)


def alarms() -> Iterator[object]:
    """Alarms over eight weeks with a fall and a recovery, and turns that were judged late."""
    for alarm, alone in (
        (Alarm(metric="faithfulness", falls_by=0.2, baseline=60, alpha=0.3), False),
        (Alarm(metric="faithfulness", below=0.8, alpha=0.5), True),
        (Alarm(metric="faithfulness", above=0.6, range=(0.0, 2.0), alpha=0.3), False),
    ):
        watch = Watch.start(alarm)
        for number in range(720):
            at, day, late = number * 56 * DAY / 720, number * 56 // 720, number % 50 == 7
            value = (
                OTHERS.values[number % 240] / 4 if 16 <= day < 30 else 1 - TURNS.screened[number % 360] / 8
            )
            one = scored(
                number,
                1.2 - value if alarm.above else value - 0.1 * (day % 7 > 4 and not alone),
                inclusion=1.0 if alone else TURNS.inclusion[number % 360],
                session=None if alone else f"session {number // 3}",
                direction="lower" if alarm.above else "higher",
            )
            one = one.replace(evaluated_at=START + at, happened_at=START + at - 2 * DAY * late)
            if event := watch.take(alarm, one):
                yield replace(event, id="", worst=event.worst[:2])
        yield replace(watch, seen={}, worst=watch.worst[:2], course=watch.course[-2:], fingerprint="")


def labels() -> Iterator[object]:
    """What people's labels say of a judge."""
    turns = [
        scored(number, value, inclusion=share, session=session)
        for number, (value, share, session) in enumerate(
            zip(TURNS.values, TURNS.inclusion, TURNS.sessions, strict=True)
        )
    ]
    draw = Random(5)
    good: list[LabelValue] = [
        "good" if draw.random() < 1.3 * value - 0.2 else "bad" for value in TURNS.values
    ]
    lowest = sorted(range(len(turns)), key=lambda number: TURNS.values[number])
    for known in (range(0, 360, 5), lowest[:90], [*lowest[::3], 1, 4], range(30)):
        said = [
            Label(record_id=f"r{one}", value=good[one], who="Ann", labelled_at=1.0, drawn=0.2)
            for one in known
        ]
        (material,) = collect(turns, [*said, *(replace(one, who="Bo") for one in said[::4])])
        found = assess(material)
        yield found.agreement, found.fit, found.raw_mean, found.corrected_mean, found.to_halve
        picked = drawn_to_label(material.judged, [], chance=chances_by(material.labelled), limit=12)
        yield [(one.record_id, chance) for one, chance in picked]


FILE = Path(__file__).with_name("same_figures.json")
FIGURES = (
    means,
    with_a_screen,
    differences,
    where_and_since_when,
    of_equal_scores,
    people,
    one_after_another,
    gates,
    alarms,
    labels,
)


@pytest.mark.parametrize("figures", FIGURES)
def test_the_same_scores_give_the_same_figures(figures: Callable[[], Iterator[object]]) -> None:
    expected = json.loads(FILE.read_text(encoding="utf-8"))[figures.__name__]
    found = json.loads(json.dumps(told(list(figures()))))
    assert not list(unlike(found, expected)), "if that was meant, write them anew"


if __name__ == "__main__":
    rows = {one.__name__: [json.dumps(told(found)) for found in one()] for one in FIGURES}
    parts = [f'  "{name}": [\n    ' + ",\n    ".join(found) + "\n  ]" for name, found in rows.items()]
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
