"""Two processes at a spool file, dying and coming back while time passes; a model says what becomes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from online.helpers import Clock
from online.queue.spools import check, opened, result, spooled
from steelyard.online.queue._protocol import DeadLetter, Fate
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._turns import Leased, Seen, Selected, Undelivered, result_to_json, turn_to_json
from steelyard.scores import Score

LEASES = (10.0, 30.0)
LONGEST = 31.0
MOST, ATTEMPTS, KEPT = 2_600, 2, 6
SINKS = ("one", "other")


@dataclass
class Turn:
    """What the model knows of a turn."""

    seq: int
    size: int
    turn: Selected
    state: Literal["waiting", "leased", "evaluated", "dead", "moved"] = "waiting"
    lease: str | None = None
    until: float = 0.0
    due: float = 0.0
    attempts: int = 0
    postponed: int = 0
    cause: str = ""
    body: bool = True


@dataclass
class Result:
    """And of its result: for which sinks it is kept, and by whom; for that of no name, as a whole."""

    name: str
    size: int
    parked: dict[str, tuple[str | None, float]]


def sink_of(held: Leased | Undelivered) -> str:
    return held.sink if isinstance(held, Undelivered) else ""


class Model:
    """The spool as a few dictionaries, and the real one beside it."""

    def __init__(self, path: Path, seed: int) -> None:
        self.draw, self.path, self.clock = Random(seed), path, Clock()
        self.spools = [self.open(seconds) for seconds in LEASES]
        self.turns: dict[str, Turn] = {}
        self.results: dict[int, Result] = {}
        self.held: list[Leased | Undelivered] = []
        self.gone: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.accepted = 0
        self.last = 0

    def open(self, seconds: float) -> Spool:
        return opened(
            self.path,
            clock=self.clock,
            lease_seconds=seconds,
            max_attempts=ATTEMPTS,
            max_bytes=MOST,
            keep=KEPT,
        )

    def some(self) -> Spool:
        return self.draw.choice(self.spools)

    def names(self) -> dict[int, str]:
        return {one.seq: name for name, one in self.turns.items()}

    def bytes(self) -> int:
        return sum(one.size for one in self.turns.values() if one.state in ("waiting", "leased"))

    def result_bytes(self) -> int:
        return sum(one.size for one in self.results.values())

    def end(self, one: Turn, state: Literal["evaluated", "dead", "moved"], cause: str = "") -> None:
        dead = sum(other.size for other in self.turns.values() if other.state == "dead" and other.body)
        one.body = state == "dead" and dead + one.size <= MOST / 10
        one.state, one.lease, one.cause = state, None, cause
        self.gone[cause or state] += 1
        self.accepted -= state == "moved"

    def over(self, until: float) -> bool:
        return until <= self.clock.now or until > self.clock.now + LONGEST

    def pick(self, kind: type[Leased] | type[Undelivered]) -> Leased | Undelivered | None:
        """Something that was handed out once; its lease may be lost meanwhile."""
        found = [one for one in self.held if isinstance(one, kind)]
        if self.draw.random() < 0.5:  # those that were parked for a sink are few
            found = [one for one in found if isinstance(one, Undelivered) and one.sink] or found
        wanted = self.draw.random() < 0.6
        some = [one for one in found if self.holds(one) == wanted and self.is_open(one)] or found
        return self.draw.choice(some) if some else None

    def is_open(self, one: Leased | Undelivered) -> bool:
        """Whether there is anything left to be done about it, by whoever holds it now."""
        if isinstance(one, Leased):
            name = self.names().get(one.seq)
            return name is not None and self.turns[name].state == "leased"
        return one.seq in self.results and one.sink in self.results[one.seq].parked

    def holds(self, one: Leased | Undelivered) -> bool:
        of = self.turn_of(one) if isinstance(one, Leased) else self.result_of(one)
        return of is not None

    def turn_of(self, leased: Leased) -> Turn | None:
        """The turn, if its lease still holds."""
        name = self.names().get(leased.seq)
        one = self.turns[name] if name else None
        return one if one and one.state == "leased" and one.lease == leased.lease else None

    def result_of(self, held: Leased | Undelivered) -> Result | None:
        one = self.results.get(held.seq)
        return one if one and one.parked.get(sink_of(held), (None, 0.0))[0] == held.lease else None

    # What can be done.

    def put(self) -> None:
        name = self.draw.choice([*self.turns, *map(str, range(25))])
        turn = spooled(name)
        size = len(turn_to_json(turn) or b"")
        room = MOST - self.bytes() - self.result_bytes()
        expected = "full" if size > room else "known" if name in self.turns else "new"
        assert self.some().put([turn]) == [expected]
        self.met[expected] += 1
        self.last += expected != "full"  # SQLite's numbers count what is ignored too
        if expected == "new":
            self.turns[name] = Turn(seq=self.last, size=size, turn=turn)
            self.accepted += 1

    def lease(self) -> None:
        """Turns alone, or what a dead process left before them."""
        spool, most = self.some(), self.draw.randint(1, 3)
        if self.draw.random() < 0.5:
            self.leased(spool, spool.lease_turns(most), most)
            return
        found = spool.lease(most)
        left = self.left("", most)
        self.take(spool, [one for one in found[: len(left)] if isinstance(one, Undelivered)], left, "")
        turns = [one for one in found[len(left) :] if isinstance(one, Leased)]
        assert len(turns) == len(found) - len(left)
        self.leased(spool, turns, most - len(left))

    def leased(self, spool: Spool, found: list[Leased], most: int) -> None:
        now = self.clock.now
        for one in self.turns.values():
            if one.state == "leased" and self.over(one.until):
                one.state, one.lease = "waiting", None
        due = [one for one in self.turns.values() if one.state == "waiting"]
        due = [one for one in due if one.due <= now or one.due > now + 3600]
        due = sorted(due, key=lambda one: one.seq)[:most]
        if self.result_bytes() >= MOST:
            self.met["full of results"] += 1
            due = []
        for one in due:
            one.state, one.until, one.attempts = "leased", now + spool.lease_seconds, one.attempts + 1
            if one.attempts > ATTEMPTS:
                self.end(one, "dead", "poison")
        fit = [one for one in due if one.state == "leased"]
        assert [(one.seq, one.postponed) for one in found] == [(one.seq, one.postponed) for one in fit]
        assert [one.turn for one in found] == [one.turn for one in fit]
        for leased, one in zip(found, fit, strict=True):
            one.lease = leased.lease
        self.held += found

    def finish(self) -> None:
        leased, spool = self.pick(Leased), self.some()
        if not isinstance(leased, Leased):
            return
        one = self.turn_of(leased)
        lack = Score.failed("m", cause="timeout", explanation="x" * self.draw.choice([0, 700]))
        body = replace(result(leased), scores=(lack,))
        done = spool.finish(leased, body)
        assert (done is not None) == (one is not None)
        if one and done:
            self.end(one, "evaluated")
            until = self.clock.now + spool.lease_seconds
            self.results[one.seq] = Result(
                body.record_id, len(result_to_json(body)), {"": (leased.lease, until)}
            )
            self.held.append(done)

    def screened(self, leased: Leased) -> Leased:
        """Now and then with what a screen said, which is kept where it fits."""
        said = Score.failed("m", cause="timeout", explanation="x" * self.draw.choice([0, 900]))
        seen = replace(result(leased), record=leased.turn.record, screen=(said,))
        turn = replace(leased.turn, seen=Seen(evaluation=seen, rate=0.25))
        return replace(leased, turn=turn) if self.draw.random() < 0.5 else leased

    def give_back(self, one: Turn, leased: Leased) -> None:
        one.state, one.lease, one.attempts = "waiting", None, one.attempts - 1
        size = len(turn_to_json(leased.turn) or b"")
        if leased.turn.seen and self.bytes() + self.result_bytes() + size - one.size <= MOST:
            one.size, one.turn = size, leased.turn

    def postpone(self) -> None:
        leased, seconds = self.pick(Leased), self.draw.choice([0.0, 5.0, 60.0, 9_999.0])
        if isinstance(leased, Leased):
            leased, one = self.screened(leased), self.turn_of(leased)
            assert self.some().postpone(leased, seconds) == (one is not None)
            if one:
                self.give_back(one, leased)
                one.postponed, one.due = one.postponed + 1, self.clock.now + min(seconds, 3600)

    def give_up(self) -> None:
        leased = self.pick(Leased)
        if isinstance(leased, Leased):
            one = self.turn_of(leased)
            assert self.some().dead_letter(leased, "unreadable") == (one is not None)
            if one:
                self.end(one, "dead", "unreadable")

    def moved(self) -> None:
        leased = self.pick(Leased)
        if isinstance(leased, Leased) and self.draw.random() < 0.3:
            one = self.turn_of(leased)
            self.some().moved([leased])
            if one:
                self.end(one, "moved")

    def release(self) -> None:
        held = self.pick(self.draw.choice([Leased, Undelivered]))
        if held is None:
            return
        held = self.screened(held) if isinstance(held, Leased) else held
        self.some().release([held])
        if isinstance(held, Leased) and (one := self.turn_of(held)):
            self.give_back(one, held)
        elif of := self.result_of(held):
            of.parked[sink_of(held)] = (held.lease, 0.0)

    def renew(self) -> None:
        held, spool = self.pick(self.draw.choice([Leased, Undelivered])), self.some()
        if held is None:
            return
        spool.renew([held])
        until = self.clock.now + spool.lease_seconds
        if isinstance(held, Leased):
            if one := self.turn_of(held):
                one.until = until
        elif of := self.result_of(held):
            of.parked[held.sink] = (held.lease, until)

    def deliver(self) -> None:
        held = self.pick(Undelivered)
        if isinstance(held, Undelivered):
            self.some().delivered([held])
            if of := self.result_of(held):
                del of.parked[held.sink]
                if not of.parked:
                    del self.results[held.seq]

    def park(self) -> None:
        held = self.pick(Undelivered)
        if isinstance(held, Undelivered):
            sinks = self.draw.sample(SINKS, self.draw.randint(1, 2))
            self.some().park([(held, sinks)])
            if of := self.result_of(held):
                if held.sink:
                    of.parked[held.sink] = (held.lease, 0.0)
                else:
                    of.parked = dict.fromkeys(sinks, (None, 0.0))

    def move(self) -> None:
        sink, to = self.draw.choice(SINKS), self.draw.choice([*SINKS, ""])
        waiting = [seq for seq, one in self.results.items() if sink in one.parked]
        if sink == to or self.draw.random() < 0.7:
            return
        assert self.some().move(sink, to) == len(waiting)
        for seq in waiting:
            parked = self.results[seq].parked
            del parked[sink]
            if to:
                parked.setdefault(to, (None, 0.0))
            if not parked:
                del self.results[seq]

    def take_results(self) -> None:
        spool, most, sink = self.some(), self.draw.randint(1, 3), self.draw.choice([*SINKS, ""])
        left = self.left(sink, most)
        self.take(spool, spool.parked(sink, most), left, sink)

    def left(self, sink: str, most: int) -> list[int]:
        """Results that nobody holds as a whole, or for a sink; the oldest first."""
        until = {seq: one.parked[sink][1] for seq, one in self.results.items() if sink in one.parked}
        return sorted(seq for seq, end in until.items() if self.over(end))[:most]

    def take(self, spool: Spool, found: list[Undelivered], left: list[int], sink: str) -> None:
        assert [(one.seq, one.sink) for one in found] == [(seq, sink) for seq in left]
        until = self.clock.now + spool.lease_seconds
        for one in found:
            of = self.results[one.seq]
            assert one.evaluation.record_id == of.name
            of.parked[sink] = (one.lease, until)
        self.held += found

    def decide(self) -> None:
        dead = sorted(
            (one.seq, name) for name, one in self.turns.items() if one.state == "dead" and one.body
        )[:2]
        fates: dict[str, Fate] = {name: self.draw.choice(["keep", "drop", "replay"]) for _, name in dead}
        right = [(name, self.turns[name].cause, self.turns[name].attempts) for _, name in dead]

        def fate(letter: DeadLetter) -> Fate:
            return fates[letter.record_id]

        found = self.some().dead_letters(fate, 2)
        assert [(one.record_id, one.cause, one.attempts) for one in found] == right
        for _, name in dead:
            one = self.turns[name]
            if fates[name] == "drop":
                one.body = False
            elif fates[name] == "replay":
                self.gone[one.cause] -= 1
                self.turns[name] = Turn(seq=one.seq, size=one.size, turn=one.turn)

    def prune(self) -> None:
        if self.draw.random() < 0.3:
            self.some().prune()
            latest = max((one.seq for one in self.turns.values()), default=0) - KEPT
            for name, one in list(self.turns.items()):
                if one.seq <= latest and one.state in ("evaluated", "dead", "moved"):
                    del self.turns[name]

    def restart(self) -> None:
        place = self.draw.randrange(len(LEASES))
        self.spools[place].close()
        self.spools[place] = self.open(LEASES[place])

    def wait(self) -> None:
        self.clock.now += self.draw.choice([1.0, 9.0, 10.0, 30.0, 61.0])
        if self.draw.random() < 0.15:
            self.clock.now = 1.0  # the machine started again

    def check(self) -> None:
        """The ledger and the rows are the model's."""
        counts = check(self.some())
        states = Counter(one.state for one in self.turns.values())
        assert counts.pending == states["waiting"] + states["leased"]
        assert (counts.accepted, counts.evaluated) == (self.accepted, self.gone["evaluated"])
        assert counts.dead == {cause: n for cause in ("poison", "unreadable") if (n := self.gone[cause])}
        assert (counts.undelivered, counts.bytes) == (len(self.results), self.bytes())
        assert counts.waiting == Counter(sink for one in self.results.values() for sink in one.parked if sink)


@pytest.mark.parametrize("seed", range(10))
def test_a_spool_does_what_its_model_does(tmp_path: Path, seed: int) -> None:
    model = Model(tmp_path / "spool.db", seed)
    steps = [
        *[model.put, model.lease, model.finish] * 3,
        *[model.wait, model.take_results, model.park, model.release] * 2,
        *[model.postpone, model.give_up, model.moved, model.renew, model.move, model.deliver],
        *[model.decide, model.prune, model.restart],
    ]
    for _ in range(300):
        step = model.draw.choice(steps)
        step()
        model.check()
    assert model.met["new"] and model.gone["evaluated"]
