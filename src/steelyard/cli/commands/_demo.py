"""`steelyard demo`: a real LangChain chain, scored without a key or a network."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import typer
from rich.table import Table
from rich.text import Text
from typer import Option

from steelyard.cli._say import amount, counted, say
from steelyard.cli._summary import worst_verdict
from steelyard.cli._terminal import Terminal
from steelyard.diagnosis import MENDS
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.judge import LocalJudge
from steelyard.online import Monitor
from steelyard.report import explain_verdict, report
from steelyard.scores import Evaluation, Score
from steelyard.sinks import SQLiteSink
from steelyard.stats import paired_difference

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
    from steelyard.cli._server import check_uvicorn, serve_until_stopped
    from steelyard.cli.demo._fortnight import write_fortnight

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
