"""What the pages for whoever comes from elsewhere show of other packages runs on those packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

MOVING = Path(__file__).parents[2] / "docs" / "moving"
RUN = "00000000-0000-4000-8000-000000000001"

# A model that replies what Ragas asks for, without a network.
RAGAS = """
import json

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from ragas.llms import LangchainLLMWrapper


class Model(FakeListChatModel):
    def _generate(self, messages, *args, **kwargs):
        judged = '"verdict"' in str(messages)
        claim = "It was built in 1911."
        said = {
            "statements": [{"statement": claim, "reason": "no", "verdict": 0}] if judged else [claim],
            "classifications": [{"statement": "It was built in 1811.", "reason": "yes", "attributed": 1}],
        }
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=json.dumps(said)))])


llm = LangchainLLMWrapper(Model(responses=[""]))
"""
LANGFUSE = """
def turns_of_today():
    yield "0" * 31 + "1", ["The lighthouse was built in 1811."], "It was built in 1911."


def ask_a_model(passages, answer):
    return 1.0
"""
LANGSMITH = """
def contexts_of(run):
    return ["The lighthouse was built in 1811."]
"""
# By page: packages, what the reader has already, what comes of it.
PAGES = {
    # Ragas 0.4.3 imports what langchain-community 0.4 has not any more.
    "ragas": (
        ["ragas", "langchain-community<0.4"],
        RAGAS,
        "assert (frame['faithfulness'][0], frame['context_recall'][0]) == (0, 1)",
    ),
    "deepeval": (["deepeval"], "", "test_answer()"),
    "langfuse": (["langfuse"], LANGFUSE, "langfuse.flush()"),
    "langsmith": (["langsmith", "openevals", "langchain-openai"], LANGSMITH, "client.flush()"),
}


class Servers(BaseHTTPRequestHandler):
    """OpenAI, Langfuse and LangSmith, as far as these blocks ask; a model that agrees with everything."""

    told: list[str]
    """What was sent, as text."""

    def do_GET(self) -> None:
        project: dict[str, Any] = {
            "id": RUN,
            "name": "shop",
            "start_time": "2026-01-01T00:00:00Z",
            "tenant_id": RUN,
        }
        project["reference_dataset_id"] = None
        self._reply([project] if "/sessions" in self.path else {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = (
            json.loads(body) if self.headers.get("Content-Type", "").startswith("application/json") else {}
        )
        self.told.append(body.decode(errors="replace"))
        if self.path.endswith("/chat/completions"):
            self._reply(completion(asked))
        elif self.path.endswith("/runs/query"):
            run: dict[str, Any] = {
                "id": RUN,
                "name": "chain",
                "run_type": "chain",
                "session_id": RUN,
                "trace_id": RUN,
            }
            run |= {"start_time": "2026-01-01T00:00:00Z", "inputs": {}, "outputs": {"output": "In 1911."}}
            self._reply({"runs": [run], "cursors": {}})
        else:
            self._reply({"successes": [], "errors": []})

    def _reply(self, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def completion(asked: dict[str, Any]) -> dict[str, Any]:
    """A reply in the form that was asked for."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if tools := asked.get("tools"):
        called = tools[0]["function"]
        filled = json.dumps(fill(called["parameters"], called["parameters"]))
        message["tool_calls"] = [
            {"id": "1", "type": "function", "function": {"name": called["name"], "arguments": filled}}
        ]
    else:
        schema = asked.get("response_format", {}).get("json_schema", {}).get("schema", {"type": "string"})
        message["content"] = json.dumps(fill(schema, schema))
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": asked["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def fill(schema: dict[str, Any], whole: dict[str, Any]) -> Any:
    """The first value that a schema allows."""
    if "$ref" in schema:
        return fill(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in schema:
        return fill(schema["anyOf"][0], whole)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: fill(one, whole) for name, one in schema.get("properties", {}).items()}
    if kind == "array":
        return [fill(schema["items"], whole)]
    return {"boolean": True, "number": 1.0, "integer": 1}.get(str(kind), "The lighthouse was built in 1811.")


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Servers.told = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Servers) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PAGES)
def test_the_block_before_runs_on_the_package_that_it_is_of(
    name: str, server: ThreadingHTTPServer, tmp_path: Path
) -> None:
    packages, before, after = PAGES[name]
    python = str(tmp_path / "environment" / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True, timeout=300)
    command = [python, "-m", "pip", "install", "--quiet", *packages]
    if subprocess.run(command, capture_output=True, timeout=1200, check=False).returncode:
        pytest.skip(f"{', '.join(packages)} cannot be installed here")
    block = re.findall(r"^```py\n(.*?)^```", (MOVING / f"{name}.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    address = f"http://127.0.0.1:{server.server_address[1]}"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LANG", "OPENAI"))}
    env |= dict.fromkeys(("OPENAI_BASE_URL", "LANGFUSE_BASE_URL", "LANGSMITH_ENDPOINT"), address)
    env |= dict.fromkeys(("OPENAI_API_KEY", "LANGSMITH_API_KEY"), "key")
    env |= {"LANGFUSE_PUBLIC_KEY": "key", "LANGFUSE_SECRET_KEY": "key", "PYTHONWARNINGS": "ignore"}
    # None of them may tell its makers, or wait for them.
    env |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "RAGAS_DO_NOT_TRACK": "true", "HOME": str(tmp_path)}
    done = subprocess.run(
        [python, "-c", f"{before}\n{block}\n{after}"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    sent = {"langfuse": "hallucination", "langsmith": "groundedness"}.get(name, "")
    assert any(f'"{sent}"' in told for told in Servers.told) or not sent
