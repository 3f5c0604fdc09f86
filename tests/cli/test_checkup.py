"""`steelyard doctor` alone: what is checked, the mend in plain words, and the exit status."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from cli.running import Outcome, Steelyard
from sinks.vendor_server import VendorServer
from steelyard import Context, Monitor, Record
from steelyard.cli import _server
from steelyard.errors import JudgeRejected
from steelyard.metrics import Faithfulness
from steelyard.testing import ScriptedJudge

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
    monkeypatch.setattr(_server, "_LOOK", 0.6)
    http = _server.bounded_protocol()
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
