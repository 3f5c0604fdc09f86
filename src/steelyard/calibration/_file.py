"""A calibration and its file: which maps there are, made from what, under which version."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar, get_args

from steelyard._internal.files import replace_file
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.calibration._collect import Judged, Key, Signal, judged_of
from steelyard.calibration._maps import MAPS, CalibrationMap, Fit
from steelyard.errors import ConfigurationError
from steelyard.scores import Evaluation, Score

_SCHEMA = 1
# The path may be that of any file; this much of it is read.
_LARGEST = 16 * 1024 * 1024
_Kind = TypeVar("_Kind", bound="Calibration")
_log = SafeLogger("steelyard.calibration")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One map, and what it was made from."""

    key: Key
    signal: Signal
    map: CalibrationMap
    made_from: Mapping[str, Any]

    @classmethod
    def of(cls, key: Key, made: Fit) -> Self:
        made_from = {
            "labels": made.n,
            "good": made.good,
            "auroc": [made.area.value, made.area.low, made.area.high],
            "calibration_error": {"before": made.error_before, "after": made.error_after},
            "squared_error": {"before": made.squared_before, "after": made.squared_after},
        }
        return cls(key=key, signal=made.signal, map=made.map, made_from=made_from)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.key._asdict(),
            "signal": self.signal,
            "method": self.map.method,
            "map": asdict(self.map),
            "made_from": self.made_from,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        key = Key(*(str(data[name]) for name in Key._fields))
        if data["signal"] not in get_args(Signal):
            raise ValueError(f"there is no signal {str(data['signal'])[:40]!r}")
        if data["method"] not in MAPS:
            raise ValueError(f"there is no method {str(data['method'])[:40]!r}")
        # Numbers come as they are, or as lists of them.
        numbers = {name: tuple(one) if isinstance(one, list) else one for name, one in data["map"].items()}
        made = MAPS[data["method"]](**numbers)
        return cls(key=key, signal=data["signal"], map=made, made_from=dict(data.get("made_from") or {}))


@dataclass(frozen=True)
class Calibration:
    """Maps for metrics and judges, made from people's labels.

    A map serves only scores of the same metric by the same judge in the same prompt version: all others stay
    without a calibrated value, which is said once in the log.
    """

    entries: tuple[_Entry, ...]
    made_at: float = 0.0
    """When it was made, as Unix time."""
    _warn: WarnOnce = field(default_factory=lambda: WarnOnce(_log), compare=False, repr=False)

    @classmethod
    def of(cls, fits: Mapping[Key, Fit]) -> Self:
        """A calibration out of maps that were just made.

        Raises:
            ConfigurationError: If there are none.
        """
        if not fits:
            raise ConfigurationError(
                "there is nothing to calibrate with: no metric and judge has a map; "
                "label more turns, then calibrate again"
            )
        return cls(tuple(_Entry.of(key, one) for key, one in sorted(fits.items())), time.time())

    @property
    def version(self) -> str:
        """12 characters of a hash over the maps: it stands on every Score that they served."""
        # Without `made_at`: the same maps have the same version, whenever they were made.
        text = json.dumps([entry.to_dict() for entry in self.entries], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The metrics and judges that there are maps for."""
        return tuple(entry.key for entry in self.entries)

    def chance(self, key: Key, judged: Judged) -> float | None:
        """The probability that people call a judged turn good; None if there is no map for it."""
        for entry in self.entries:
            if entry.key == key:
                number = judged.signal(entry.signal)
                return None if number is None else entry.map(number)
        return None

    def apply(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation with calibrated values beside the raw ones, if there are maps. Never raises."""
        scores = tuple(self._calibrated(evaluation.record_id, score) for score in evaluation.scores)
        return evaluation if scores == evaluation.scores else evaluation.replace(scores=scores)

    def _calibrated(self, record_id: str, score: Score) -> Score:
        judged = judged_of(record_id, score)
        if judged is None or score.provenance is None:
            return score
        key = Key(score.metric, score.provenance.judge, score.provenance.prompt_version)
        chance = self.chance(key, judged)
        if chance is None:
            if key not in self.keys and any(entry.key.metric == key.metric for entry in self.entries):
                self._warn(
                    key,
                    "the calibration of %r was not made for judge %r with prompt version %r: these scores "
                    "stay uncalibrated; label some and run `steelyard calibrate`",
                    *key,
                )
            return score
        return replace(score, calibrated_value=chance, calibration=self.version)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which is replaced as a whole."""
        data = {
            "steelyard_calibration": _SCHEMA,
            "version": self.version,
            "made_at": self.made_at,
            "maps": [entry.to_dict() for entry in self.entries],
        }
        replace_file(path, json.dumps(data, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote.

        Raises:
            ConfigurationError: If it is not there, not a calibration, edited, or of a newer version.
        """
        try:
            with Path(path).open("rb") as file:
                text = file.read(_LARGEST)
        except OSError as error:
            raise ConfigurationError(
                f"calibration {os.fspath(path)!r}: {error.strerror}; "
                "name the file that `steelyard calibrate` wrote"
            ) from None
        try:
            return _read(cls, json.loads(text))
        except ConfigurationError as error:
            raise ConfigurationError(
                f"calibration {os.fspath(path)!r}: {error}; make it again with `steelyard calibrate`"
            ) from None
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
            raise ConfigurationError(
                f"{os.fspath(path)!r} is not a calibration: {why}; make one with `steelyard calibrate`"
            ) from None

    def __repr__(self) -> str:
        return f"Calibration({self.version!r}, {len(self.entries)} maps)"


def _read(kind: type[_Kind], data: Any) -> _Kind:
    if not isinstance(data, dict) or "steelyard_calibration" not in data:
        raise ValueError("it has no 'steelyard_calibration'")
    if data["steelyard_calibration"] != _SCHEMA:
        raise ConfigurationError(
            f"it has schema {str(data['steelyard_calibration'])[:20]}, this version reads {_SCHEMA}; "
            "calibrate again, or upgrade steelyard"
        )
    entries: Sequence[_Entry] = [_Entry.from_dict(entry) for entry in data["maps"]]
    found = kind(tuple(entries), float(data["made_at"]))
    if not entries or found.version != data["version"]:
        raise ConfigurationError("its maps were edited: they are not those of its version; calibrate again")
    return found
