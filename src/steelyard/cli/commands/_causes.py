"""`steelyard explain` and `gaps`: why turns are bad, and which questions the documents do not answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from steelyard._internal.text import counted, shorten
from steelyard.cli._judges import JudgeChoice, JudgeOptions, price_words, suite_of
from steelyard.cli._options import (
    BASE_URL,
    KEY_VARIABLE,
    REPLAY,
    RESULTS,
    RETRIEVE,
    SINCE,
    experiments,
    listed,
    takes,
)
from steelyard.cli._say import say
from steelyard.cli._terminal import Terminal
from steelyard.errors import ConfigurationError
from steelyard.record import Record
from steelyard.results import open_results
from steelyard.scores import Diagnosis, Evaluation

if TYPE_CHECKING:
    from steelyard.report.gaps import Gap


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainOptions(JudgeOptions):
    """One call of `steelyard explain`, as it was typed."""

    record: str = Argument(..., metavar="RECORD", help="The record's id.")
    db: str = RESULTS
    replay: str = REPLAY
    retrieve: str = RETRIEVE
    metrics: str = Option(
        "faithfulness,context_sufficiency",
        "--metrics",
        "-m",
        metavar="A,B",
        help="What answers are judged by.",
    )


@takes(ExplainOptions)
def explain(options: ExplainOptions) -> int:
    """Say why one turn is bad.

    With `--replay` the turn is answered again under other conditions (as it was, with nothing to read, from a
    wider search, from fewer passages; six times at most), each answer is judged, and a table shows what
    became of it. Nothing of this is recorded or stored. Without it, the table is that of the Monitor or
    worker that made experiments.

    **Examples**

    - `steelyard explain 5b1c...`
    - `steelyard explain 5b1c... --replay app:replay --retrieve app:search`
    """
    with closing(open_results(options.db)) as reader:
        found = reader.evaluation(options.record)
    if found is None:
        raise ConfigurationError(
            f"there is no turn {options.record!r} in {options.db}; "
            "take an id from `steelyard report` or `serve`"
        )
    if options.replay and found.record is None:
        raise ConfigurationError(
            f"the content of {options.record!r} was not stored, so that it cannot be asked again; "
            "set store_content = true for later turns"
        )
    made = asyncio.run(_tried(options, found.record)) if options.replay and found.record else found
    _show_diagnosis(made.diagnosis)
    return 0


async def _tried(options: ExplainOptions, record: Record) -> Evaluation:
    from steelyard.diagnosis import Laboratory, experiment
    from steelyard.engine import evaluate_one

    laboratory = Laboratory(experiments(options.replay, options.retrieve))
    judge = options.choice().build()
    suite = suite_of(listed(options.metrics), judge)
    async with aclosing(judge):

        async def score(turn: Record) -> Evaluation:
            return await evaluate_one(turn, suite, judge=judge)

        # Judged anew, so that the turn and its replays are held to the same.
        again = await score(record)
        return await experiment(replace(again, record=record), laboratory, score)


def _show_diagnosis(diagnosis: Diagnosis | None) -> None:
    from steelyard.diagnosis import MENDS

    console = Terminal()
    if diagnosis is None:
        console.say("There is nothing to go by: no metric of the answer has a score.")
    elif diagnosis.cause is None:
        console.say(f"Nothing is wrong: {diagnosis.because}")
    else:
        console.say(diagnosis.cause.replace("_", " "), "bold")
        console.say(f"{diagnosis.because} ({diagnosis.rule or 'no rule'})")
        console.say(MENDS[diagnosis.cause], "dim")
    if diagnosis is not None and diagnosis.trials:
        table = Table("Answered", "The answer is", "The same words")
        for one in diagnosis.trials:
            good = "not known" if one.good is None else "good" if one.good else "bad"
            table.add_row(Text(one.name), good, "yes" if one.same else "no")
        console.print(table)


_GROUPS = 20


def gaps(
    db: str = RESULTS,
    since: str = SINCE,
    jsonl: bool = Option(False, "--jsonl", help="One JSON object a line, for those who write documents."),
    name_by: str = Option(
        "", metavar="openai:MODEL", help="A model that names the groups, one request each."
    ),
    base_url: str = BASE_URL,
    api_key_env: str = KEY_VARIABLE,
) -> None:
    """List the questions that found nothing, similar ones together, the twenty most frequent groups first.

    It counts turns whose diagnosis is `outside_collection`, `passage_not_found` or `nothing_retrieved`.
    Questions are compared on this machine; no text leaves it. With `--name-by` a model is sent up to twenty
    questions of each group that is shown, and the use of that is printed at the end.

    **Examples**

    - `steelyard gaps --since 7d`
    - `steelyard gaps --jsonl > to-write.jsonl`
    - `steelyard gaps --name-by openai:gpt-4o-mini`
    """
    from steelyard.report.gaps import find_gaps
    from steelyard.report.period import moment

    choice = JudgeChoice.named(name_by, base_url=base_url, key_variable=api_key_env) if name_by else None
    if choice is not None and choice.kind != "openai":
        raise ConfigurationError(
            f"--name-by {name_by}: only a model that writes can name groups; write openai:MODEL"
        )
    with closing(open_results(db)) as reader:
        found = find_gaps(reader, since=moment(since, now=time.time()))[:_GROUPS]
    if choice is not None:
        found = asyncio.run(_named(found, choice))
    if jsonl:
        _print_lines(found)
    else:
        _print_table(found)


async def _named(found: Sequence[Gap], choice: JudgeChoice) -> list[Gap]:
    from steelyard.judge.chat import ChatWriter
    from steelyard.report.gaps import name_gaps

    async with aclosing(ChatWriter(choice.model, **choice.connection())) as writer:
        named, usage = await name_gaps(found, writer)
    took = [counted(usage.requests, "request")]
    if usage.prompt_tokens:
        took.append(f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out")
    if price := price_words(choice, usage):
        took.append(price)
    if unnamed := sum(not gap.name for gap in named):
        took.append(f"{counted(unnamed, 'group')} got no name")
    say(f"{choice.name}: {', '.join(took)}", err=True)
    return named


def _print_lines(found: Sequence[Gap]) -> None:
    for gap in found:
        line = {
            **({"name": gap.name} if gap.name else {}),
            "question": gap.question,
            "turns": gap.turns,
            "causes": dict(gap.causes),
            "questions": list(gap.questions),
            "records": list(gap.record_ids),
        }
        say(json.dumps(line, ensure_ascii=False))


def _print_table(found: Sequence[Gap]) -> None:
    console = Terminal()
    if not found:
        console.say("No turn lacked what it asked for, as far as turns were diagnosed.")
    for gap in found:
        causes = ", ".join(f"{cause.replace('_', ' ')} {count}" for cause, count in gap.causes.items())
        first, *more = [one for one in (gap.name, shorten(gap.question, 200)) if one]
        console.print(Text.assemble((f"{gap.turns:>5}  ", "bold"), first))
        for line in (*more, causes):
            console.say(f"       {line}", "dim")
