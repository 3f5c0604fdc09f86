"""`steelyard golden`: make golden sets from production and from documents, review them, see what changed."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import typer
from typer import Argument, Option

from steelyard._internal.text import counted, printable, shorten
from steelyard.cli._judges import CostEstimate, JudgeChoice, price_of
from steelyard.cli._options import (
    BASE_URL,
    GOLDEN_SET,
    KEY_VARIABLE,
    RESULTS,
    SINCE,
    YES,
    numbers_by_name,
    takes,
)
from steelyard.cli._terminal import Terminal
from steelyard.errors import ConfigurationError
from steelyard.golden import Case, GoldenSet, load_object, making, mining
from steelyard.golden import diff as find_changes
from steelyard.golden.mining import Review, apply_labels
from steelyard.judge.chat import ChatWriter
from steelyard.report.period import moment


def diff(
    old: Path = Argument(..., metavar="OLD.jsonl"),
    new: Path = Argument(..., metavar="NEW.jsonl"),
) -> None:
    """Show what changed from one version of a golden set to another.

    Exit status: 0 no change; 1 something changed; 2 a file is not a golden set.

    **Examples**

    - `steelyard golden diff old.jsonl new.jsonl`
    """
    before, after = GoldenSet.load(old), GoldenSet.load(new)
    found = find_changes(before, after)
    console = Terminal()
    console.say(f"{before.version} ({len(before)} cases) to {after.version} ({len(after)})", "bold")
    asked = {case.id: case.question for case in (*before, *after)}
    groups = (("+", "green", found.added), ("-", "red", found.removed), ("~", "yellow", (*found.changed,)))
    for sign, style, ids in groups:
        for name in ids:
            what = f" ({', '.join(found.changed[name])})" if name in found.changed else ""
            console.say(f"{sign} {name}  {shorten(asked[name], 100)}{what}", style)
    counts = f"{len(found.removed)} removed, {len(found.changed)} changed"
    console.say(f"{counted(len(found.added), 'case')} added, {counts}")
    if found:
        raise typer.Exit(1)


_MOST_CLUSTERS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class MineOptions:
    """One call of `steelyard golden mine`, as it was typed."""

    out: Path = Argument(..., metavar="OUT.jsonl", help="The golden set to write.")
    db: str = RESULTS
    n: int = Option(50, "--n", "-n", min=1, help="How many cases.")
    metric: str = Option("", help="Only this metric decides what fails.")
    since: str = SINCE
    failing: float = Option(0.3, min=0, max=1, help="The share of failing turns.")
    uncertain: float = Option(0.15, min=0, max=1, help="The share of uncertain turns.")
    mask: str = Option("", metavar="MODULE:FUNCTION", help="Your mask: a function from Record to Record.")


@takes(MineOptions)
def mine(options: MineOptions) -> int:
    """Draw a golden set from what production asked; needs no key.

    Failing and uncertain turns and a fair share of the rest, spread over clusters of questions, drawn with
    known probabilities, which stand in the set: a weighted mean over it estimates production.

    **Examples**

    - `steelyard golden mine cases.jsonl --db steelyard.db --n 50`
    - `steelyard golden mine cases.jsonl --mask my_app.privacy:mask --since 7d`
    """
    out, rest = options.out, max(1 - options.failing - options.uncertain, 0.0)
    _check_new(out)
    found = mining.mine(
        options.db,
        n=options.n,
        metric=options.metric or None,
        since=moment(options.since, now=time.time()),
        shares={"failing": options.failing, "uncertain": options.uncertain, "rest": rest},
        mask=_mask(options.mask) if options.mask else None,
        name=out.stem,
    )
    found.golden.save(out)
    _show_mined(Terminal(), found, out)
    return 0


def _mask(spec: str) -> mining.Mask:
    found = load_object(spec, what="--mask")
    if not callable(found):
        raise ConfigurationError(
            f"--mask {spec!r} is a {type(found).__name__}, not a function; name one as module:function"
        )
    return found


def _check_new(out: Path) -> None:
    """A set is somebody's work once it was reviewed, and no run brings that back."""
    if out.exists():
        raise ConfigurationError(f"{str(out)!r} exists; give another name, or move it away")


