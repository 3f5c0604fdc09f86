"""Small applications to put golden sets to, as a user's module would hold them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from langchain_core.runnables import RunnableLambda

from steelyard.cli.demo._chain import build_chain
from steelyard.golden import Case, GoldenSet, Run, run_golden

LET_GO = threading.Event()
LAMPS = "Ada lit the lamp in 1811."


def chain() -> object:
    """Makes the demo's chain."""
    return build_chain()


def worse() -> object:
    """Makes one that invents."""
    return build_chain(invents=True)


def with_key() -> object:
    """Makes a chain whose input is a mapping."""
    return RunnableLambda(itemgetter("question")) | build_chain()


def answer(question: str) -> dict[str, object]:
    """A function that says what it retrieved."""
    return {"answer": LAMPS, "contexts": [LAMPS, {"text": question}]}


async def answer_later(question: str) -> str:
    """An async function."""
    await asyncio.sleep(0)
    return f"{LAMPS} {len(question)}"


def stream(question: str) -> Iterator[str]:
    """A function that streams."""
    yield from ("Ada ", "lit ", "it.")


def told(question: str, history: list[dict[str, str]]) -> str:
    """A function that is told what was said before."""
    return f"{len(history)}: {history[0]['content'] if history else 'nothing'}"


def whole(case: Case) -> str:
    """A function of the whole case."""
    return case.reference or "nothing"


def unsteady(question: str) -> Any:
    """Raises, hangs, or returns something odd, as the question says."""
    if "raise" in question:
        raise ValueError("the index is gone, key=sk-abcdefgh12345678")
    if "exit" in question:
        raise SystemExit(3)
    if "hang" in question:
        LET_GO.wait(120)
    if "none" in question:
        return None
    if "number" in question:
        return 7
    return LAMPS


async def blocking(question: str) -> str:
    """An async function that blocks its loop."""
    if "hang" in question:
        while not LET_GO.is_set():
            time.sleep(0.05)  # noqa: ASYNC251 - on purpose
    return LAMPS


WEIGHING = GoldenSet(
    name="weighing",
    cases=(
        Case(question="Where were many Roman steelyards found?", reference="At Pompeii.", tags=("rome",)),
        Case(question="How many milligrams is a carat?", reference="200 milligrams.", tags=("units",)),
        Case(question="How much does a blue whale weigh?", kind="unanswerable"),
    ),
)


def ask(app: object, *questions: str, **options: object) -> Run:
    golden = GoldenSet(cases=tuple(Case(question=question) for question in questions))
    return run_golden(golden, app, metrics=[], **options)
