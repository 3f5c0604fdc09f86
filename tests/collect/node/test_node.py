"""Real Node applications: their spans give the records that the same applications in Python give."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from collect.parts import Endpoint, scored, serving
from steelyard.record import Record
from steelyard.sinks import read_evaluations
from waiting import until

EXAMPLE = Path(__file__).parents[3] / "examples" / "node"
QUESTION = "What is the capital of France?"
ANSWER = "Paris is the capital of France."
TEXTS = [
    "Paris is the capital of France.",
    "France is a country in Europe.",
    "Berlin is the capital of Germany.",
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Model(BaseHTTPRequestHandler):
    """A model that searches where it has a tool for it, and then answers."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = asked["messages"][-1]["role"]
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
        if asked.get("tools") and last != "tool":
            call = {"name": "search", "arguments": json.dumps({"query": QUESTION})}
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": call}],
            }
        reply = {
            "id": "r1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": asked["model"],
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "tool_calls" if message["content"] is None else "stop",
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its packages."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        pytest.skip("Node or npm is not on this machine")
    folder = tmp_path_factory.mktemp("node") / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"npm cannot install the packages here: {done.stderr[-300:]}")
    return folder


def environment(endpoint: Endpoint, model: str) -> dict[str, str]:
    return {
        **os.environ,
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": model,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{endpoint.port}/v1/traces",
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


def record_of(folder: Path, command: list[str], cwd: Path, model: str) -> Record:
    """The one record that an application's spans give."""
    with serving(folder, "--quiet", "1") as endpoint:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment(endpoint, model),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.strip() == ANSWER
        until(lambda: bool(scored(folder)))
    (found,) = read_evaluations(folder / "steelyard.db")
    assert found.record is not None
    return found.record


def told(record: Record) -> tuple[str, list[str], str, str]:
    texts = [context.text for context in record.contexts]
    return record.question, texts, record.answer, record.status


@pytest.mark.parametrize("application", ["langchain", "vercel"])
def test_a_node_application_gives_the_record_that_the_same_one_in_python_gives(
    installed: Path, model: str, tmp_path: Path, application: str
) -> None:
    for name in ("node", "python"):
        (tmp_path / name).mkdir()
    node = record_of(tmp_path / "node", ["node", f"{application}.mjs"], installed, model)
    script = Path(__file__).parent / f"same_as_{application}.py"
    python = record_of(tmp_path / "python", [sys.executable, str(script)], tmp_path, model)
    assert told(node) == (QUESTION, TEXTS, ANSWER, "ok")
    assert told(python) == told(node)
    assert node.contexts_source == python.contexts_source
