"""Prints through how many of the project's files one LangChain turn goes, from the callback to SQLite.

python scripts/walk.py [--list]

A turn with two passages is recorded, judged by the local judge and written to a new file. It is the second:
what is only done once, by the first, is not counted.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

import steelyard
import steelyard_langchain
from steelyard.judge import LocalJudge
from steelyard.online import Monitor
from steelyard.sinks import SQLiteSink
from steelyard_langchain import CallbackHandler

FOLDERS = tuple(str(Path(str(package.__file__)).parent) for package in (steelyard, steelyard_langchain))
QUESTION = "When was the lighthouse built?"
PASSAGES = ("The lighthouse was built in 1811 by Robert Stevenson.", "The rock is under water at high tide.")


class Walk:
    """Counts calls into the project's files, in every thread."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.steps: Counter[tuple[str, str]] = Counter()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """A profiler's hook."""
        here = frame.f_code.co_filename
        if event != "call" or not here.startswith(FOLDERS):
            return
        self.functions.add((here, frame.f_code.co_qualname))
        before = frame.f_back
        while before is not None and not before.f_code.co_filename.startswith(FOLDERS):
            before = before.f_back
        if before is not None and before.f_code.co_filename != here:
            self.steps[before.f_code.co_filename, here] += 1

    @property
    def files(self) -> list[str]:
        """The files that were called into."""
        return sorted({file for file, _ in self.functions})


class Passages(BaseRetriever):
    """Finds the same passages for every question."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
        return [Document(page_content=text) for text in PASSAGES]


def chain() -> Runnable[str, object]:
    """A retriever, a prompt, a model."""
    prompt = ChatPromptTemplate.from_template("Answer from: {passages}\n\nQuestion: {question}")
    model = FakeListChatModel(responses=["The lighthouse was built in 1811."])
    return {"passages": Passages(), "question": RunnablePassthrough()} | prompt | model


def main() -> None:
    """Walk, and print."""
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        monitor = Monitor(judge=LocalJudge(), sinks=[SQLiteSink(str(Path(folder) / "walk.db"))])
        handler = CallbackHandler(monitor)
        asked = chain()
        asked.invoke(QUESTION, {"callbacks": [handler]})
        monitor.flush(30)
        # Of threads that run already, those of a new Monitor alone can be watched.
        monitor.close()
        threading.setprofile(walk)
        sys.setprofile(walk)
        try:
            monitor = Monitor(judge=LocalJudge(), sinks=[SQLiteSink(str(Path(folder) / "walk.db"))])
            monitor.start()
            handler = CallbackHandler(monitor)
            walk.functions.clear()
            walk.steps.clear()
            asked.invoke(QUESTION, {"callbacks": [handler]})
            pending = monitor.flush(30)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        written = sum(sink.written for sink in monitor.stats().sinks.values())
        monitor.close()
    if pending or not written:
        sys.exit("the turn was not written")
    files = walk.files
    print(f"{len(files)} files, {len(walk.functions)} functions, {walk.steps.total():,} steps between files")
    if "--list" in sys.argv[1:]:
        print("\n".join(file.rpartition("site-packages/")[2] for file in files))


if __name__ == "__main__":
    main()
