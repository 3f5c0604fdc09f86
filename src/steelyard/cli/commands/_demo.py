"""`steelyard demo`: a real LangChain chain, scored without a key or a network."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Final

import typer
from rich.table import Table
from rich.text import Text
from typer import Option

from steelyard._internal.text import counted
from steelyard._internal.typed import read
from steelyard.cli._say import amount, say
from steelyard.cli._summary import worst_verdict
from steelyard.cli._terminal import Terminal
from steelyard.diagnosis import MENDS
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.judge import LocalJudge
from steelyard.online import Monitor
from steelyard.record import Context, Record, Stage, Timings, TraceRef
from steelyard.report import explain_verdict, report
from steelyard.results import open_labels
from steelyard.results.labels import Label
from steelyard.scores import Diagnosis, Evaluation, Evidence, Provenance, Score, Usage, Verdict
from steelyard.sinks import SQLiteSink
from steelyard.stats import paired_difference

TURNS: Final = 2_400
TENANT: Final = "acme"
"""Whose answers fall."""
VERSIONS: Final = ("1.8", "1.9")
_DAY: Final = 86_400.0
_DAYS: Final = 14
_RELEASED: Final = 9.4
"""The day on which the new version comes into use."""
_PICKED: Final = 0.1
_MADE: Final = Provenance(judge="demo", prompt_version="1", metric_version="1")


@dataclass(frozen=True, kw_only=True)
class _Topic:
    """What customers ask about: questions, the help page, what it says of them, and what it does not."""

    questions: tuple[str, ...]
    passage: str
    claims: tuple[str, ...]
    invented: str


@cache
def _topics() -> tuple[_Topic, ...]:
    raw = files("steelyard.cli.demo").joinpath("shop.json").read_text(encoding="utf-8")
    return tuple(read(_Topic, one) for one in json.loads(raw))


def write_fortnight(path: str, *, now: float) -> None:
    """Write results and labels of a fortnight that ends now."""
    draw = random.Random(7)
    turns = list(_turns(draw, now))
    monitor = _Counted()  # kept: a sink refers to it weakly

    async def run() -> None:
        sink = SQLiteSink(path)
        sink.observe(monitor)
        await sink.write(turns)
        await sink.aclose()

    asyncio.run(run())
    open_labels(path).put(_labels(draw, turns))


class _Counted:
    """What a Monitor would say of such a fortnight."""

    def stats(self) -> SimpleNamespace:
        counts = {"seen": 10 * TURNS, "accepted": TURNS, "evaluated": TURNS}
        none = dict.fromkeys(("pending", "abandoned", "spooled"), 0)
        return SimpleNamespace(**counts, **none, skipped={"sampled_out": 9 * TURNS}, dead={})


def _turns(draw: random.Random, now: float) -> Iterator[Evaluation]:
    number = session = 0
    while number < TURNS:
        session += 1
        day = draw.random() * _DAYS
        tenant = draw.choices((TENANT, "globex", "northwind"), (3, 3, 4))[0]
        for place in range(draw.choice((1, 1, 2, 3))):
            at = now - (_DAYS - day) * _DAY + 50 * place
            if number < TURNS and at < now:
                yield _turn(draw, number, at, f"s{session}", tenant, is_new=day >= _RELEASED)
                number += 1


def _turn(
    draw: random.Random, number: int, at: float, session: str, tenant: str, *, is_new: bool
) -> Evaluation:
    topic = draw.choice(_topics())
    is_lost = is_new and tenant == TENANT and draw.random() < 0.6
    is_invented = is_lost or draw.random() < 0.07
    pages = {one: Context(text=one.passage, id=f"help/{at}") for at, one in enumerate(_topics(), start=1)}
    others = [page for one, page in pages.items() if one is not topic]
    right = replace(pages[topic], rank=0)
    found = (right, *draw.sample(others, 3))
    shown = found[1:3] if is_lost else found[:2]
    claims = (*topic.claims, topic.invented) if is_invented else topic.claims
    answer = " ".join(claims)
    record = Record(
        id=f"demo-{number:04}",
        question=draw.choice(topic.questions),
        answer=answer,
        contexts=shown,
        retrieved=found,
        stages=(
            Stage(name="search", query="", contexts=found),
            Stage(name="rerank", query="", contexts=shown),
        ),
        tags=(draw.choice(("web", "web", "phone")),),
        tenant=tenant,
        session=session,
        metadata={"version": VERSIONS[is_new], "route": draw.choice(("/ask", "/ask", "/chat"))},
        trace=TraceRef(trace_id=f"{number + 1:032x}", framework="langchain"),
        timings=Timings(started_at=at, total=draw.uniform(0.8, 3.0)),
    )
    return Evaluation(
        record_id=record.id,
        record=record,
        scores=tuple(_scores(draw, number, topic, claims, shown)),
        usage=Usage(
            requests=2, questions=6, prompt_tokens=900, completion_tokens=60, cost=0.0002, seconds=1.4
        ),
        diagnosis=_diagnosis(is_lost=is_lost, is_invented=is_invented),
        evaluated_at=at + 4,
        duration=draw.uniform(0.6, 2.5),
    )


def _scores(
    draw: random.Random, number: int, topic: _Topic, claims: tuple[str, ...], shown: tuple[Context, ...]
) -> Iterator[Score]:
    held = tuple(_verdict(claim, topic, shown) for claim in claims)
    useful = tuple(Verdict(about=one.text, kind="useful", value=one.text == topic.passage) for one in shown)
    found: dict[str, tuple[float, tuple[Verdict, ...]]] = {
        "faithfulness": (sum(verdict.value is True for verdict in held) / len(held), held),
        "context_precision": (float(bool(useful[0].value)), useful),
        "answer_relevancy": (min(max(draw.gauss(0.88, 0.06), 0.0), 1.0), ()),
    }
    for metric, (value, verdicts) in found.items():
        yield Score(
            id=f"demo-{metric}-{number}",
            metric=metric,
            status="scored",
            value=value,
            passed=value >= 0.7,
            threshold=0.7,
            inclusion_probability=_PICKED,
            verdicts=verdicts,
            provenance=_MADE,
        )


def _verdict(claim: str, topic: _Topic, shown: tuple[Context, ...]) -> Verdict:
    for place, context in enumerate(shown):
        if (start := context.text.find(claim)) >= 0:
            evidence = Evidence(context=place, start=start, end=start + len(claim), text=claim)
            return Verdict(about=claim, kind="supported", value=True, probability=0.95, evidence=(evidence,))
    reason = "no context says so" if claim == topic.invented else "the passage that says so was not shown"
    return Verdict(about=claim, kind="supported", value=False, probability=0.06, reason=reason)


def _diagnosis(*, is_lost: bool, is_invented: bool) -> Diagnosis:
    if is_lost:
        because = "passage 1 of search has more of what was asked, and was not shown"
        return Diagnosis(
            cause="passage_lost",
            rule="gain",
            strength=0.9,
            because=because,
            stage="search",
            lost=(0,),
            metric="faithfulness",
            claim=0,
            answered_anyway=True,
        )
    if is_invented:
        because = "no passage says what the answer says"
        return Diagnosis(cause="invented", rule="verdicts", strength=0.9, because=because, claim=2)
    return Diagnosis(backing="earned", because="a passage shown says it")


def _labels(draw: random.Random, turns: list[Evaluation]) -> Iterator[Label]:
    for one in draw.sample(turns, 40):
        is_good = one["faithfulness"].passed
        for who in ("Ann", "Bo")[: draw.choice((1, 1, 2))]:
            agrees = draw.random() < 0.9
            yield Label(
                record_id=one.record_id,
                value="good" if is_good == agrees else "bad",
                who=who,
                labelled_at=min(one.at + draw.uniform(1, 30) * 3600, turns[0].at + _DAYS * _DAY),
                note="" if agrees else "reads well all the same",
                drawn=0.02,
            )


_DB: Final = "steelyard.db"
# On a slow machine the local judge takes some seconds for the whole demo.
_PATIENCE: Final = 30.0
_HEAD: Final = """
A RAG chain on the balance: faithfulness, the share of an answer's claims that its passages carry
  A  the chain as it is, which answers by quotation, without a model
  B  the same chain, with numbers, names and negations in its answers altered
  C  the same chain, with a reranker that puts the best passages last

