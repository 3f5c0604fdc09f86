"""The pages over HTTP: what they show."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

pytest.importorskip("starlette", reason="starlette is not installed")

from report.parts import NOON, results, turn
from steelyard.errors import ConfigurationError
from steelyard.judge import LocalJudge
from steelyard.online import Monitor, Spool, SpoolSettings
from steelyard.record import Context, Record, Stage, TraceRef
from steelyard.scores import Diagnosis, Evaluation, Evidence, Verdict
from steelyard.sinks import SQLiteSink
from steelyard.view import app
from steelyard.view._session import turning_point
from steelyard.view._turn import flow_of
from view.serving import client

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>{{ 7*7 }}\u202eevil"


@pytest.fixture
def db(tmp_path: Path) -> str:
    turns = [turn(n, n / 10, at=NOON + n, version=f"v{n % 2}", route="/ask") for n in range(9)]
    turns.append(turn(9, None, at=NOON + 9, question=HOSTILE, answer=HOSTILE, context=HOSTILE))
    return str(results(tmp_path / "s.db", turns))


def clear(spool: Path) -> None:
    for file in spool.parent.glob(f"{spool.name}*"):
        file.unlink()


async def test_every_page_is_served_with_a_policy_and_hostile_text_stays_text(db: str) -> None:
    async with client(db) as http:
        for path in ("/", "/turns", "/turn?id=r9", "/turn?id=r1"):
            page = await http.get(path)
            assert page.status_code == 200, path
            policy = page.headers["content-security-policy"]
            assert (
                "unsafe" not in policy
                and "script-src 'self'" in policy
                and "frame-ancestors 'none'" in policy
            )
            assert "<img" not in page.text and "owned'</script>" not in page.text
            assert "\u202e" not in page.text
            assert all('src="' in tag or "json" in tag for tag in re.findall("<script[^>]*>", page.text))
        assert (await http.get("/turn?id=gone")).status_code == 404
        assert (await http.get("/trace/none")).status_code == 404
        assert (await http.get("/static/..%2f_site.py")).status_code == 404


@pytest.fixture
def half_guessed(tmp_path: Path) -> str:
    guessed = turn(1, 0.5)
    assert guessed.record is not None
    trace = TraceRef(framework="langchain")
    record = guessed.record.replace(
        contexts_source="guessed",
        notes=("contexts_guessed: passages were cut out of the prompt", "a note of one's own <img>"),
        origins={"question": ("input, question",), "contexts": ("prompt of model Chat <img>",)},
        trace=trace,
    )
    guessed = guessed.replace(record=record, evidence=None)
    return str(results(tmp_path / "s.db", [turn(0, 0.5), guessed]))


async def test_pages_tell_how_passages_are_known_and_list_turns_by_it(half_guessed: str) -> None:
    async with client(half_guessed) as http:
        overview = (await http.get("/")).text
        assert "How the passages are known: known 50 %, guessed 50 % of 2 turns" in overview
        assert 'href="/turns?evidence=guessed"' in overview
        rows = (await http.get("/turns?evidence=guessed")).text
        assert "id=r1" in rows and "id=r0" not in rows
        assert 'aria-label="Take away passages guessed"' in rows


async def test_a_turn_tells_what_was_taken_from_where_and_what_settles_each_doubt(half_guessed: str) -> None:
    async with client(half_guessed) as http:
        page = (await http.get("/turn?id=r1")).text
        assert 'Question <span class="quiet">known, from input, question</span>' in page
        assert '<p class="quiet how">guessed, from prompt of model Chat &lt;img&gt;</p>' in page
        assert re.search("contexts_guessed: [^<]+</dt><dd>settled by context_key=", page)
        assert "a note of one&#39;s own &lt;img&gt;</dt><dd></dd>" in page
        assert "What is doubtful" not in (await http.get("/turn?id=r0")).text


@pytest.fixture
def conversations(tmp_path: Path) -> str:
    values = [0.9, 0.3, 0.8, 0.4, 0.1, 0.2]
    turns = [
        turn(n, value, at=NOON + n, question=f"question {n}").replace(session="a/b <i>")
        for n, value in enumerate(values)
    ]
    # Without a score of the others' metric.
    late = turn(7, None, at=NOON + 7, question="question 6").replace(session="a/b <i>")
    turns.append(late.replace(scores=(replace(late.scores[0], metric="answer_relevancy"),)))
    other = turn(9, 0.0, at=NOON + 3, question="of another").replace(session="other")
    # Ids of sessions are the application's own: of two tenants they may be the same.
    turns += [turn(20, 0.0, at=NOON + 9, question="a secret").replace(session="a/b <i>", tenant="a&b")]
    return str(results(tmp_path / "s.db", [*turns[::-1], other]))


async def test_a_conversation_is_shown_in_order_with_its_worst_turn_and_where_it_turned_bad(
    conversations: str,
) -> None:
    async with client(conversations) as http:
        turned = (await http.get("/turn?id=r3")).text
        link = re.search('href="(/session[?][^"]+)"', unescape(turned))
        assert link is not None
        nav = turned.partition('class="conversation"')[2].partition("</nav>")[0]
        assert re.findall("question (\\d)", nav) == list("0123456")
        page = (await http.get(link[1])).text
        assert re.findall("question (\\d)", page) == list("0123456")
        assert "of another" not in page and "<i>" not in page and "a secret" not in turned + page
        listed = set(re.findall('href="(/session[?][^"]+)"', (await http.get("/sessions")).text))
        theirs = [(await http.get(unescape(one))).text for one in listed if "a%26b" in one]
        assert ["a secret" in one and "question" not in one for one in theirs] == [len(listed) == 3]
        marks = re.findall("(turned bad here|worst turn)</b> .*?question (\\d)", page)
        assert marks == [("turned bad here", "3"), ("worst turn", "4")]
        other = (await http.get("/turns?session=other")).text
        assert "of another" in other and "question 1" not in other
        assert re.search(r'href="/turns\?" aria-label="Take away', other)
        assert '<a href="/turns" aria-current="page">' in other
        for path in ("/session", "/session?id=none", "/session?id=other&tenant=a%26b"):
            assert (await http.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("passed", "place"),
    [
        ([], None),
        ([True, True], None),
        ([True, False, True, True], None),
        ([False], 0),
        ([True, None, False], 2),
    ],
)
def test_a_conversation_turned_bad_where_most_turns_from_then_on_did_not_pass(
    passed: list[bool | None], place: int | None
) -> None:
    assert turning_point(passed) == place


async def test_the_list_is_narrowed_by_links_and_given_as_a_file(db: str) -> None:
    async with client(db) as http:
        page = (await http.get("/turns?version=v1&sort=metric:faithfulness")).text
        assert re.findall("id=(r\\d)&amp;version=v1&amp;sort", page) == ["r1", "r3", "r5", "r7"]
        assert re.search('aria-sort="ascending"><a href="/turns[?]version=v1&amp;sort=-metric', page)
        other = re.search('href="(/turns[?][^"]+)"><span dir="auto">v0', page)
        assert other is not None
        both = (await http.get(other[1].replace("&amp;", "&"))).text
        assert len(re.findall('class="open"', both)) == 9
        lines = (await http.get("/turns.csv?version=v1&sort=-time")).text.splitlines()
        assert [line.partition(",")[0] for line in lines] == ["record_id", "r1", "r3", "r5", "r7"]
        assert lines[0].endswith(",duration,faithfulness") and lines[1].endswith(",1.0,0.1")
        given = [
            json.loads(line) for line in (await http.get("/turns.jsonl?status=failed")).text.splitlines()
        ]
        assert [one["record_id"] for one in given] == ["r9"] and given[0]["question"] == HOSTILE[:400]
        assert (await http.get("/turns.exe")).status_code == 404
        assert (await http.get("/turns?since=monday")).status_code == 400
        assert (await http.get("/turns?in.%22=x")).status_code == 400
        odd = "&".join(["status=x", *(f"in.{'.' * n}=x" for n in range(30))])
        assert (await http.get(f"/turns?{odd}&metric=%00&page=-1&before=x&columns=no")).status_code == 200


SORTS = ("time", "-time", "metric:faithfulness", "-metric:faithfulness", "-duration", "cost")


def opened(page: str) -> list[str]:
    """The links to the turns of a page of the list, in order."""
    return [unescape(link) for link in re.findall('class="open" href="([^"]+)"', page)]


def named(link: str) -> str:
    return parse_qs(urlsplit(link).query)["id"][0]


async def walked(http: httpx.AsyncClient, link: str, way: str) -> list[str]:
    """The turns that one comes by from a turn's page, link by link."""
    found = []
    while link:
        found.append(named(link))
        following = re.search(f'href="([^"]+)" rel="{way}"', (await http.get(link)).text)
        link = unescape(following[1]) if following else ""
    return found