def _show_mined(console: Terminal, found: mining.Mined, out: Path) -> None:
    golden = found.golden
    head = (
        f"{counted(len(golden), 'case')} of {counted(found.questions, 'question')} in {found.turns:,} turns"
    )
    console.say(f"{head} > {out} (version {golden.version})", "bold")
    for stratum, (there, taken) in found.strata.items():
        console.say(f"  {stratum:<10} {taken:>5} of {there:,}")
    for name, count in sorted(found.clusters.items(), key=lambda pair: -pair[1])[:_MOST_CLUSTERS]:
        console.say(f"  {count:>5}  {shorten(name, 70) or 'all questions'}", "dim")
    for reason, count in found.left_out.items():
        if count:
            console.say(f"  left out: {count:,} {reason}", "dim")
    console.say(f"Nobody has reviewed them yet: steelyard golden review {out}")


_KEYS = (
    "g the answer is good   b it is bad   k keep without a word on the answer   e edit the reference   "
    "w reword the question   d drop   s skip   q stop"
)
_LONGEST = 1_200
_MOST_CONTEXTS = 4


def review(
    golden: Path = GOLDEN_SET,
    who: str = Option("", "--as", metavar="NAME", help="Who reviews; your user name."),
    labels: str = Option("", metavar="FILE", help="Take the labels of the live view from this results file."),
) -> None:
    """Look at the cases that nobody has reviewed, one by one.

    Every decision is written at once; stop when you like, and continue another day.

    **Examples**

    - `steelyard golden review cases.jsonl --as ada`
    """
    console = Terminal()
    if labels:
        _from_view(console, golden, labels)
        return
    review = Review.open(golden, who=who or _user())
    pending = review.pending
    if not pending:
        console.say(f"all {counted(len(review.golden), 'case')} of {golden} are reviewed")
        return
    console.say(f"{counted(len(pending), 'case')} to review, as {review.who}. {_KEYS}")
    for number, case in enumerate(pending, start=1):
        _show_case(console, case, f"{number} of {len(pending)}")
        if not _decide(console, review, case):
            break
    console.say(f"{counted(len(review.pending), 'case')} left; version {review.golden.version}")


def _decide(console: Terminal, review: Review, case: Case) -> bool:
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
        console.say(_KEYS)


def _asked(what: str) -> str:
    return str(typer.prompt(what, prompt_suffix=": ")).strip()


def _show_case(console: Terminal, case: Case, where: str) -> None:
    console.print()
    console.say(f"{where}  {case.id}  {case.source} {case.kind}".rstrip(), "dim")
    for message in case.history:
        console.say(f"{message.role}: {shorten(message.text, _LONGEST)}", "dim")
    console.say(shorten(case.question, _LONGEST), "bold")
    if case.answer is not None:
        console.say(f"answer: {shorten(case.answer, _LONGEST)}")
    if case.reference:
        console.say(f"reference: {shorten(case.reference, _LONGEST)}", "green")
    for name, texts in (("rests on", case.reference_contexts), ("context", case.contexts)):
        for text in texts[:_MOST_CONTEXTS]:
            console.say(f"{name}: {shorten(text, _LONGEST)}", "dim")
    if scores := case.metadata.get("scores"):
        line = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        console.say(printable(line), "cyan")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise ConfigurationError("who reviews? give a name with --as") from None


def _from_view(console: Terminal, path: Path, db: str) -> None:
    """Take what people said in the live view as the review of the cases of these turns."""
    from steelyard.results import open_labels

    said = [(label.record_id, label.value, label.who) for label in open_labels(db) if label.claim is None]
    golden, found = apply_labels(GoldenSet.load(path), said)
    golden.save(path)
    console.say(f"{counted(found, 'case')} labelled in the view; {len(golden.unreviewed)} left to review")


