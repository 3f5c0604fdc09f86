"""`steelyard run`: programs that know nothing of Steelyard, run as processes of their own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

import programs

APP = """
import sys
import threading

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content="Paris is the capital of France.")]


if __name__ == "__main__":
    chain = (
        RunnableLambda(lambda asked: {"context": Shelf().invoke(asked)[0].page_content, "question": asked})
        | ChatPromptTemplate.from_template("{context} {question}")
        | FakeListChatModel(responses=["Paris is the capital of France."])
        | StrOutputParser()
    )

    def ask():
        if sys.argv[1] == "--later":
            threading.main_thread().join()
        print(sys.argv, chain.invoke("What is the capital of France?"))

    asking = threading.Thread(target=ask)
    asking.start()
    if sys.argv[1] != "--later":
        asking.join()
    sys.exit(int(sys.argv[-1]))
"""


def steelyard(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*programs.STEELYARD, *arguments]
    return programs.run(command, source=APP, ours=True, cwd=folder, timeout=150)


@pytest.mark.parametrize("option", ["--port", "--later"])
@pytest.mark.parametrize("program", [["app.py"], ["-m", "app"]])
def test_a_program_is_recorded_and_judged(tmp_path: Path, program: list[str], option: str) -> None:
    """Threads that outlast it as well."""
    (tmp_path / "app.py").write_text(APP)
    ran = steelyard(tmp_path, "run", *program, option, "3")
    assert ran.returncode == 3, ran.stderr
    assert f"'{option}', '3'] Paris is the capital of France." in ran.stdout
    with closing(sqlite3.connect(tmp_path / "steelyard.db")) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        dump = "\n".join(database.iterdump())
    assert tables
    assert "faithfulness" in dump
    assert "What is the capital of France?" in dump


def test_wrong_programs(tmp_path: Path) -> None:
    missing = steelyard(tmp_path, "run", "nowhere.py")
    assert missing.returncode == 2
    assert "'nowhere.py' does not exist" in missing.stderr
    module = steelyard(tmp_path, "run", "-m", "no_such_module")
    assert module.returncode == 2
    assert "no module is named 'no_such_module'" in module.stderr
    assert not os.path.exists(tmp_path / "steelyard.db")


def test_a_program_that_fails_fails_as_it_would(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("raise ZeroDivisionError('as it is')")
    ran = steelyard(tmp_path, "run", "app.py")
    assert ran.returncode == 1
    assert "ZeroDivisionError: as it is" in ran.stderr


def test_without_any_framework_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print('ran')")
    hidden = "import sys; sys.modules.update(langchain_core=None, llama_index_instrumentation=None); "
    command = ["-c", hidden + "from steelyard.cli import main; main()", "run", "app.py"]
    ran = programs.run(command, ours=True, cwd=tmp_path, timeout=150)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "steelyard[langchain]" in ran.stderr