@pytest.fixture
def two_pages(tmp_path: Path) -> str:
    turns = [turn(n, None if n % 9 == 4 else n * 7 % 60 / 60, at=NOON + n) for n in range(60)]
    return str(results(tmp_path / "s.db", turns))


@pytest.mark.parametrize("sort", SORTS)
async def test_pages_of_the_list_its_file_and_the_turns_themselves_have_one_order(
    two_pages: str, sort: str
) -> None:
    async with client(two_pages) as http:
        page = (await http.get("/turns", params={"sort": sort})).text
        older = re.search('id="older" class="button" href="([^"]+)"', page)
        assert older is not None
        links = opened(page) + opened((await http.get(unescape(older[1]))).text)
        order = [named(link) for link in links]
        # By a metric those that have a score.
        assert sorted(order) == sorted(f"r{n}" for n in range(60) if "metric" not in sort or n % 9 != 4)
        lines = (await http.get("/turns.jsonl", params={"sort": sort})).text.splitlines()
        assert [json.loads(line)["record_id"] for line in lines] == order
        assert await walked(http, links[45], "next") == order[45:]
        assert await walked(http, links[51], "prev") == order[51::-1]


LONG = "\u202eשלום <img src=x>" + "x" * 100_000


@pytest.fixture
def overfull(tmp_path: Path) -> str:
    """400 versions, 5,000 tags, and names of 100,000 characters from right to left."""
    made = []
    for n in range(400):
        one = turn(n, n % 10 / 10, at=NOON + 60 * n, version=f"v{n}" if n else LONG, customer=LONG)
        assert one.record is not None
        tags = (LONG, *(f"tag {number}" for number in range(n, 5_000, 400)))
        fields = {"a field": "xy"[n % 2], 'a "field"': "xy"[n % 2], **one.record.metadata}
        made.append(one.replace(record=one.record.replace(tags=tags, metadata=fields)))
    return str(results(tmp_path / "s.db", made))