chain > CallbackHandler > Monitor > {judge} > {database}
"""
_NEXT: Final = """
Next
  steelyard report --tag inventing{file}
  steelyard demo --serve                 a fortnight of turns, in the browser
  steelyard score FILE.jsonl             answers of your own
  steelyard run APP.py                   a chain of your own
"""


def demo(
    db: str = Option(_DB, "--db", metavar="FILE", help="Where the scores go."),
    serve: bool = Option(False, "--serve", help="Show a made-up fortnight in the browser instead."),
) -> None:
    """Watch a RAG chain being scored.

    A LangChain chain answers questions over a text about weighing: once as it is, once with facts invented
    into its answers, once with the best passages thrown away. All are recorded by the callback handler,
    scored in the background by the local judge, and compared. It needs no key and no network, asks no model,
    and takes a few seconds.

    With `--serve` it shows the pages of `steelyard serve` over a made-up fortnight, in which one customer's
    answers fall with a new version: which, since when, and why. It is kept in `--db FILE` if you give one,
    and nowhere otherwise.

    **Examples**

    - `steelyard demo`
    - `steelyard demo --serve`
    - `steelyard demo --db demo.db`
    """
    if serve:
        _serve("" if db == _DB else db)
        return
    try:
        import langchain_core  # noqa: F401 - the demo's own files need it
    except ImportError:
        raise MissingDependency("langchain-core", extra="langchain") from None
    console = Terminal()
    sink = SQLiteSink(db)
    sink.open()
    monitor = Monitor(judge=LocalJudge(), sinks=[sink])
    console.print(Text(_HEAD.format(judge="local", database=db)))
    started = time.monotonic()
    with console.status("Asking and scoring ..."):
        asked = _ask(monitor)
    pending = monitor.flush(_PATIENCE)
    stats = monitor.stats()
    monitor.close()
    console.print(_table(asked))
    console.print(Text(f"\n{_difference(asked)}\n", style="bold"))
    _name_causes(console, asked)
    counts = f"{counted(stats.seen, 'turn')} seen, {stats.evaluated} evaluated, {pending} pending, "
    counts += f"{sum(stats.dead.values())} lost, in {time.monotonic() - started:.1f} s"
    console.print(Text(f"The local judge compares words; it is not calibrated.\n{counts}", style="dim"))
    console.print(Text(_NEXT.format(file="" if db == _DB else f" --db {db}"), style="cyan"))
    page = str(Path(db).with_suffix(".html"))
    with suppress(ConfigurationError):  # Jinja2 is not installed, or the folder cannot be written
        report(db, by="variant").write_html(page)
        console.print(Text(f"The report is in {page}: open it in a browser.", style="bold"))
    raise typer.Exit(1 if pending or stats.evaluated < stats.seen else 0)


def _serve(db: str) -> None:
    from steelyard.cli.commands._serve import check_uvicorn, serve_until_stopped

    check_uvicorn("serve")
    with TemporaryDirectory() as folder:
        file = db or str(Path(folder) / "demo.db")
        say("writing a made-up fortnight ...", err=True)
        write_fortnight(file, now=time.time())
        from steelyard.view import app

        serve_until_stopped(
            app(file),
            host="127.0.0.1",
            port=0,
            ready=lambda address: say(f"a made-up fortnight at {address} (Ctrl-C ends it)", err=True),
        )


def _ask(monitor: Monitor) -> list[list[Evaluation]]:
    """Put every question to every chain: a row a question, a column a chain."""
    from steelyard.cli.demo._chain import INVENTED, UNANSWERABLE, build_chain, misled
    from steelyard_langchain import CallbackHandler

    chains = {"plain": build_chain(), "inventing": build_chain(invents=True), "misled": misled()}
    scored: dict[tuple[str, str], Evaluation] = {}

    def keep(one: Evaluation) -> None:
        if one.record is not None:
            scored[one.record.question, one.record.metadata["variant"]] = one

    monitor.on_evaluation(keep)
    handler = CallbackHandler(monitor)
    rows = []
    for question in (*INVENTED, *UNANSWERABLE):
        for variant, chain in chains.items():
            given = {"callbacks": [handler], "tags": ["demo", variant], "metadata": {"variant": variant}}
            chain.invoke(question, given)  # type: ignore[arg-type]  # a mapping of another kind, to mypy
        if monitor.flush(_PATIENCE):
            break
        rows.append([scored[question, variant] for variant in chains])
    return rows


def _table(asked: Sequence[Sequence[Evaluation]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("Question", ratio=4, no_wrap=True, overflow="ellipsis")
    for chain in "AB":
        table.add_column(chain, width=4, justify="right")
    table.add_column("What speaks against B", ratio=5, no_wrap=True, overflow="ellipsis")
    for row in asked:
        record = row[0].record
        cells = [_cell(one["faithfulness"]) for one in row[:2]]
        table.add_row(Text(record.question if record else ""), *cells, Text(_against(row[1]["faithfulness"])))
    return table


def _cell(score: Score) -> Text:
    if score.value is None:
        return Text("n/a" if score.status == "not_applicable" else "fail", style="dim")
    return Text(amount(score.value), style="green" if score.passed else "red")


def _against(score: Score) -> str:
    """The worst verdict in words, or why there is none."""
    if (verdict := worst_verdict(score)) is not None:
        return f'{explain_verdict(verdict)}: "{verdict.about}"'
    return score.explanation if score.value is None else "nothing"


def _difference(asked: Sequence[Sequence[Evaluation]]) -> str:
    """How B differs from A, over the questions that both have a value for."""
    pairs = [(plain["faithfulness"].value, other["faithfulness"].value) for plain, other, _ in asked]
    both = [(one, other) for one, other in pairs if one is not None and other is not None]
    found = paired_difference([one for one, _ in both], [other for _, other in both])
    if found is None or not found.clear:
        return "Chains A and B cannot be told apart on these questions."
    worse = "B" if found.value < 0 else "A"
    return (
        f"Chain {worse} is worse: faithfulness {found.first:.2f} in A, {found.second:.2f} in B; "
        f"B - A {found.value:+.2f}, 95 % {found.low:+.2f} to {found.high:+.2f}, {found.n} questions."
    )


def _name_causes(console: Terminal, asked: Sequence[Sequence[Evaluation]]) -> None:
    """What the bad turns of each chain suffer from, and what mends the most frequent."""
    console.print(Text("Why turns are bad", style="bold"))
    for chain, evaluations in zip("ABC", zip(*asked, strict=True), strict=False):
        found = Counter(one.diagnosis.cause for one in evaluations if one.diagnosis and one.diagnosis.cause)
        said = ", ".join(f"{cause.replace('_', ' ')} {count}" for cause, count in found.most_common(3))
        console.print(Text(f"  {chain}  {said or 'nothing found'}"))
        if found:
            console.print(Text(f"     {MENDS[found.most_common(1)[0][0]]}", style="dim"))
    console.print(Text(""))
