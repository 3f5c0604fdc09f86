"""`steelyard doctor` on programs and spans: what was taken for what, and nothing else is done."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

import programs
from cli.running import Outcome, Steelyard
from collect.parts import ANSWER, QUESTION, TEXTS, protobuf, turn_spans
from sinks.vendor_server import VendorServer
from steelyard import Context, Monitor, Record
from steelyard.cli.commands import _serve
from steelyard.errors import JudgeRejected
from steelyard.metrics import Faithfulness
from steelyard.testing import ScriptedJudge

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
COMMAND = [*programs.STEELYARD, "doctor"]


def doctor(folder: Path, source: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(source)
    command = [*COMMAND, "--live", *options, "--", "python", "app.py"]
    return programs.run(command, source=source, ours=True, cwd=folder, timeout=150)


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
        (["--live", "--otlp", "4318"], "give either"),
        (["app.py"], "app.py"),
        (["traces.jsonl", "--turns", "2"], "put '--turns' before the files"),
    ],
)
def test_what_cannot_be_watched_is_told(tmp_path: Path, words: list[str], said: str) -> None:
    ran = programs.run([*COMMAND, *words], ours=True, cwd=tmp_path, timeout=150)
    assert ran.returncode == 2 and said in ran.stderr


def test_spans_that_are_sent_are_told_until_so_many_turns_were_shown(tmp_path: Path) -> None:
    command = [*COMMAND, "--otlp", "0", "--turns", "1"]
    watching = programs.start(command, ours=True, live=True, cwd=tmp_path)
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
    assert re.search("turn 1  opentelemetry [0-9a-f]{32} ok\n", out) and "passages    none" not in out
    assert "1 turn shown; passages: known 1" in out
    for text in (QUESTION, *TEXTS, ANSWER):
        assert text in out
    assert "question    known" in out and "passage 1   known" in out
    assert not list(tmp_path.iterdir())


def test_watching_spans_ends_with_a_signal(tmp_path: Path) -> None:
    with programs.start([*COMMAND, "--otlp", "0"], ours=True, live=True, cwd=tmp_path) as watching:
        assert watching.stderr is not None
        address = re.search(r"http\S+:\d+/", watching.stderr.readline())
        assert address is not None
        with urllib.request.urlopen(f"{address[0]}healthz", timeout=30) as reply:
            assert reply.status == 200
        watching.send_signal(signal.SIGTERM)
        out, _ = watching.communicate(timeout=60)
    assert watching.returncode == 1 and "0 turns shown" in out


TURN = Record(
    question="When was it built?",
    contexts=(Context(text="The lighthouse was built in 1811."),),
    answer="It was built in 1811.",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("LANGSMITH_API_KEY", "DD_LLMOBS_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def marked(outcome: Outcome, mark: str) -> list[str]:
    return re.findall(rf"^{mark} +(.*)$", outcome.out, re.MULTILINE)


def test_a_password_in_the_settings_is_not_printed(steelyard: Steelyard, folder: Path) -> None:
    (folder / "steelyard.toml").write_text('sinks = ["postgresql://ann:Tr0ub4dor@127.0.0.1:9/db"]\n')
    looked = steelyard("doctor")
    assert looked.status == 1 and "127.0.0.1:9/db" in looked.out and "without a password" in looked.out
    assert "Tr0ub4dor" not in looked.out + looked.err


@pytest.mark.parametrize("sink", ["sqlite:scores.db", "jsonl:scores.jsonl"])
def test_a_set_up_is_well_once_a_turn_has_arrived(steelyard: Steelyard, folder: Path, sink: str) -> None:
    (folder / "steelyard.toml").write_text(f'sinks = ["{sink}"]\n')
    first = steelyard("doctor")
    [missing] = marked(first, "fix")
    assert first.status == 1 and missing.startswith("no turn has arrived in")
    assert "add the lines that `steelyard init` shows" in missing
    # Looking makes no file.
    assert [path.name for path in folder.iterdir()] == ["steelyard.toml"]
    monitor = Monitor(metrics=["faithfulness"])
    monitor.submit(TURN)
    monitor.close(60)
    then = steelyard("doctor")
    assert then.status == 0 and marked(then, "fix") == []
    said = "\n".join(marked(then, "ok"))
    assert "settings from steelyard.toml" in said
    assert "the judge 'local' scored a turn, 4 metrics" in said
    assert re.search(r"^1 turn in .*, the latest just now$", said, re.MULTILINE)


def test_each_thing_that_is_wrong_comes_with_its_mend(
    steelyard: Steelyard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with VendorServer(lambda request: (401, {"error": {"message": "no such key"}})) as server:
        (folder / "steelyard.toml").write_text(
            f"""judge = "openai:small"
            base_url = "{server.url}/v1"
            metrics = ["faithfulness"]
            sample_rate = 0.5
            sinks = ["langfuse", "jsonl:missing/a.jsonl", "datadog"]"""
        )
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-hidden")
        monkeypatch.delenv("DD_API_KEY", raising=False)
        outcome = steelyard("doctor")
    judge, langfuse, file, datadog = marked(outcome, "fix")
    assert outcome.status == 1
    assert "the judge 'openai:small' gave no score for 1 metric" in judge and "set the key" in judge
    assert "the sink langfuse: HTTP 401" in langfuse and "set the key" in langfuse
    assert "its folder is missing" in file and "make the folder" in file
    assert "DD_LLMOBS_ML_APP" in datadog
    assert any("set a `sample_key` (`steelyard init` does)" in note for note in marked(outcome, "note"))
    assert "sk-hidden" not in outcome.out


def test_settings_that_cannot_work_end_the_look(steelyard: Steelyard, folder: Path) -> None:
    (folder / "steelyard.toml").write_text("sampel_rate = 0.5\n")
    outcome = steelyard("doctor")
    [only] = marked(outcome, "fix")
    assert outcome.status == 1 and "did you mean 'sample_rate'?" in only


def test_an_entry_that_cannot_work_is_told_as_one_of_the_settings(steelyard: Steelyard, folder: Path) -> None:
    (folder / "steelyard.toml").write_text('[spool]\npth = "turns.db"\n')
    told = [line for line in marked(steelyard("doctor"), "fix") if "spool" in line]
    assert told == ["settings: spool: there is no entry 'pth'; did you mean 'path'?"]


def test_scores_that_failed_are_told(steelyard: Steelyard) -> None:
    def fail(*_: object) -> None:
        raise JudgeRejected("HTTP 401", cause="unauthorized")

    monitor = Monitor(metrics=[Faithfulness()], judge=ScriptedJudge(fail), sinks=["sqlite"])
    monitor.submit(TURN)
    monitor.close(60)
    fixes = marked(steelyard("doctor"), "fix")
    assert [fix for fix in fixes if "1 score failed there in the last day: unauthorized; set the key" in fix]


def test_a_package_of_the_wrong_version_is_named_with_its_extra(
    steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(line.startswith("langchain-core") for line in importlib.metadata.requires("steelyard") or ())
    found = importlib.metadata.version
    monkeypatch.setattr(
        "steelyard.cli._checkup.version", lambda name: "0.3.1" if name == "langchain-core" else found(name)
    )
    outcome = steelyard("doctor")
    [wrong] = [fix for fix in marked(outcome, "fix") if "langchain-core" in fix]
    assert wrong.startswith("langchain-core 0.3.1 is not <2,>=1.4") and "'steelyard[langchain]'" in wrong


pytest.importorskip("uvicorn", reason="uvicorn is not installed")


GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
ENDLESS = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers without reading a body."""
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(_serve, "_LOOK", 0.6)
    http = _serve.bounded_protocol()
    server = uvicorn.Server(uvicorn.Config(refuses, http=http, log_level="critical", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("sent", [b"", GET])
def test_a_connection_on_which_no_request_comes_is_closed(address: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(sent)
        assert connection.recv(1) == b""


def test_a_refused_body_without_end_is_not_read_for_ever(address: tuple[str, int]) -> None:
    until = time.monotonic() + 30
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(ENDLESS)
        assert b"413" in connection.recv(1000)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < until:
                connection.sendall(b"1\r\na\r\n")
                time.sleep(0.005)
        assert time.monotonic() < until


def test_a_connection_that_is_used_stays(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=30) as connection:
        for _ in range(5):
            connection.sendall(GET + b"\r\n")
            assert b"413" in connection.recv(1000)
            time.sleep(0.2)