async def test_however_much_there_is_a_page_stays_small_and_harmless(overfull: str) -> None:
    with closing(sqlite3.connect(overfull, isolation_level=None)) as locked:
        locked.execute("BEGIN IMMEDIATE")  # as somebody who writes and never ends
        async with client(overfull) as http:
            for path in ("/", "/turns", "/turns?tag=tag+7&version=v7", f"/turns?in.customer={LONG[:300]}"):
                page = await http.get(path)
                assert page.status_code == 200 and len(page.content) < 250_000, path
                shown = re.sub('<input type="hidden"[^>]+>', "", page.text)  # what the address says itself
                assert "<img" not in page.text and "\u202e" not in shown
            closer = await http.get("/api/closer")
            assert closer.status_code == 200 and "<img" not in closer.text
            listed = (await http.get("/turns")).text
            # No address can ask for a name with a quotation mark.
            assert "in.a+field=x" in listed and "in.a+%22field" not in listed
            links = re.findall('href="([^"]+)"', listed)
            tagged = next(link for link in links if "tag=" in link and "xxx" in link)  # cut at 1,000
            assert len(re.findall('class="open"', (await http.get(tagged)).text)) == 50


@pytest.fixture(params=[[], [turn(1, 0.5)], [turn(1, None)], [turn(1, 0.5, content=False)]])
def hardly_any(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[Evaluation]]:
    return str(results(tmp_path / "s.db", request.param)), request.param


