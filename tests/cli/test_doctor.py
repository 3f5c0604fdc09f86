"""`steelyard doctor` on programs and spans: what was taken for what, and nothing else is done."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

from collect.parts import ANSWER, QUESTION, TEXTS, protobuf, turn_spans

LANGCHAIN = """
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain.agents import create_agent
from langchain_core.tools import tool
from steelyard import Monitor
from steelyard_langchain import attach

class Model(GenericFakeChatModel):
    def bind_tools(self, *args, **kwargs): return self

@tool
def find_notes(query: str) -> str:
    "Find notes."
    return "The lighthouse was built \\x1b[2J\\u202ein 1811 by Robert Stevenson."

if __name__ == "__main__":
    attach(Monitor())  # the application's own: neither judges nor stores while it is looked at
    call = {"name": "find_notes", "args": {"query": "lighthouse"}, "id": "1"}
    model = Model(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("It was built in 1811.")]))
    agent = create_agent(model, [find_notes])
    print(agent.invoke({"messages": [("user", "When was the lighthouse built?")]})["messages"][-1].content)
    guessed = "Use it.\\n\\nContext:\\nThe sea is deep and blue.\\n\\nQuestion: What is deep?\\nAnswer:"
    for number in range(3):
        Model(messages=iter([AIMessage("The sea is deep.")])).invoke(guessed)
"""
LLAMAINDEX = """
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from steelyard_llamaindex import record

if __name__ == "__main__":
    Settings.llm, Settings.embed_model = MockLLM(max_tokens=5), MockEmbedding(embed_dim=8)
    index = VectorStoreIndex([TextNode(text="The lighthouse was built in 1811.")])
    index.as_query_engine().query("When was the lighthouse built?")
    with record("When was the lamp replaced?") as turn:
        turn.contexts = ["The lamp was replaced in 1868."]
        turn.answer = str(Settings.llm.complete("The lamp was replaced in 1868. When?"))
"""
COMMAND = [sys.executable, "-c", "from steelyard.cli import main; main()", "doctor"]


def doctor(folder: Path, source: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(source)
    command = [*COMMAND, "--live", *options, "--", "python", "app.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150, check=False)


def test_an_application_of_langchain_is_told_what_was_taken_and_what_settles_each_doubt(
    tmp_path: Path,
) -> None:
    ran = doctor(tmp_path, LANGCHAIN, ["--turns", "2"])
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.split("turn 1  ")[1].split("turn 2  ")
    assert "question    known, from input, messages\n              When was the lighthouse built?" in first
    assert "passage 1   known, from tool find_notes, 100 % of it in the prompt" in first
    assert "answer      known, from reply of model Model\n              It was built in 1811." in first
    assert "tool find_notes returned counts as evidence\n  settled by  tool_contexts=" in first
    assert "\x1b" not in ran.stdout and "\u202e" not in ran.stdout
    assert "question    guessed, from input, messages\n              What is deep?" in second
    assert "passage 1   guessed, from prompt of model Model" in second
    assert re.search(r"contexts_guessed: .*\n  settled by  context_key=", second)
    assert re.search(r"question_guessed: .*\n  settled by  question_key=", second)
    assert "turn 3" not in ran.stdout and "2 turns shown; passages: known 1, guessed 1" in ran.stdout
    # Neither doctor nor the application's own Monitor has stored anything.
    assert [path.name for path in tmp_path.iterdir()] == ["app.py"]


def test_an_application_of_llamaindex_is_told_what_it_said_itself(tmp_path: Path) -> None:
    ran = doctor(tmp_path, LLAMAINDEX)
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.split("turn 1  ")[1].split("turn 2  ")
    assert "question    known, from input" in first
    assert "passage 1   known, from retriever VectorIndexRetriever, 100 % of it in the prompt" in first
    assert "answer      known, from reply of model MockLLM" in first
    for part in ("question  ", "passage 1 ", "answer    "):
        assert f"{part}  told, from record()" in second
    assert [path.name for path in tmp_path.iterdir()] == ["app.py"]


def test_a_program_without_a_turn_is_said_and_its_own_status_stays(tmp_path: Path) -> None:
    ran = doctor(tmp_path, "print('hello')")
    assert ran.returncode == 1 and "no RAG turn was seen in this process" in ran.stdout
    assert doctor(tmp_path, "raise SystemExit(7)").returncode == 7


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--live", "--", "python"], "name a program"),
        (["--live", "--", "nowhere.py"], "does not exist"),
        (["--live", "--", "-m", "no_such_module"], "no module is named"),
        (["--live", "traces.jsonl"], "is not a program"),
        (["--otlp", "4318", "traces.jsonl"], "give either"),
    ],
)
def test_what_cannot_be_watched_is_told(tmp_path: Path, words: list[str], said: str) -> None:
    command = [*COMMAND, *words]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2 and said in ran.stderr


def test_spans_that_are_sent_are_told_until_so_many_turns_were_shown(tmp_path: Path) -> None:
    watching = subprocess.Popen(
        [*COMMAND, "--otlp", "0", "--turns", "1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watching.stderr is not None
        address = re.search(r"http\S+v1/traces", watching.stderr.readline())
        assert address is not None
        request = urllib.request.Request(
            address[0], protobuf(turn_spans()), {"content-type": "application/x-protobuf"}
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            assert reply.status == 200
        out, errors = watching.communicate(timeout=60)
    finally:
        watching.kill()
    assert watching.returncode == 0, errors
    assert "turn 1  opentelemetry" in out and "1 turn shown; passages: known 1" in out
    for text in (QUESTION, *TEXTS, ANSWER):
        assert text in out
    assert "question    known" in out and "passage 1   known" in out
    assert not list(tmp_path.iterdir())


def test_watching_spans_ends_with_a_signal(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--otlp", "0"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stderr is not None
        address = re.search(r"http\S+:\d+/", watching.stderr.readline())
        assert address is not None
        with urllib.request.urlopen(f"{address[0]}healthz", timeout=30) as reply:
            assert reply.status == 200
        watching.send_signal(signal.SIGTERM)
        out, _ = watching.communicate(timeout=60)
    assert watching.returncode == 1 and "0 turns shown" in out
