"""Under which condition an alarm keeps its rate of false alarms."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.alarms import Alarm
from steelyard.alarms._watch import Watch
from steelyard.scores import Evaluation, Score


@pytest.mark.parametrize("session", ["", "own {}"])
def test_an_alarm_without_sessions_says_what_its_rate_depends_on(session: str) -> None:
    draw, alarm = np.random.default_rng(4), Alarm(metric="faithfulness", below=0.9)
    watch, told = Watch.start(alarm), []
    for number, value in enumerate((draw.random(400) < 0.5).astype(float).tolist()):
        score = Score(metric="faithfulness", status="scored", value=value)
        turn = Evaluation(
            record_id=str(number),
            scores=(score,),
            session=session.format(number),
            happened_at=60.0 * number,
            evaluated_at=60.0 * number,
        )
        told.append(watch.take(alarm, turn))
    event = next(one for one in told if one is not None)
    said = ("no turn says which session it is of", "with at most 5%, if long conversations do not come mixed")
    assert [one in event.text for one in said] == [not session] * 2