async def test_of_hardly_anything_every_page_says_what_there_is(
    hardly_any: tuple[str, list[Evaluation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, turns = hardly_any
    monkeypatch.setattr("steelyard.view._overview._A_CLOSER_LOOK", 900.0)  # who waits is told at once
    async with client(db) as http:
        assert (await http.get("/api/closer")).status_code == 200
        first = (await http.get("/")).text
        scored = any(score.value is not None for one in turns for score in one.scores)
        assert ("Too few turns to tell yet" if scored else "Nothing has been scored yet") in first
        listed = (await http.get("/turns")).text
        assert ("No turn has been judged yet" in listed) == (not turns)
        assert "No turn fits all of this" in (await http.get("/turns?tag=none")).text
        assert len((await http.get("/turns.csv")).text.splitlines()) == len(turns) + 1


async def test_a_file_of_an_earlier_version_is_shown_on_every_page(tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    dump = Path(__file__).parent.parent / "sinks" / "schema1.sql"
    with closing(sqlite3.connect(old)) as connection:
        connection.executescript(dump.read_text())
    async with client(str(old)) as http:
        for path in ("/", "/turns", "/sessions", "/compare", "/coverage", "/judges", "/alarms", "/label"):
            assert (await http.get(path)).status_code == 200, path
        opened = re.search('class="open" href="([^"]+)"', (await http.get("/turns")).text)
        assert opened is not None
        assert (await http.get(opened[1].replace("&amp;", "&"))).status_code == 200


async def test_new_turns_are_given_after_a_key(db: str) -> None:
    async with client(db) as http:
        key = {"time": str(NOON + 8), "id": "r8"}
        found = (await http.get("/api/new", params=key)).json()
        assert found["count"] == 1 and found["id"] == "r9" and "<img" not in found["rows"]
        again = await http.get("/api/new", params={"time": found["time"], "id": found["id"]})
        assert again.json()["count"] == 0
        # Without a key, or with one that is none: the turns after none.
        for key in ({}, {"time": "x", "id": "r8"}):
            assert (await http.get("/api/new", params={**key, "tag": "none"})).json()["count"] == 0


async def test_the_overview_shows_what_monitors_and_the_spool_are_doing(tmp_path: Path) -> None:
    db, spool = tmp_path / "s.db", tmp_path / "spool.db"
    settings = SpoolSettings(path=spool, evaluate=False)
    with closing(Monitor(judge=LocalJudge(), sinks=[SQLiteSink(db)])) as judging:
        judging.submit(Record(question="Where?", answer="In Paris.", contexts=(Context(text="Paris."),)))
        assert judging.flush(timeout=60) == 0
        async with client(str(db), monitor=judging) as http:
            here = (await http.get("/api/state")).text
        assert "this process" in here and "Spool:" not in here
    with closing(Monitor(judge=LocalJudge(), sinks=[], spool=settings)) as putting:
        putting.submit(Record(question="When?", answer="Soon.", contexts=(Context(text="Soon."),)))
        putting.flush(timeout=60)
    async with client(str(db), spool=spool) as http:
        shown = (await http.get("/api/state")).text
        assert re.search(r"process \d+</th><td>1</td><td>0</td><td>1</td><td>1</td>", shown)
        assert "<b>1</b> waiting or being judged" in shown
        # Another spool in its place, then another program's file, then none.
        clear(spool)
        Spool(spool).close()
        assert "<b>0</b> waiting or being judged" in (await http.get("/api/state")).text
        clear(spool)
        spool.write_text("a text" * 1000)
        broken = await http.get("/api/state")
        assert broken.status_code == 200
        assert "file of another program" in broken.text and "process " in broken.text
        spool.unlink()
        assert "is gone" in (await http.get("/api/state")).text
    with pytest.raises(ConfigurationError, match="there is no spool"):
        app(str(db), spool=tmp_path / "none.db")


@pytest.fixture
def traced(tmp_path: Path) -> str:
    trace = TraceRef(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", span_id="00f067aa0ba902b7")
    return str(results(tmp_path / "s.db", [turn(1, 0.5).replace(trace=trace), turn(2, 0.5)]))


async def test_a_turn_links_to_its_trace_where_somebody_said_where_that_is(traced: str) -> None:
    pages = app(traced, trace_url="https://traces.example/{trace_id}?span={span_id}&turn={record_id}")
    transport = httpx.ASGITransport(app=pages)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        link = (
            'href="https://traces.example/4bf92f3577b34da6a3ce929d0e0e4736?span=00f067aa0ba902b7&amp;turn=r1"'
        )
        assert link in (await http.get("/turn?id=r1")).text
        assert "traces.example" not in (await http.get("/turn?id=r2")).text
        back = await http.get("/trace/4bf92f3577b34da6a3ce929d0e0e4736")
        assert (back.status_code, back.headers["location"]) == (303, "/turn?id=r1")
    for wrong in ("javascript:alert({trace_id})", "https://traces.example/"):
        with pytest.raises(ConfigurationError, match="trace_url must be an address"):
            app(traced, trace_url=wrong)


def seen_at_each_step() -> Record:
    """Four passages found, three kept by a reranker, two shown, one of them used."""
    found = tuple(Context(text=f"Passage {n}.", id=f"p{n}", score=0.9 - n / 10) for n in range(4))
    answer = "It is Paris. It has nine million people."
    shown = (
        Context(text="Paris is the capital.", id="p0", seen=1.0),
        Context(text="Rain.", id="p2", seen=0.5),
    )
    return Record(
        id="r0",
        question="Where?",
        answer=answer,
        contexts=shown,
        contexts_source="in_prompt",
        retrieved=found,
        stages=(Stage(name="Reranker", query="Where?", contexts=found[:3]),),
    )


def test_the_way_of_the_passages_is_told_step_by_step() -> None:
    lost = Diagnosis(cause="passage_lost", lost=(1,), stage="Reranker")
    one = turn(0, 0.5).replace(record=seen_at_each_step(), diagnosis=lost)
    # What a judge finds useful need not stand in the answer.
    useful = Verdict(about="Rain.", kind="useful", value=True, evidence=(Evidence(context=1),))
    one = one.replace(scores=(*one.scores, replace(one.scores[0], metric="u", verdicts=(useful,))))
    flow = flow_of(one)
    assert flow is not None
    assert flow.steps == (("retrieved", 4), ("Reranker", 3), ("shown", 2), ("used", 1))
    assert [(row.title, row.places, row.lost) for row in flow.rows] == [
        ("p0", ("1 · 0.9", "1 · 0.9", "1", "1"), False),
        ("p1", ("2 · 0.8", "2 · 0.8", "", ""), True),
        ("p2", ("3 · 0.7", "3 · 0.7", "2", ""), False),
        ("p3", ("4 · 0.6", "", "", ""), False),
    ]
    assert flow_of(turn(1, 0.5, content=False)) is None
