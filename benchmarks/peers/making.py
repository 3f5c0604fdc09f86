"""Requests per accepted case: our generator beside those of Ragas 0.4.3 and DeepEval 4.3.1, on one stub.

    python benchmarks/peers/making.py --environments FOLDER [--cases 50] [--passages 200] [--only steelyard]

FOLDER holds the virtual environments `ragas` and `deepeval`. Ragas counts tokens with tiktoken, which fetches
its tables from the network unless TIKTOKEN_CACHE_DIR names a folder that has them, such as
litellm/litellm_core_utils/tokenizers of the package litellm; without it, four characters count as a token.
The stub fills any JSON schema, of the request or spelled out in the prompt, with sentences of the prompt and
agrees with everything, so it measures cost, never quality. The same prompt has the same reply.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

_FENCED = re.compile(r"^(?:<<<)?([0-9a-f]{6,}) (c\d+) passage[^\n]*\n(.*?)\n(?=\1)", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"\b[0-9a-f]{6,}\b")
_RAGAS_INPUT = "Now perform the same with the following input\ninput: "
_COUNT = {"chat": 0, "embeddings": 0, "prompt_characters": 0}
_LOCK = threading.Lock()
_MODEL = "gpt-4o"


def passages(count: int) -> list[str]:
    """Texts of about 120 tokens about invented things."""
    rng = random.Random(1)
    nouns = [
        f"{a}{b}"
        for a in ("Kal", "Mer", "Tor", "Vin", "Zab", "Orl")
        for b in ("dun", "eth", "ima", "osk", "ura")
    ]
    made = []
    for number in range(count):
        thing, place, person = rng.choice(nouns), rng.choice(nouns), rng.choice(nouns)
        made.append(
            f"The {thing} balance number {number} was built at {place} in {1500 + number} by smith {person}. "
            f"It weighs loads of up to {number + 20} pounds with a beam of {number + 3} inches. "
            f"The merchants of {place} paid {number + 7} marks for it and weighed wool, wine and salt. "
            f"After a fire in {1600 + number} its pan was replaced by a bronze one from {rng.choice(nouns)}. "
            f"Today it hangs in room {number + 1} of the museum of {place}, beside a map of the fair, and "
            f"it is taken down once a year so that visitors may weigh themselves against {number + 2} sacks."
        )
    return made


class Stub(BaseHTTPRequestHandler):
    """Chat completions and embeddings of an OpenAI-compatible server."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer from the schema."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = "embeddings" if self.path.endswith("/embeddings") else "chat"
        with _LOCK:
            _COUNT[kind] += 1
            _COUNT["prompt_characters"] += len(json.dumps(body))
        reply = _embeddings(body) if kind == "embeddings" else _chat(body)
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")  # Ragas goes on in a second event loop with one pool
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Silence."""


class Server(ThreadingHTTPServer):
    """Takes as many connections at once as Ragas opens."""

    request_queue_size = 512
    daemon_threads = True


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = []
    for index, text in enumerate(texts):
        vector = [0.0] * 64
        for word in str(text).lower().split():
            vector[hashlib.md5(word.encode()).digest()[0] % 64] += 1.0
        packed = base64.b64encode(struct.pack("<64f", *vector)).decode()
        form = packed if body.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": form})
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": body["model"], "data": data, "usage": usage}


def _chat(body: dict[str, Any]) -> dict[str, Any]:
    text = "\n".join(str(message["content"]) for message in body["messages"])
    plain = _FENCE.sub("", text)  # the same prompt has the same reply, whichever thread asks first
    number = int.from_bytes(hashlib.md5(plain.encode()).digest()[:2])
    wanted = body.get("response_format", {}).get("json_schema", {}).get("schema")
    message: dict[str, Any] = {"role": "assistant"}
    if body.get("tools"):
        function = body["tools"][0]["function"]
        value = _fill(function["parameters"], function["parameters"], text, number, "")
        call = {"name": function["name"], "arguments": json.dumps(value)}
        message |= {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}
    else:
        wanted = wanted or _schema_in(text)
        text = text.rpartition(_RAGAS_INPUT)[2]
        value = _fill(wanted, wanted, text, number, "") if wanted else {"text": "none"}
        message["content"] = json.dumps(value)
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": len(text) // 4, "completion_tokens": 50, "total_tokens": len(text) // 4 + 50}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


def _schema_in(text: str) -> dict[str, Any] | None:
    """A JSON schema that the prompt spells out; the last one."""
    for found in reversed(list(re.finditer(r'\{"(?:\$defs|properties|description|title)"', text))):
        try:
            value, _ = json.JSONDecoder().raw_decode(text[found.start() :])
        except ValueError:
            continue
        if isinstance(value, dict) and "properties" in value:
            return value
    return None


def _fill(schema: dict[str, Any], root: dict[str, Any], text: str, number: int, name: str) -> Any:
    if "$ref" in schema:
        return _fill(root["$defs"][schema["$ref"].rpartition("/")[2]], root, text, number, name)
    if "anyOf" in schema:
        return _fill(schema["anyOf"][0], root, text, number, name)
    if "enum" in schema:
        return schema["enum"][0]
    own: dict[str, str] = {}
    for _, key, passage in _FENCED.findall(text):
        own[key] = f"{own[key]}\n\n{passage}" if key in own else passage
    match schema.get("type"):
        case "object":
            if "properties" not in schema:
                return _everything_for_everyone(text)
            if "known" in schema["properties"]:
                return {"known": False, "answer": ""}
            return {
                key: _fill(value, root, own.get(key, text), number, key if key in own else f"{name}.{key}")
                for key, value in schema.get("properties", {}).items()
            }
        case "array":
            return _list(schema.get("items", {"type": "string"}), root, text, number, name)
        case "integer":  # the best mark, where whole marks are given: Ragas leaves out passages of the lowest
            return 5 if name.endswith("score") else 1
        case "boolean" | "number" as kind:
            return {"boolean": ".q902_" not in name, "number": 1.0}[kind]  # see judge/chat/_asked.py
        case _:
            return _sentence(text, number, name)


def _list(item: dict[str, Any], root: dict[str, Any], text: str, number: int, name: str) -> list[Any]:
    match name.rpartition(".")[2]:
        case "history":
            return [{"role": "user", "text": "What is it?"}, {"role": "assistant", "text": "A balance."}]
        case "entities":
            return _names(text)
        case "combinations":
            return _combinations(text)
        case "sentences":
            return [_sentence(passage, number, name) for passage in text.split("\n\n")]
    return [_fill(item, root, text, number * 7 + i, name) for i in range(2)]


def _names(text: str) -> list[str]:
    """At most ten words with a capital inside a sentence."""
    return list(dict.fromkeys(re.findall(r"(?<=[a-z] )[A-Z][a-z]+", text)))[:10]


def _everything_for_everyone(text: str) -> dict[str, list[str]]:
    """Ragas asks which persona cares for which theme: each for all."""
    given = json.JSONDecoder().raw_decode(text)[0]
    return {persona["name"]: given["themes"] for persona in given["personas"]}


def _combinations(text: str) -> list[list[str]]:
    """Ragas asks for concepts of different passages: as many pairs as it allows."""
    given = json.JSONDecoder().raw_decode(text)[0]
    concepts = [some for some in given["lists_of_concepts"] if some]
    pairs = [[one[0], other[-1]] for one, other in zip(concepts, concepts[1:], strict=False)]
    return pairs[: given["max_combinations"]]


def _sentence(text: str, number: int, name: str) -> str:
    sentences = re.findall(r"[A-Z][^.?!\n]{30,200}\.", text) or ["Nothing is said of it."]
    picked = str(sentences[number % len(sentences)])
    return (
        f"What is said of this, number {number}: {picked[:-1]}?"
        if name.endswith(("question", "input", "query"))
        else picked
    )


def ours(texts: list[str], port: int, cases: int) -> int:
    """Steelyard."""
    from steelyard.golden.making import Passage, make
    from steelyard.judge.chat import ChatWriter

    writer = ChatWriter(_MODEL, base_url=f"http://127.0.0.1:{port}/v1")
    made = make([Passage(id=str(n), text=text) for n, text in enumerate(texts)], writer=writer, n=cases)
    print(dict(made.rejected), file=sys.stderr)
    return len(made.golden)


class _FourCharacters:
    """In place of tiktoken's tables."""

    def encode(self, text: str, **_: object) -> list[str]:
        """A piece for every four characters."""
        return [text[start : start + 4] for start in range(0, len(text), 4)]

    def decode(self, pieces: list[str]) -> str:
        """The text again."""
        return "".join(pieces)


