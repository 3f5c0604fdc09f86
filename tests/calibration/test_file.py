from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration.pairs import evaluation, labelled
from steelyard.calibration import Calibration, Fit, FittedScreen, Key, fit
from steelyard.calibration._screens import ScreenMap
from steelyard.errors import ConfigurationError
from steelyard.scores import evaluation_from_json, evaluation_to_json

KEY = Key("faithfulness", "local-lexical", "1")


@pytest.fixture
def calibration() -> Calibration:
    found = fit(labelled(150, shift=2.5))
    assert isinstance(found, Fit)
    return Calibration.of({KEY: found})


def test_a_score_carries_the_raw_and_the_calibrated_value(calibration: Calibration) -> None:
    before = evaluation(value=0.7)
    score = calibration.apply(before)["faithfulness"]
    assert score.value == 0.7
    assert score.calibrated_value is not None and score.calibrated_value != score.value
    assert score.calibration == calibration.version
    assert before["faithfulness"].calibrated_value is None


def test_a_score_without_the_number_its_map_reads_stays_as_it_is_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = fit(labelled(150, shift=2.5))
    assert isinstance(found, Fit)
    calibration = Calibration.of({KEY: replace(found, signal="worst_verdict")})
    assert calibration.apply(evaluation(chances=()))["faithfulness"].calibrated_value is None
    assert not caplog.records


def test_calibrated_values_survive_the_json_form(calibration: Calibration) -> None:
    found = calibration.apply(evaluation(value=0.7))
    again = evaluation_from_json(evaluation_to_json(found))
    assert again["faithfulness"].calibrated_value == found["faithfulness"].calibrated_value
    assert again["faithfulness"].calibration == calibration.version


@pytest.mark.parametrize("change", [{"judge": "chat:other"}, {"prompt_version": "2"}])
def test_scores_of_another_judge_or_wording_stay_uncalibrated_and_that_is_said_once(
    calibration: Calibration, change: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert calibration.apply(evaluation(**change))["faithfulness"].calibrated_value is None  # type: ignore[arg-type]
    assert len(caplog.records) == 1
    assert "was not made for judge" in caplog.text


def test_other_metrics_stay_uncalibrated_without_a_word(
    calibration: Calibration, caplog: pytest.LogCaptureFixture
) -> None:
    found = calibration.apply(evaluation(metric="answer_relevancy"))
    assert found["answer_relevancy"].calibrated_value is None
    assert not caplog.records


def test_a_file_is_read_back_as_it_was_written(calibration: Calibration, tmp_path: Path) -> None:
    calibration.save(tmp_path / "c.json")
    again = Calibration.load(tmp_path / "c.json")
    assert again == calibration and again.version == calibration.version
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


def edited(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_file_says_what_each_map_was_made_from(tmp_path: Path) -> None:
    found = fit(labelled(200))
    assert isinstance(found, Fit) and found.area is not None
    Calibration.of({KEY: found}).save(tmp_path / "c.json")
    (kept,) = json.loads((tmp_path / "c.json").read_text())["maps"]
    assert kept["made_from"] == {
        "labels": 200,
        "good": found.good,
        "auroc": [found.area.value, found.area.low, found.area.high],
        "calibration_error": {"before": found.error_before, "after": found.error_after},
        "squared_error": {"before": found.squared_before, "after": found.squared_after},
    }
    assert found.error_after < found.error_before


def test_an_edited_file_is_refused_by_name(calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    calibration.save(path)
    path.write_text(path.read_text().replace('"slope": ', '"slope": 1'))
    with pytest.raises(ConfigurationError, match="were edited"):
        Calibration.load(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a calibration"),
        ("[]", "no 'steelyard_calibration'"),
        ('{"a": 1}', "no 'steelyard_calibration'"),
        ('{"steelyard_calibration": 2}', "schema 2"),
        ('{"steelyard_calibration": 1}', "no 'maps'"),
        ('{"steelyard_calibration": 1, "maps": [], "made_at": 1, "version": ""}', "were edited"),
        ("[" * 100_000, "is not a calibration"),
    ],
)
def test_what_is_not_a_calibration_is_refused_by_name(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=why) as caught:
        Calibration.load(path)
    assert "c.json" in str(caught.value)


def test_a_map_that_is_unknown_or_falls_is_refused(calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    calibration.save(path)
    (entry,) = json.loads(path.read_text())["maps"]
    for name in ("signal", "method"):
        edited(path, maps=[{**entry, name: "other"}])
        with pytest.raises(ConfigurationError, match=f"there is no {name} 'other'"):
            Calibration.load(path)
    edited(path, maps=[{**entry, "map": {"slope": -1.0, "offset": 0.0}}])
    with pytest.raises(ConfigurationError, match="slope not negative"):
        Calibration.load(path)
    edited(path, maps=[{**entry, "method": "isotonic", "map": {"values": [0, 1], "chances": [0.9, 0.1]}}])
    with pytest.raises(ConfigurationError, match="never fall"):
        Calibration.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere.json"):
        Calibration.load(tmp_path / "nowhere.json")


def test_there_is_no_calibration_without_maps() -> None:
    with pytest.raises(ConfigurationError, match="nothing to calibrate"):
        Calibration.of({})


def test_a_screen_s_file_is_read_as_it_was_written_and_of_another_version_refused(tmp_path: Path) -> None:
    made = ScreenMap(
        names=("value",), centre=(0.5,), slopes=(0.5,), level=0.5, turns=200, left=0.0, left_by_value=0.1
    )
    screen = FittedScreen(screen=("cheap", "1"), judge=("dear", "2"), maps={"faithfulness": made})
    screen.save(path := tmp_path / "screen.json")
    assert FittedScreen.load(path) == screen
    text = path.read_text()
    for there, other in (('"steelyard_screen": 1', '"steelyard_screen": 2'), (screen.version, "0" * 12)):
        assert there in text
        path.write_text(text.replace(there, other))
        with pytest.raises(ConfigurationError, match="of another version"):
            FittedScreen.load(path)
