"""A Monitor with a calibration: every sink has the raw and the calibrated value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibration.pairs import labelled
from online.helpers import FAITHFUL, kind_judge
from steelyard.calibration import Calibration, Fit, Key, fit
from steelyard.errors import ConfigurationError
from steelyard.online import Monitor
from steelyard.record import Context, Record
from steelyard.sinks import JSONLSink, Sink, SQLiteSink, read_evaluations, read_jsonl

TURN = Record(question="q?", contexts=(Context(text="Passage."),), answer="Claim here.")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = fit(labelled(150, shift=2.5))
    assert isinstance(made, Fit)
    path = tmp_path / "calibration.json"
    Calibration.of({Key("faithfulness", "scripted", "test"): made}).save(path)
    return path


def test_sinks_have_the_raw_and_the_calibrated_value(file: Path, tmp_path: Path) -> None:
    sinks: list[Sink] = [SQLiteSink(tmp_path / "r.db"), JSONLSink(tmp_path / "r.jsonl")]
    with_file = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=sinks, calibration=file)
    with_file.submit(TURN)
    assert with_file.flush(60) == 0
    with_file.close()
    for stored in (*read_evaluations(tmp_path / "r.db"), *read_jsonl(tmp_path / "r.jsonl")):
        score = stored["faithfulness"]
        assert (score.value, score.hard_value) == (0.9, 1.0)
        assert score.calibrated_value is not None and 0.5 < score.calibrated_value < 1.0
        assert score.calibration == json.loads(file.read_text())["version"]


def test_the_setting_names_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CALIBRATION", str(file))
    assert Monitor(sinks=[]).options.calibration == Calibration.load(file)
    monkeypatch.setenv("STEELYARD_CALIBRATION", str(file.with_name("nowhere.json")))
    with pytest.raises(ConfigurationError, match=r"nowhere\.json"):
        Monitor(sinks=[])
    with pytest.raises(ConfigurationError, match="must be a file or a Calibration"):
        Monitor(sinks=[], calibration=3)  # type: ignore[arg-type]
