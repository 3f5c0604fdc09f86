"""`steelyard gaps`: the questions that the collection does not answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli._judges import JudgeChoice, price_words
from steelyard.cli._options import BaseUrl, KeyVariable, Results, Since
from steelyard.cli._say import counted, say
from steelyard.cli._terminal import terminal
from steelyard.errors import ConfigurationError

if TYPE_CHECKING:
    from steelyard.report.gaps import Gap


def gaps(
    db: Results = "steelyard.db",
    since: Since = "",
    most: Annotated[int, typer.Option("--most", min=1, help="Groups to show.")] = 20,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="One JSON object a line, for those who write documents.")
    ] = False,
    name_by: Annotated[
        str, typer.Option(metavar="openai:MODEL", help="A model that names the groups, one request each.")
    ] = "",
    base_url: BaseUrl = "",
    api_key_env: KeyVariable = "",
) -> None:
    """List the questions that found nothing, similar ones together, the most frequent first.

    It counts turns whose diagnosis is `outside_collection`, `passage_not_found` or `nothing_retrieved`.
    Questions are compared on this machine; no text leaves it. With `--name-by` a model is sent up to twenty
    questions of each group that is shown, and the use of that is printed at the end.

    **Examples**

    - `steelyard gaps --since 7d`
    - `steelyard gaps --jsonl > to-write.jsonl`
    - `steelyard gaps --name-by openai:gpt-4o-mini`
    """
    from steelyard.report import open_results
    from steelyard.report.gaps import find_gaps
    from steelyard.report.period import moment

    choice = _namer(name_by, base_url, api_key_env)
    with closing(open_results(db)) as reader:
        found = find_gaps(reader, since=moment(since, now=time.time()))[:most]
    if choice is not None:
        found = asyncio.run(_named(found, choice))
    if jsonl:
        _print_lines(found)
    else:
        _print_table(found)


def _namer(name: str, base_url: str, key_variable: str) -> JudgeChoice | None:
    if not name:
        return None
    choice = JudgeChoice.named(name, base_url=base_url, key_variable=key_variable)
    if choice.kind != "openai":
        raise ConfigurationError(
            f"--name-by {name}: only a model that writes can name groups; write openai:MODEL"
        )
    return choice


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
    from rich.text import Text

    from steelyard._internal.text import shorten

    console = terminal()
    if not found:
        console.print("No turn lacked what it asked for, as far as turns were diagnosed.")
    for gap in found:
        causes = ", ".join(f"{cause.replace('_', ' ')} {count}" for cause, count in gap.causes.items())
        first, *more = [one for one in (gap.name, shorten(gap.question, 200)) if one]
        console.print(Text.assemble((f"{gap.turns:>5}  ", "bold"), first))
        for line in (*more, causes):
            console.print(Text(f"       {line}", style="dim"))
