"""Which probes a judge answers reliably, and the file that remembers it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_words
from steelyard.probing import Probe, ProbeSet
from steelyard.questions import Judge

_SCHEMA = 2
_LARGEST = 1024 * 1024
_log = SafeLogger("steelyard.online")


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What was learned of one judge."""

    judge: str
    """Its name."""
    prompt_version: str
    """Version of its wording."""
    probe_set: str
    """Hash of the probe set."""
    probes: tuple[str, ...]
    """Ids of the probes that it answered rightly every time."""
    repeated: int
    """Answers to probes that it had answered rightly until then."""
    wavered: int
    """Of those, wrong ones: what chance does."""

    def is_of(self, judge: Judge, probes: ProbeSet) -> bool:
        """Whether it was learned of this judge, with these probes."""
        there = {probe.id for probe in probes.probes}
        return (
            (self.judge, self.prompt_version, self.probe_set)
            == (judge.name, judge.prompt_version, probes.sha256)
        ) and there.issuperset(self.probes)

    def save(self, path: str | Path) -> None:
        """Write it down; where that fails it is learned anew after a restart, and said."""
        data = {"steelyard_canaries": _SCHEMA, **self.__dict__}
        place = Path(path)
        try:
            draft = place.with_name(f".{place.name}.{os.getpid()}")
            draft.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
            draft.replace(place)
        except OSError as error:
            _log.warning("canaries cannot be kept in %r: %s", str(path), error_words(error))

    @classmethod
    def load(cls, path: str | Path) -> Self | None:
        """What was written down; None where nothing was, or where it cannot be read, which is said."""
        try:
            with Path(path).open("rb") as file:
                data = json.loads(file.read(_LARGEST))
            if data.pop("steelyard_canaries") != _SCHEMA:
                raise ValueError("another schema")
            found = cls(**{**data, "probes": tuple(map(str, data["probes"]))})
            if not 0 <= found.wavered <= found.repeated:
                raise ValueError("wavered is out of range")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            _log.warning("%r holds no canaries (%s); they are learned anew", str(path), type(error).__name__)
            return None
        return found


def candidates(probes: Sequence[Probe], count: int) -> list[Probe]:
    """Probes to try: as many true as false ones, of every kind in turn, none that speaks to a judge."""
    found: list[Probe] = []
    for expected in (True, False):
        by_kind: dict[str, list[Probe]] = {}
        for probe in sorted(probes, key=_drawn):
            if probe.expected is expected and not probe.address and probe.asks == "supported":
                by_kind.setdefault(probe.kind, []).append(probe)
        queues = list(by_kind.values())
        half = [one[place] for place in range(max(map(len, queues))) for one in queues if place < len(one)]
        found += half[: (count + expected) // 2]
    return found


def _drawn(probe: Probe) -> bytes:
    return hashlib.sha256(probe.id.encode()).digest()