def ragas(texts: list[str], port: int, cases: int) -> int:
    """Ragas: a knowledge graph of the passages, then its default query synthesizers."""
    from langchain_core.documents import Document

    if "TIKTOKEN_CACHE_DIR" not in os.environ:  # else four characters a token
        tables: Any = import_module("tiktoken")
        tables.get_encoding = tables.encoding_for_model = lambda _name: _FourCharacters()
    openai = import_module("langchain_openai")
    url = f"http://127.0.0.1:{port}/v1"
    generator = import_module("ragas.testset").TestsetGenerator.from_langchain(
        openai.ChatOpenAI(model=_MODEL, base_url=url, api_key="none"),
        openai.OpenAIEmbeddings(base_url=url, api_key="none", check_embedding_ctx_length=False),
    )
    documents = [Document(page_content=text, metadata={"id": n}) for n, text in enumerate(texts)]
    testset = generator.generate_with_langchain_docs(documents, testset_size=cases)
    return len(testset.samples)


def deepeval(texts: list[str], port: int, cases: int) -> int:
    """DeepEval: goldens from contexts, one passage to a context, with its default filters and evolutions."""
    models, synthesizers = import_module("deepeval.models"), import_module("deepeval.synthesizer")
    model = models.GPTModel(model=_MODEL, base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    synthesizer = synthesizers.Synthesizer(model=model, async_mode=True, max_concurrent=8)
    contexts = [[text] for text in texts[:cases]]
    goldens = synthesizer.generate_goldens_from_contexts(contexts=contexts, max_goldens_per_context=1)
    return len(goldens)


_GENERATORS = {"steelyard": ours, "ragas": ragas, "deepeval": deepeval}


def main() -> None:
    """Run all against one stub each, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path)
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--passages", type=int, default=200)
    parser.add_argument("--only", choices=tuple(_GENERATORS))
    parser.add_argument("--as", dest="role", choices=tuple(_GENERATORS))
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    texts = passages(options.passages)
    if options.role:
        print(json.dumps({"cases": _GENERATORS[options.role](texts, options.port, options.cases)}))
        return
    server = Server(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in [options.only] if options.only else _GENERATORS:
        _COUNT.update(dict.fromkeys(_COUNT, 0))
        python = (
            sys.executable if name == "steelyard" else str(options.environments / name / "bin" / "python")
        )
        command = [python, __file__, "--as", name, "--port", str(server.server_port)]
        command += ["--cases", str(options.cases), "--passages", str(options.passages)]
        quiet = {"RAGAS_DO_NOT_TRACK": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "OPENAI_API_KEY": "none"}
        started = time.monotonic()
        done = subprocess.run(
            command, env={**os.environ, **quiet}, stdout=subprocess.PIPE, text=True, check=False
        )
        try:
            cases = json.loads(done.stdout.splitlines()[-1])["cases"]
        except (IndexError, ValueError):
            print(f"{name:<10} failed with status {done.returncode}")
            continue
        requests = _COUNT["chat"] + _COUNT["embeddings"]
        print(
            f"{name:<10} {cases} cases  {_COUNT['chat']} chat and {_COUNT['embeddings']} embedding requests  "
            f"{requests / max(cases, 1):.2f} requests per accepted case  "
            f"{_COUNT['prompt_characters'] / 4 / max(cases, 1):,.0f} prompt tokens each  "
            f"{time.monotonic() - started:.0f} s"
        )


if __name__ == "__main__":
    main()