_NEEDS = (
    "making a golden set needs a model that writes: --judge openai:gpt-4o-mini with OPENAI_API_KEY, or "
    "--judge openai:MODEL --base-url URL for a server of your own. Without one, draw cases from production: "
    "`steelyard golden mine OUT.jsonl --db steelyard.db` needs no key"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MakeOptions:
    """One call of `steelyard golden make`, as it was typed."""

    documents: Path = Argument(
        ..., metavar="DOCS", help="A file or folder: .txt, .md, .rst, or .jsonl with `text`."
    )
    out: Path = Option(Path("golden.jsonl"), "--out", "-o", metavar="OUT.jsonl", help="The set to write.")
    n: int = Option(50, "--n", "-n", min=1, help="How many cases.")
    judge: str = Option("", "--judge", "-j", metavar="openai:MODEL", help="The model that writes and checks.")
    base_url: str = BASE_URL
    api_key_env: str = KEY_VARIABLE
    share: list[str] | None = Option(
        None, metavar="KIND=X", help="Shares of kinds, e.g. single_passage=1; repeatable."
    )
    yes: bool = YES


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
    _check_new(options.out)
    passages = making.read_passages(options.documents)
    shares = cast(
        "dict[making.CaseKind, float] | None",
        numbers_by_name(options.share or (), option="--share", name="kind") or None,
    )
    planned = making.plan(passages, n=options.n, shares=shares)
    console = Terminal(stderr=True)
    dollars, source = price_of(planned.usage, choice.model, choice)
    cost = CostEstimate(usage=planned.usage, dollars=dollars, sources=[source]).words()
    cases = f"{counted(planned.cases, 'case')} from {counted(planned.passages, 'passage')}"
    line = f"{writer.name}: {cases}, about {cost}"
    console.say(line, "bold")
    wanted = ", ".join(f"{count} {kind}" for kind, count in planned.quotas.items() if count)
    console.say(f"{wanted}; {source}", "dim")
    choice.check_agreed(options.yes)
    journal = options.out.with_name(f"{options.out.name}.replies")
    with console.status("Writing and checking ..."):
        made = making.make(
            passages,
            writer=writer,
            n=options.n,
            shares=shares,
            journal=journal,
            name=options.out.stem,
        )
    if len(made.golden):
        made.golden.save(options.out)
    _show_made(Terminal(), made, options.out, journal)
    return 0 if len(made.golden) == options.n else 1


def _writer(options: MakeOptions) -> tuple[ChatWriter, JudgeChoice]:
    key_or_server = options.base_url or options.api_key_env or os.environ.get("OPENAI_API_KEY")
    if options.judge.partition(":")[0] != "openai" or not key_or_server:
        raise ConfigurationError(_NEEDS)
    choice = JudgeChoice.named(
        options.judge, base_url=options.base_url, key_variable=options.api_key_env, concurrency=8
    )
    return ChatWriter(choice.model, **choice.connection()), choice


def _show_made(console: Terminal, made: making.GenerationResult, out: Path, journal: Path) -> None:
    golden = made.golden
    if not len(golden):
        console.say(f"no case was accepted; {str(out)!r} was not written", "red")
    else:
        head = f"{len(golden)} of {counted(made.wanted, 'case')} > {out} (version {golden.version})"
        console.say(head, "bold")
    kinds = [case.kind for case in golden]
    for kind in dict.fromkeys(kinds):
        console.say(f"  {kinds.count(kind):>4}  {kind}")
    for reason, count in made.rejected.items():
        console.say(f"  {count:>4}  rejected: {reason}", "dim")
    each = made.requests_per_case
    if each is not None:
        sent = counted(made.usage.requests, "request")
        resumed = f", {made.resumed} replies from before" if made.resumed else ""
        console.say(f"{sent}, {each:.2f} for each accepted case{resumed}; replies are in {journal}")
        console.say(f"Nobody has reviewed them yet: steelyard golden review {out}")


golden = typer.Typer(
    help="Golden sets: cases that an application must pass, from production or from documents.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
for command in (diff, mine, review, make):
    golden.command()(command)
