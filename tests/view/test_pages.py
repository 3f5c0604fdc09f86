"""The pages beside the first one: comparing, conversations, coverage and cost."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import pytest

from report.parts import results, turn
from steelyard.results import open_labels
from steelyard.results.labels import Label

pytest.importorskip("starlette", reason="starlette is not installed")

from report.parts import DAY, NOON, by_judge
from steelyard.alarms import AlarmWatcher, alarms_from
from steelyard.online import Settings
from steelyard.probing import acheck_judge, baselines, load_probes
from steelyard.report import _build, open_results
from steelyard.report.compare import Compared, Side, compare
from steelyard.results.queries import Scope
from steelyard.scores import Diagnosis, Evaluation, Trial, Usage
from steelyard.stats import Difference
from steelyard.view import app
from steelyard.view._compare import headline
from steelyard.view._session import turning_point
from steelyard.view.labelling import LabelledResults

HOSTILE = "</script><img src=x onerror=alert(1)>{{ 7*7 }}\u202eevil"
PAGES = (
    *("/compare", "/compare?by=judge", "/compare?by=time", "/sessions", "/coverage", "/label"),
    *("/alarms", "/judges", "/api/queue/so-far"),
)


def client(db: str | Path, settings: Settings | None = None) -> httpx.AsyncClient:
    pages = app(db, settings=settings)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=pages), base_url="http://127.0.0.1")


def fortnight(value: float) -> list[Evaluation]:
    """Two versions with the same questions, of which the second is worse where it was asked about wine."""
    return [
        by_judge(
            turn(
                n,
                value if n >= 60 and n % 3 == 0 else 0.9 - n % 7 / 50,
                at=NOON + n * DAY / 10,
                question="About wine?" if n % 3 == 0 else f"About {n % 5}?",
                version="v2" if n >= 60 else "v1",
            )
        ).replace(session=f"s{n // 4}", usage=Usage(requests=2, prompt_tokens=90, cost=0.01))
        for n in range(120)
    ]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return results(tmp_path / "s.db", fortnight(0.1))


async def test_the_charts_say_what_their_lines_are(db: Path) -> None:
    async with client(db) as http:
        page = (await http.get("/")).text
    shown = page.partition("Drag over a chart")[2].partition("</p>")[0]
    assert "the dashed line the threshold" in shown and "worse from then on" in shown
    assert "better from then on" not in shown and "v2 came into use" in shown


async def test_two_versions_are_compared_with_an_interval_and_what_moved(db: Path) -> None:
    async with client(db) as http:
        page = (await http.get("/compare")).text
    assert "From v1 to v2: faithfulness is 0.2" in page and "lower (worse)." in page
    assert "/turns?version=v2" in page
    first, *_ = re.findall('<tr><td dir="auto">([^<]+)</td><td dir="auto">faithfulness', page)
    assert first == "About wine?"
    assert re.search("id=r\\d+&amp;show=faithfulness", page)


async def test_a_page_holds_fifty_and_says_when_there_are_more(tmp_path: Path) -> None:
    turns = [turn(n, 1.0, at=NOON + n).replace(session="51" if n > 49 else "50") for n in range(101)]
    turns += [turn(200 + n, 1.0, at=NOON + n).replace(session=f"s{n}") for n in range(60)]
    async with client(await asyncio.to_thread(results, tmp_path / "s.db", turns)) as http:
        shown = [(await http.get("/sessions", params={"page": page})).text for page in (0, 1)]
        assert [page.count("<tr><td") for page in shown] == [50, 12]
        assert ["Further sessions" in page for page in shown] == [True, False]
        whole, cut = [(await http.get("/session", params={"id": name})).text for name in ("50", "51")]
    assert "(the first ones;" not in whole and "(the first ones;" in cut


async def test_the_worst_turn_of_a_session_is_worst_as_its_metric_counts(tmp_path: Path) -> None:
    turns = []
    for number, value in enumerate((0.6, 0.9, 0.7, 0.2, 0.1)):
        one, good = turn(number, value, at=NOON + number), value < 0.5
        scores = tuple(replace(score, direction="lower", passed=good) for score in one.scores)
        turns.append(one.replace(session="good" if good else "s", scores=scores))
    async with client(await asyncio.to_thread(results, tmp_path / "s.db", turns)) as http:
        page, good_page = [(await http.get(f"/session?id={name}")).text for name in ("s", "good")]
    assert "worst turn" in page and "worst turn" not in good_page
    assert re.findall('worst turn</b> <a class="open" href="/turn[?]id=(r[0-9])', page) == ["r1"]


def test_only_the_latest_turns_are_read_for_labels(db: Path) -> None:
    found = [one.record_id for one in LabelledResults(str(db), limit=3).evaluations()]
    assert found == ["r117", "r118", "r119"]


@pytest.mark.parametrize(("direction", "worse"), [("higher", "About 1?"), ("lower", "About 0?")])
def test_what_moved_is_worse_where_its_metric_says_so(
    tmp_path: Path, direction: Literal["higher", "lower"], worse: str
) -> None:
    turns: list[Evaluation] = []
    for version, values in (("v1", (0.2, 0.8)), ("v2", (0.6, 0.5))):
        for n, value in enumerate(values * 10, len(turns)):
            made = turn(n, value, question=f"About {n % 2}?", version=version)
            turns.append(made.replace(scores=tuple(replace(one, direction=direction) for one in made.scores)))
    with closing(open_results(results(tmp_path / "s.db", turns))) as reader:
        _, moved = compare(reader, *(Side(by="version", value=name) for name in ("v1", "v2")))
    assert {one.question: one.worse for one in moved} == {
        question: question == worse for question in ("About 0?", "About 1?")
    }


async def test_times_and_groups_of_another_kind_are_compared_by_address(db: Path) -> None:
    async with client(db) as http:
        asked = {"by": "time", "a_until": "2025-10-15", "b_since": "2025-10-15"}
        assert "faithfulness is 0.2" in (await http.get("/compare", params=asked)).text
        wrong = await http.get("/compare", params={"by": "time", "a_since": "soon"})
        assert wrong.status_code == 400 and "is not a time" in wrong.text
        # Groups of another kind than before are forgotten.
        kept = await http.get("/compare", params={"was": "judge", "by": "version", "a": "x", "b": "local"})
        assert "From v1 to v2" in kept.text
        assert "There is one of them only" in (await http.get("/compare?by=judge")).text
        assert "No turn says any" in (await http.get("/compare?by=framework")).text


def scored_twice(turns: Sequence[Evaluation]) -> list[Evaluation]:
    """The same turns as another judge has them: all a tenth lower."""
    lower = [by_judge(one, "other") for one in turns]
    return [
        one.replace(
            scores=tuple(
                replace(score, id=f"{one.record_id}-other", value=max((score.value or 0) - 0.1, 0.0))
                for score in one.scores
            )
        )
        for one in lower
    ]


def test_two_judges_of_the_same_turns_are_compared_turn_by_turn(tmp_path: Path) -> None:
    turns = fortnight(0.1)
    db = results(tmp_path / "s.db", [*turns, *scored_twice(turns[:80])])
    reader = open_results(db)
    try:
        sides = (Side(by="judge", value=name) for name in ("local-lexical", "other"))
        (found,), moved = compare(reader, *sides)
        times = (Side(scope=Scope(until=NOON + 6 * DAY)), Side(scope=Scope(since=NOON + 6 * DAY)))
        (unpaired,), _ = compare(reader, *times)
    finally:
        reader.close()
    assert found.same_turns and found.counts == (80, 80)
    assert found.difference.value == pytest.approx(-0.1, abs=0.01) and found.difference.clear
    # Turn by turn, what turns differ in by themselves does not count.
    width = found.difference.high - found.difference.low
    assert width < (unpaired.difference.high - unpaired.difference.low) / 1.5
    assert moved[0].first_id == moved[0].second_id


async def test_conversations_are_listed_by_time_or_by_bad_turns(db: Path) -> None:
    async with client(db) as http:
        latest = (await http.get("/sessions")).text
        worst = (await http.get("/sessions?order=worst")).text
        assert re.findall(r"session\?id=(s\d+)", latest)[:2] == ["s29", "s28"]
        first = re.findall(r"session\?id=(s\d+)", worst)[0]
        assert "2 of the first 4 turns did not pass" in worst and int(first[1:]) >= 15
        assert "There are no further sessions" in (await http.get("/sessions?page=9")).text
        assert (await http.get("/sessions?page=-1&order=odd")).status_code == 200


async def test_money_is_told_by_day_and_by_metric(db: Path) -> None:
    async with client(db) as http:
        page = (await http.get("/coverage")).text
    assert "$1.20" in page and "2025-10-09" in page and '"unit": "$"' in page
    assert "No Monitor has stored here" in page
    assert re.search(r"faithfulness</th><td[^>]*>120</td><td[^>]*>\$1.20", page)


@pytest.fixture
def watched(tmp_path: Path) -> Settings:
    """An alarm that fell, and one without a turn."""
    entries = [
        {"metric": "faithfulness", "below": 0.6, "to": ["log"]},
        {"metric": "none_of_these", "above": 0.5, "to": ["log"]},
    ]
    file = str(tmp_path / "alarms.db")
    with closing(AlarmWatcher(alarms_from(entries), file=file)) as watcher:
        told = watcher.take([turn(n, 0.1, at=NOON + n * 600) for n in range(120)])
        assert [event.kind for event in told] == ["fell"]
    return Settings(alarm=entries, alarm_file=file, calibration=str(tmp_path / "gone.json"))


def drawn(page: str) -> list[dict[str, Any]]:
    """The figures that the script of a page draws."""
    found = re.search('<script type="application/json" id="plots">(.+?)</script>', page, re.DOTALL)
    assert found is not None
    plots: list[dict[str, Any]] = json.loads(found[1])
    return plots


async def test_an_alarm_is_shown_with_its_evidence_and_what_it_told(db: Path, watched: Settings) -> None:
    async with client(db, watched) as http:
        page = (await http.get("/alarms")).text
    assert "✕ fallen" in page and "no turn yet" in page
    assert "fell" in page and "/turn?id=r0&amp;show=faithfulness" in page
    fallen, other = drawn(page)
    # The last one is of the recovery, which has not begun.
    assert fallen["bar"] == 20 and max(fallen["values"]) >= 20 and len(fallen["times"]) == 120
    assert other["times"] == []


async def test_the_overview_marks_falls_and_no_recoveries(db: Path, watched: Settings) -> None:
    with closing(AlarmWatcher(alarms_from(watched.alarm), file=watched.alarm_file)) as watcher:
        told = watcher.take([turn(n, 1.0, at=NOON + n * 600) for n in range(120, 400)])
        assert [event.kind for event in told] == ["recovered"]
    async with client(db, watched) as http:
        page = (await http.get("/")).text
    assert len(re.findall("alarm faithfulness", page)) == 1


async def test_a_look_at_alarms_makes_no_file(db: Path, tmp_path: Path) -> None:
    entries = [{"metric": "faithfulness", "below": 0.5, "to": ["log"]}]
    settings = Settings(alarm=entries, alarm_file=str(tmp_path / "none.db"))
    async with client(db, settings) as http:
        assert "no turn has come yet" in (await http.get("/alarms")).text
        assert "Nothing is watched" not in (await http.get("/alarms")).text
    assert not (tmp_path / "none.db").exists()
    async with client(db) as http:
        assert "Nothing is watched" in (await http.get("/alarms")).text


async def test_what_probes_say_of_a_judge_is_drawn_with_what_they_said_before(db: Path) -> None:
    probes = load_probes()
    check = await acheck_judge(baselines(probes.probes)[0], probes)
    async with client(db) as http:
        assert "No judge was checked yet" in (await http.get("/judges")).text
        for at, name in ((NOON, HOSTILE), (NOON + DAY, HOSTILE), (NOON, "other")):
            open_labels(db).put_check(replace(check, judge=name), checked_at=at)
        other_words = replace(check, judge="other", prompt_version="other words")
        open_labels(db).put_check(other_words, checked_at=NOON)
        page = (await http.get("/judges")).text
    assert page.count('class="probes"') == 3 and "<img" not in page
    assert f"{check.n} probes" in page and f"before: {check.overall.right.value:.2f} on 2025-10-09" in page
    assert "role swap" in page and page.count('class="strip') == 3 * len(check.kinds)


async def test_a_judge_is_held_against_people(db: Path, watched: Settings) -> None:
    said = [
        Label(record_id=f"r{n}", value="bad" if n % 3 == 0 else "good", who="Ann", labelled_at=NOON)
        for n in range(60, 100)
    ]
    open_labels(db).put(said)
    async with client(db, watched) as http:
        page = (await http.get("/judges")).text
    assert "which steelyard.toml names, is not there" in page
    assert "40 labelled turns" in page and "kappa <b>1.00</b>" in page
    (chart,) = drawn(page)
    shares = [(x, good) for x, good in zip(chart["x"], chart["good"], strict=True) if good is not None]
    assert shares[0][1] == 0.0 and shares[-1][1] == 1.0
    for x, low, good, high in zip(*(chart[name] for name in ("x", "low", "good", "high")), strict=True):
        assert (low is good is high is None) or (0 <= x <= 1 and low <= good <= high and low < high)


@pytest.fixture
def tried(tmp_path: Path) -> Path:
    one = turn(0, 0.2)
    trials = (Trial(name="closed book", good=False, same=True), Trial(name="wider search", good=True))
    screen = tuple(replace(score, value=0.77) for score in one.scores)
    one = one.replace(diagnosis=Diagnosis(cause="invented", trials=trials), screen=screen)
    return results(tmp_path / "tried.db", [one, turn(1, 0.9)])


@pytest.fixture
def many(tmp_path: Path) -> Path:
    invented = Diagnosis(cause="invented")
    return results(tmp_path / "s.db", [turn(n, 0.2).replace(diagnosis=invented) for n in range(60)])


async def test_the_first_page_says_that_causes_are_counted_in_a_part_of_the_turns(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client(many) as http:
        exact = (await http.get("/")).text
        monkeypatch.setattr(_build, "_BRIEF_CAUSES", 30)
        page = (await http.get("/")).text
    assert "invented" in exact and "the causes of one turn in" not in exact
    assert "invented" in page and "the causes of one turn in 3 were counted" in page


async def test_a_turn_shows_what_was_tried_with_it_and_what_the_screen_said(tried: Path) -> None:
    async with client(tried) as http:
        page = (await http.get("/turn?id=r0")).text
        other = (await http.get("/turn?id=r1")).text
    assert re.search(
        r"closed book</th><td>bad</td><td>yes<.*wider search</th><td>good</td><td>no<", page, re.S
    )
    assert re.search(r"The screen.*0\.77", page)
    assert "What was tried" not in other
    assert "The screen" not in other


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    long = HOSTILE + "x" * 100_000 + "\u05d0\u05d1"
    texts = by_judge(turn(1, 0.5, question=long, answer=long, context=long, version=long))
    bare = by_judge(turn(2, 0.5, content=False)).replace(session=long)
    return results(tmp_path / "odd.db", [texts.replace(session=HOSTILE), bare])


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    return results(tmp_path / "empty.db", [])


async def test_no_turns_and_hostile_ones_are_shown(empty: Path, odd: Path) -> None:
    for place in (empty, odd):
        async with client(place) as http:
            for path in PAGES:
                page = await http.get(path)
                assert page.status_code == 200, path
                assert "<img" not in page.text and "\u202e" not in page.text and len(page.text) < 500_000
    async with client(odd) as http:
        shown = (await http.get("/turn?id=r1&claim=9&show=none")).text
        assert "<img" not in shown and "\u202e" not in shown and len(shown) < 500_000
        assert "were not stored" in (await http.get("/turn?id=r2")).text


async def test_what_canaries_of_another_process_say_is_shown(tried: Path) -> None:
    said = {"judge": HOSTILE, "state": "changed", "probes": 9, "asked": 50, "right": 30, "low": 0.4}
    rows = [("a", 7, {"canaries": {**said, "high": 0.7, "changed_at": NOON}}), ("b", 8, {"canaries": said})]
    with closing(sqlite3.connect(tried)) as connection, connection:
        connection.executemany(
            "INSERT INTO ledger VALUES (?, 'web-1', ?, 1.0, 2.0, ?)",
            [(run, pid, json.dumps(counts)) for run, pid, counts in rows],
        )
    async with client(tried) as http:
        page = (await http.get("/judges")).text
    assert "The judge has changed" in page and "web-1, process 7" in page and "web-1, process 8" not in page
    assert "30 of 50" in page and "<img" not in page


@pytest.mark.parametrize("passed", [[True, False, True], [True, True, False, True, False, True]])
def test_a_conversation_of_which_half_passes_has_not_turned_bad(passed: list[bool]) -> None:
    assert turning_point(passed) is None


async def test_what_the_first_page_tells_leads_to_turns_since_then(db: Path) -> None:
    async with client(db) as http:
        links = list[str]()
        with anyio.fail_after(120):
            while not links:
                links = re.findall('href="(/turns[?][^"]*since=[^"]*)"', (await http.get("/")).text)
                await anyio.sleep(0.1)
        for link in map(unescape, links):
            since = parse_qs(urlsplit(link).query)["since"]
            shown = re.findall('href="/turn[?]id=r([0-9]+)', (await http.get(link)).text)
            # The version that is worse came with the sixtieth turn, a tenth of a day each.
            assert len(since) == 1 and since[0][:10] in ("2025-10-14", "2025-10-15", "2025-10-16")
            assert shown and all(int(number) >= 50 for number in shown)


@pytest.mark.parametrize("count", range(1, 6))
def test_the_headline_of_a_comparison_counts_what_it_does_not_name(count: int) -> None:
    made = Difference(first=0.5, second=0.25, value=-0.25, low=-0.3, high=-0.2, n=90)
    unclear = replace(made, low=-0.6, high=0.1)
    compared = partial(Compared, direction="higher", counts=(90, 90), same_turns=False)
    metrics = [compared(metric=f"m{n}", difference=made) for n in range(count)]
    said = headline([*metrics, compared(metric="other", difference=unclear)])
    assert said.count("0.25 lower (worse)") == min(count, 3)
    assert (f"{count - 3} more differ" in said) == ("more differ" in said) == (count > 3)
    assert said.endswith("; 1 cannot be told apart.")
