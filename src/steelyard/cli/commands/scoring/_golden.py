"""`steelyard golden`: make golden sets from production and from documents, review them, see what changed."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from steelyard import golden
from steelyard._internal.text import printable, shorten
from steelyard.cli._judges import CostEstimate, JudgeChoice, price_of
from steelyard.cli._options import BaseUrl, GoldenSetFile, KeyVariable, Results, Yes, numbers_by_name, takes
from steelyard.cli._say import counted
from steelyard.cli._terminal import terminal
from steelyard.errors import ConfigurationError
from steelyard.golden import Case, GoldenSet, making, mining
from steelyard.golden.mining import Review, apply_labels
from steelyard.golden.running import load_object
from steelyard.judge.chat import ChatWriter


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD.jsonl")],
    new: Annotated[Path, typer.Argument(metavar="NEW.jsonl")],
) -> None:
    """Show what changed from one version of a golden set to another.

    Exit status: 0 no change; 1 something changed; 2 a file is not a golden set.

    **Examples**

    - `steelyard golden diff old.jsonl new.jsonl`
    """
    before, after = GoldenSet.load(old), GoldenSet.load(new)
    found = golden.diff(before, after)
    console = terminal()
    console.print(
        Text(f"{before.version} ({len(before)} cases) to {after.version} ({len(after)})", style="bold")
    )
    asked = {case.id: case.question for case in (*before, *after)}
    groups = (("+", "green", found.added), ("-", "red", found.removed), ("~", "yellow", (*found.changed,)))
    for sign, style, ids in groups:
        for name in ids:
            what = f" ({', '.join(found.changed[name])})" if name in found.changed else ""
            console.print(
                Text(f"{sign} {name}  {shorten(asked[name], 100)}{what}", style=style), soft_wrap=True
            )
    counts = f"{len(found.removed)} removed, {len(found.changed)} changed"
    console.print(f"{counted(len(found.added), 'case')} added, {counts}")
    if found:
        raise typer.Exit(1)


_MOST_CLUSTERS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class MineOptions:
    """One call of `steelyard golden mine`, as it was typed."""

    out: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="The golden set to write.")]
    db: Results = "steelyard.db"
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many cases.")] = 50
    metric: Annotated[str, typer.Option(help="Only this metric decides what fails.")] = ""
    days: Annotated[float, typer.Option(min=0, help="Only the last so many days; 0: all.")] = 0
    failing: Annotated[float, typer.Option(min=0, max=1, help="The share of failing turns.")] = 0.3
    uncertain: Annotated[float, typer.Option(min=0, max=1, help="The share of uncertain turns.")] = 0.15
    mask: Annotated[
        str, typer.Option(metavar="MODULE:FUNCTION", help="Your mask: a function from Record to Record.")
    ] = ""
    seed: Annotated[int, typer.Option(help="The same seed and file draw the same cases.")] = 0
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.")] = False


@takes(MineOptions)
def mine(options: MineOptions) -> int:
    """Draw a golden set from what production asked; needs no key.

    Failing and uncertain turns and a fair share of the rest, spread over clusters of questions, drawn with
    known probabilities, which stand in the set: a weighted mean over it estimates production.

    **Examples**

    - `steelyard golden mine cases.jsonl --db steelyard.db --n 50`
    - `steelyard golden mine cases.jsonl --mask my_app.privacy:mask --days 7`
    """
    out, rest = options.out, max(1 - options.failing - options.uncertain, 0.0)
    check_new(out, force=options.force)
    found = mining.mine(
        options.db,
        n=options.n,
        metric=options.metric or None,
        since=time.time() - options.days * 86_400 if options.days else None,
        shares={"failing": options.failing, "uncertain": options.uncertain, "rest": rest},
        mask=_mask(options.mask) if options.mask else None,
        seed=options.seed,
        name=out.stem,
    )
    found.golden.save(out)
    _show_mined(terminal(), found, out)
    return 0


def _mask(spec: str) -> mining.Mask:
    found = load_object(spec, what="--mask")
    if not callable(found):
        raise ConfigurationError(
            f"--mask {spec!r} is a {type(found).__name__}, not a function; name one as module:function"
        )
    return found


# A set is somebody's work once it was reviewed, and no run brings that back.
def check_new(out: Path, *, force: bool) -> None:
    """Refuse to write over a set that somebody may have reviewed."""
    if out.exists() and not force:
        raise ConfigurationError(f"{str(out)!r} exists; give another name, or --force to replace it")


def _show_mined(console: Console, found: mining.Mined, out: Path) -> None:
    golden = found.golden
    head = (
        f"{counted(len(golden), 'case')} of {counted(found.questions, 'question')} in {found.turns:,} turns"
    )
    console.print(Text(f"{head} > {out} (version {golden.version})", style="bold"), soft_wrap=True)
    for stratum, (there, taken) in found.strata.items():
        console.print(f"  {stratum:<10} {taken:>5} of {there:,}")
    for name, count in sorted(found.clusters.items(), key=lambda pair: -pair[1])[:_MOST_CLUSTERS]:
        console.print(Text(f"  {count:>5}  {shorten(name, 70) or 'all questions'}", style="dim"))
    for reason, count in found.left_out.items():
        if count:
            console.print(Text(f"  left out: {count:,} {reason}", style="dim"))
    console.print(f"Nobody has reviewed them yet: steelyard golden review {out}", soft_wrap=True)


_KEYS = (
    "g the answer is good   b it is bad   k keep without a word on the answer   e edit the reference   "
    "w reword the question   d drop   s skip   q stop"
)
_LONGEST = 1_200
_MOST_CONTEXTS = 4


def review(
    golden: GoldenSetFile,
    who: Annotated[str, typer.Option("--as", metavar="NAME", help="Who reviews; your user name.")] = "",
    labels: Annotated[
        str, typer.Option(metavar="FILE", help="Take the labels of the live view from this results file.")
    ] = "",
) -> None:
    """Look at the cases that nobody has reviewed, one by one.

    Every decision is written at once; stop when you like, and continue another day.

    **Examples**

    - `steelyard golden review cases.jsonl --as ada`
    """
    console = terminal()
    if labels:
        _from_view(console, golden, labels)
        return
    review = Review.open(golden, who=who or _user())
    pending = review.pending
    if not pending:
        console.print(f"all {counted(len(review.golden), 'case')} of {golden} are reviewed")
        return
    console.print(f"{counted(len(pending), 'case')} to review, as {review.who}. {_KEYS}", soft_wrap=True)
    for number, case in enumerate(pending, start=1):
        _show_case(console, case, f"{number} of {len(pending)}")
        if not _decide(console, review, case):
            break
    console.print(f"{counted(len(review.pending), 'case')} left; version {review.golden.version}")


def _decide(console: Console, review: Review, case: Case) -> bool:
    """Ask until there is a decision; False where the person stops."""
    actions: dict[str, Callable[[], None]] = {
        "g": lambda: review.accept(case, label="good"),
        "b": lambda: review.accept(case, label="bad"),
        "k": lambda: review.accept(case),
        "e": lambda: review.accept(case, reference=_asked("reference")),
        "w": lambda: review.accept(case, question=_asked("question")),
        "d": lambda: review.drop(case),
        "s": lambda: None,
    }
    while True:
        try:
            key = typer.prompt("g b k e w d s q", prompt_suffix=" > ").strip().lower()
        # Ctrl-C and the end of the input mean the same as q: what was decided is saved.
        except (typer.Abort, EOFError):
            return False
        if key == "q":
            return False
        if key in actions:
            actions[key]()
            return True
        console.print(_KEYS, soft_wrap=True)


def _asked(what: str) -> str:
    return str(typer.prompt(what, prompt_suffix=": ")).strip()


def _show_case(console: Console, case: Case, where: str) -> None:
    console.print()
    console.print(
        Text(f"{where}  {case.id}  {case.source} {case.kind}".rstrip(), style="dim"), soft_wrap=True
    )
    for message in case.history:
        console.print(Text(f"{message.role}: {shorten(message.text, _LONGEST)}", style="dim"), soft_wrap=True)
    console.print(Text(shorten(case.question, _LONGEST), style="bold"), soft_wrap=True)
    if case.answer is not None:
        console.print(Text(f"answer: {shorten(case.answer, _LONGEST)}"), soft_wrap=True)
    if case.reference:
        console.print(Text(f"reference: {shorten(case.reference, _LONGEST)}", style="green"), soft_wrap=True)
    for name, texts in (("rests on", case.reference_contexts), ("context", case.contexts)):
        for text in texts[:_MOST_CONTEXTS]:
            console.print(Text(f"{name}: {shorten(text, _LONGEST)}", style="dim"), soft_wrap=True)
    if scores := case.metadata.get("scores"):
        line = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        console.print(Text(printable(line), style="cyan"), soft_wrap=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise ConfigurationError("who reviews? give a name with --as") from None


def _from_view(console: Console, path: Path, db: str) -> None:
    """Take what people said in the live view as the review of the cases of these turns."""
    from steelyard.report import open_labels

    said = [(label.record_id, label.value, label.who) for label in open_labels(db) if label.claim is None]
    golden, found = apply_labels(GoldenSet.load(path), said)
    golden.save(path)
    console.print(f"{counted(found, 'case')} labelled in the view; {len(golden.unreviewed)} left to review")


_NEEDS = (
    "making a golden set needs a model that writes: --judge openai:gpt-4o-mini with OPENAI_API_KEY, or "
    "--judge openai:MODEL --base-url URL for a server of your own. Without one, draw cases from production: "
    "`steelyard golden mine OUT.jsonl --db steelyard.db` needs no key"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MakeOptions:
    """One call of `steelyard golden make`, as it was typed."""

    documents: Annotated[
        Path, typer.Argument(metavar="DOCS", help="A file or folder: .txt, .md, .rst, or .jsonl with `text`.")
    ]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT.jsonl", help="The set to write.")] = Path(
        "golden.jsonl"
    )
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many cases.")] = 50
    judge: Annotated[
        str, typer.Option("--judge", "-j", metavar="openai:MODEL", help="The model that writes and checks.")
    ] = ""
    base_url: BaseUrl = ""
    api_key_env: KeyVariable = ""
    share: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=X", help="Shares of kinds, e.g. single_passage=1; repeatable."),
    ] = None
    seed: Annotated[int, typer.Option(help="The same seed and documents make the same set.")] = 0
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 8
    yes: Yes = False
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.")] = False


@takes(MakeOptions)
def make(options: MakeOptions) -> int:
    """Have a model write a golden set about documents, and check it.

    Single-passage, multi-passage, comparison, follow-up, unanswerable and false-premise questions. Every case
    carries the sentences that it rests on, found word for word in the documents; a critic sees only these.

    The plan and its price come first; nothing is sent without `--yes`. Replies are kept in OUT.jsonl.replies:
    interrupted work resumes where it stopped.

    Exit status: 0 fine; 1 fewer cases than asked for (the reasons are listed); 2 wrong usage, or no `--yes`.

    **Examples**

    - `steelyard golden make docs/ --n 50 --judge openai:gpt-4o-mini`
    - `steelyard golden make docs/ --judge openai:qwen3 --base-url http://127.0.0.1:8000/v1 --yes`
    """
    writer, choice = _writer(options)
    check_new(options.out, force=options.force)
    passages = making.read_passages(options.documents)
    shares = cast(
        "dict[making.CaseKind, float] | None",
        numbers_by_name(options.share or (), option="--share", name="kind") or None,
    )
    planned = making.plan(passages, n=options.n, shares=shares, seed=options.seed)
    console = terminal(stderr=True)
    dollars, source = price_of(planned.usage, choice.model, choice)
    cost = CostEstimate(usage=planned.usage, dollars=dollars, sources=[source]).words()
    cases = f"{counted(planned.cases, 'case')} from {counted(planned.passages, 'passage')}"
    line = f"{writer.name}: {cases}, about {cost}"
    console.print(Text(line, style="bold"), soft_wrap=True)
    wanted = ", ".join(f"{count} {kind}" for kind, count in planned.quotas.items() if count)
    console.print(Text(f"{wanted}; {source}", style="dim"), soft_wrap=True)
    if not options.yes:
        raise ConfigurationError("nothing was sent; add --yes to make the set at that price")
    journal = options.out.with_name(f"{options.out.name}.replies")
    with console.status("Writing and checking ..."):
        made = making.make(
            passages,
            writer=writer,
            n=options.n,
            shares=shares,
            seed=options.seed,
            journal=journal,
            concurrency=options.concurrency,
            name=options.out.stem,
        )
    if len(made.golden):
        made.golden.save(options.out)
    _show_made(terminal(), made, options.out, journal)
    return 0 if len(made.golden) == options.n else 1


def _writer(options: MakeOptions) -> tuple[ChatWriter, JudgeChoice]:
    key_or_server = options.base_url or options.api_key_env or os.environ.get("OPENAI_API_KEY")
    if options.judge.partition(":")[0] != "openai" or not key_or_server:
        raise ConfigurationError(_NEEDS)
    choice = JudgeChoice.named(
        options.judge,
        base_url=options.base_url,
        key_variable=options.api_key_env,
        concurrency=options.concurrency,
    )
    return ChatWriter(choice.model, **choice.connection()), choice


def _show_made(console: Console, made: making.GenerationResult, out: Path, journal: Path) -> None:
    golden = made.golden
    if not len(golden):
        console.print(
            Text(f"no case was accepted; {str(out)!r} was not written", style="red"), soft_wrap=True
        )
    else:
        head = f"{len(golden)} of {counted(made.wanted, 'case')} > {out} (version {golden.version})"
        console.print(Text(head, style="bold"), soft_wrap=True)
    kinds = [case.kind for case in golden]
    for kind in dict.fromkeys(kinds):
        console.print(f"  {kinds.count(kind):>4}  {kind}")
    for reason, count in made.rejected.items():
        console.print(Text(f"  {count:>4}  rejected: {reason}", style="dim"))
    each = made.requests_per_case
    if each is not None:
        sent = counted(made.usage.requests, "request")
        resumed = f", {made.resumed} replies from before" if made.resumed else ""
        console.print(
            f"{sent}, {each:.2f} for each accepted case{resumed}; replies are in {journal}", soft_wrap=True
        )
        console.print(f"Nobody has reviewed them yet: steelyard golden review {out}", soft_wrap=True)


app = typer.Typer(
    help="Golden sets: cases that an application must pass, from production or from documents.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
for command in (diff, mine, review, make):
    app.command()(command)
