"""`steelyard explain`: why one turn is bad, by what was recorded and, if asked, by experiments."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli._judges import JudgeChoice, JudgeOptions, suite_of
from steelyard.cli._options import Metrics, Replay, Results, Retrieve, experiments, listed, takes
from steelyard.cli._terminal import terminal
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.diagnosis import Experiments
    from steelyard.scores import Diagnosis, Evaluation


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainOptions(JudgeOptions):
    """One call of `steelyard explain`, as it was typed."""

    record: Annotated[str, typer.Argument(metavar="RECORD", help="The record's id.")]
    db: Results = "steelyard.db"
    replay: Replay = ""
    retrieve: Retrieve = ""
    calls: Annotated[int, typer.Option(min=1, max=50, help="Calls of `replay` at most.")] = 6
    metrics: Metrics = "faithfulness,context_sufficiency"


@takes(ExplainOptions)
def explain(options: ExplainOptions) -> int:
    """Say why one turn is bad.

    With `--replay` the turn is answered again under other conditions (as it was, with nothing to read, from a
    wider search, from fewer passages), each answer is judged, and a table shows what became of it. Nothing of
    this is recorded or stored. Without it, the table is that of the Monitor or worker that made experiments.

    **Examples**

    - `steelyard explain 5b1c...`
    - `steelyard explain 5b1c... --replay app:replay --retrieve app:search`
    """
    from steelyard.report import open_results

    with closing(open_results(options.db)) as reader:
        found = reader.evaluation(options.record)
    if found is None:
        raise ConfigurationError(
            f"there is no turn {options.record!r} in {options.db}; "
            "take an id from `steelyard report` or `serve`"
        )
    if not options.replay:
        _show(found.diagnosis)
        return 0
    if found.record is None:
        raise ConfigurationError(
            f"the content of {options.record!r} was not stored, so that it cannot be asked again; "
            "set store_content = true for later turns"
        )
    bounds = {"per_turn": options.calls, "per_day": options.calls}
    tried = experiments(options.replay, options.retrieve, **bounds)
    made = asyncio.run(_tried(found, tried, options.choice(), listed(options.metrics)))
    _show(made.diagnosis)
    return 0


async def _tried(
    found: Evaluation, options: Experiments, choice: JudgeChoice, names: tuple[str, ...]
) -> Evaluation:
    from steelyard.diagnosis import Laboratory, experiment
    from steelyard.engine import evaluate_one
    from steelyard.record import Record

    judge = choice.build()
    suite = suite_of(names, judge)
    async with aclosing(judge):

        async def score(turn: Record) -> Evaluation:
            return await evaluate_one(turn, suite, judge=judge)

        assert found.record is not None
        # Judged anew, so that the turn and its replays are held to the same.
        again = await score(found.record)
        return await experiment(replace(again, record=found.record), Laboratory(options), score)


def _show(diagnosis: Diagnosis | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from steelyard.diagnosis import MENDS

    console = terminal()
    if diagnosis is None:
        console.print("There is nothing to go by: no metric of the answer has a score.")
    elif diagnosis.cause is None:
        console.print(Text(f"Nothing is wrong: {diagnosis.because}"))
    else:
        console.print(Text(diagnosis.cause.replace("_", " "), style="bold"))
        console.print(Text(f"{diagnosis.because} ({diagnosis.rule or 'no rule'})"))
        console.print(Text(MENDS[diagnosis.cause], style="dim"))
    if diagnosis is not None and diagnosis.trials:
        table = Table("Answered", "The answer is", "The same words")
        for one in diagnosis.trials:
            good = "not known" if one.good is None else "good" if one.good else "bad"
            table.add_row(Text(one.name), good, "yes" if one.same else "no")
        console.print(table)
