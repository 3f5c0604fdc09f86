"""What an alarm has to tell, and in which forms."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from steelyard._internal.text import counted, printable, utc
from steelyard.scores import Provenance

Kind = Literal["fell", "recovered", "silent", "test"]
# Slack refuses sections of more than 3,000 characters.
_LONGEST = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A mean with its 95 % interval, in the metric's own values."""

    value: float
    """The weighted mean."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end."""
    turns: int
    """How many turns it rests on."""

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}, {counted(self.turns, 'turn')})"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorstTurn:
    """A turn to look at first."""

    record_id: str
    """Its id."""
    trace_id: str
    """Its trace; empty if it has none."""
    value: float
    """What it scored."""
    quality: float
    """The same in 0..1, of which more is better."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmEvent:
    """Something that was reported, or is to be."""

    alarm: str
    """The alarm's name."""
    kind: Kind
    """`fell`, `recovered`, `silent` where no turn was scored, or `test`."""
    metric: str
    """The metric."""
    at: float
    """When it was noticed, as Unix time."""
    slice: str = ""
    """The turns watched; empty for all."""
    since: float | None = None
    """Since when the mean is worse than the target, as far as can be told; the fall may have come later."""
    target: float | None = None
    """The mean it was compared with."""
    learnt: str = ""
    """With `falls_by`: the mean that was taken for normal, and the turns it was learnt from."""
    before: Range | None = None
    """The mean of the turns before."""
    now: Range | None = None
    """The mean of the turns since."""
    late: int = 0
    """Turns that were judged late: they count among those before, on the day they happened."""
    by_order: float = 0.0
    """If no turn says its session: as many neighbours were taken to tell as much as one independent turn."""
    alpha: float = 0.05
    """The probability with which this is a false alarm."""
    judge_before: str = ""
    """How the scores before were made."""
    judge_now: str = ""
    """How the last one was made."""
    canaries: str = ""
    """What probes with a known answer say of the judge; empty where none are asked."""
    people: str = ""
    """What people's labels say of the metric; empty where nobody looks."""
    worst: tuple[WorstTurn, ...] = ()
    """The worst turns since, worst first."""
    link: str = ""
    """How to reach a turn."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The same in every form and at every attempt to tell it."""

    @property
    def judge_changed(self) -> bool:
        """Whether judge, prompt, metric or mode changed meanwhile: the fall may be the judge's."""
        return bool(self.judge_before) and self.judge_before != self.judge_now

    @property
    def title(self) -> str:
        """One line."""
        what = {
            "fell": f"{self.metric} has fallen",
            "recovered": f"{self.metric} has recovered",
            "silent": f"no turn was scored for {self.metric}",
            "test": "this is a test; nothing has fallen",
        }[self.kind]
        return printable(f"{what} ({self.slice})" if self.slice else what)

    @property
    def lines(self) -> list[str]:
        """What there is to know, line by line."""
        lines = []
        if self.since is not None:
            since = f"since {time_words(self.since)}"
            # Good and bad luck before a fall are in this mean: the day of the fall is not known so well.
            worse = f"worse than {self.target or 0.0:.3f} on average {since}; the fall may have come later"
            lines.append(worse if self.kind == "fell" else since)
        if self.kind in ("fell", "recovered"):
            lines += self._about_means()
        lines += [f"worst: {turn.value:.3f} {self.link_to(turn)}" for turn in self.worst]
        return [printable(line) for line in lines]

    def _about_means(self) -> list[str]:
        order = f"no turn says which session it is of; {self.by_order:.1f} neighbours were counted as one"
        rate = f"a false alarm with at most {self.alpha:.0%}"
        rate += ", if long conversations do not come mixed" if self.by_order else ""
        changed = f"the judge changed meanwhile: {self.judge_before} -> {self.judge_now}"
        told = {
            f"now {self.now}": self.now,
            f"before {self.before}": self.before,
            f"compared with {self.target or 0.0:.3f}; {rate}": True,
            f"what is normal was learnt from turns that scored {self.learnt}": self.learnt,
            f"{counted(self.late, 'turn')} judged late counted on the day they happened, not here": self.late,
            order: self.by_order > 0,
            changed if self.judge_changed else "the judge is the same as before": True,
            self.canaries: self.canaries,
            f"by people's labels: {self.people}": self.people,
        }
        return [line for line, there in told.items() if there]

    @property
    def text(self) -> str:
        """All of it as text."""
        return "\n".join([f"{self.title}: {printable(self.alarm)}", *self.lines])

    def link_to(self, turn: WorstTurn) -> str:
        """Where a turn can be looked at; its id where nobody said."""
        # A link with an empty id would lead to a page that says that there is no such turn.
        if not self.link or ("{trace_id}" in self.link and not turn.trace_id):
            return f"turn {turn.record_id}"
        return self.link.replace("{trace_id}", turn.trace_id).replace("{record_id}", turn.record_id)

    def to_dict(self) -> dict[str, Any]:
        """The generic JSON form."""
        plain = asdict(self)
        # Each turn has the whole link below.
        plain.pop("link")
        plain["worst"] = [
            {
                "record_id": turn.record_id,
                "trace_id": turn.trace_id,
                "value": turn.value,
                "link": self.link_to(turn),
            }
            for turn in self.worst
        ]
        return {
            "source": "steelyard",
            **plain,
            "at": time_words(self.at),
            "since": None if self.since is None else time_words(self.since),
            "judge_changed": self.judge_changed,
            "text": self.text,
        }

    def to_slack(self) -> Mapping[str, Any]:
        """The form of Slack's incoming webhooks."""
        mark = {"fell": ":red_circle:", "recovered": ":large_green_circle:"}.get(self.kind, ":white_circle:")
        # Escaped at last: judged text is in it, and may try to mention everybody.
        body = "\n".join([f"*{_escaped(self.title)}*", *map(_escaped, [printable(self.alarm), *self.lines])])
        section = {"type": "section", "text": {"type": "mrkdwn", "text": f"{mark} {body}"[:_LONGEST]}}
        return {"text": _escaped(self.title), "blocks": [section]}


def _escaped(text: str) -> str:
    """Slack's own escape of what would be a mention, a channel or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def time_words(at: float) -> str:
    """A Unix time in UTC."""
    return utc(at, "%Y-%m-%dT%H:%M:%SZ")


def how_made(provenance: Provenance | None) -> str:
    """How a score was made, in one line; two that differ are not comparable."""
    if provenance is None:
        return ""
    parts = [provenance.judge, f"prompt {provenance.prompt_version}", f"metric {provenance.metric_version}"]
    return ", ".join([*parts, f"fuse {provenance.fuse}", *(["calibrated"] if provenance.calibrated else [])])
