"""A sentence-pair model: texts and claims go in, a share for each of its labels comes out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard._internal.forks import ForkLock
from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError
from steelyard.judge._onnx import open_session

Shares = npt.NDArray[np.float64]
"""One row a pair, one column a label."""

_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_TOKENIZER = "tokenizer.json"
_PLACES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_LEAST_TOKENS = 32
_UNKNOWN = ("[UNK]", "<unk>", "<|unk|>")
_BLOCK = 1 << 20
_BATCH = 16
"""Pairs in one run of the model."""


class PairModel:
    """An ONNX model and its tokenizer; safe to use from several threads, one run at a time."""

    def __init__(
        self, model: str | Path, tokenizer: str | Path | None, *, threads: int, max_tokens: int
    ) -> None:
        """Open both.

        Raises:
            ConfigurationError: If one is not what it should be, or they do not fit together.
            MissingDependency: If onnxruntime is not installed.
        """
        self.path = _model_file(Path(model))
        self._threads = threads
        self._lock = ForkLock()
        self._session, self._pid = open_session(self.path, threads=threads, extra="onnx"), os.getpid()
        self._inputs = self._input_names()
        self.tokenizer_path = _tokenizer_file(self.path, tokenizer)
        self._tokenizer = _open_tokenizer(self.tokenizer_path)
        self.max_tokens = max(_LEAST_TOKENS, min(max_tokens, _own_limit(self._tokenizer) or max_tokens))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._special = self._tokenizer.num_special_tokens_to_add(is_pair=True)

    @property
    def sha256(self) -> str:
        """Content hash of the model's file."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def windows(self, text: str, claim: str) -> list[str]:
        """A text cut into pieces that fit in beside a claim; neighbours overlap by a quarter.

        A claim longer than half of what the model reads is itself cut when it is put to it.
        """
        room = self.max_tokens - self._special - self._claim_tokens(claim)
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        if len(offsets) <= room:
            return [text]
        step = max(room * 3 // 4, 1)
        starts = range(0, max(len(offsets) - room, 0) + step, step)
        return [
            text[offsets[start][0] : offsets[min(start + room, len(offsets)) - 1][1]]
            for start in starts
            if start < len(offsets)
        ]

    def _claim_tokens(self, claim: str) -> int:
        count: int = len(self._tokenizer.encode(claim, add_special_tokens=False).ids)
        half: int = (self.max_tokens - self._special) // 2
        return min(count, half)

    def shares(self, pairs: Sequence[tuple[str, str]]) -> Shares:
        """A share for each label, for each pair of text and claim.

        Raises:
            ConfigurationError: If model and tokenizer do not fit together.
        """
        with self._lock:
            if self._pid != os.getpid():  # a session's threads do not survive a fork
                self._session = open_session(self.path, threads=self._threads, extra="onnx")
                self._pid = os.getpid()
            encoded = [self._encode(text, claim) for text, claim in pairs]
            # Alike lengths share a run: short pairs are not padded to long ones.
            order = sorted(range(len(pairs)), key=lambda place: len(encoded[place].ids))
            rows: list[Any] = [None] * len(pairs)
            for start in range(0, len(order), _BATCH):
                places = order[start : start + _BATCH]
                found = self._run([encoded[place] for place in places])
                for place, row in zip(places, found, strict=True):
                    rows[place] = row
        return np.array(rows)

    def unknown_share(self, texts: Sequence[str]) -> float:
        """The share of tokens that the tokenizer does not know."""
        unknown = {self._tokenizer.token_to_id(name) for name in _UNKNOWN} - {None}
        ids = [one for text in texts for one in self._tokenizer.encode(text, add_special_tokens=False).ids]
        return sum(one in unknown for one in ids) / len(ids) if ids else 1.0

    def _encode(self, text: str, claim: str) -> Any:
        encoded = self._tokenizer.encode(text, claim)
        if len(encoded.ids) > self.max_tokens:
            self._tokenizer.enable_truncation(self.max_tokens, strategy="longest_first")
            encoded = self._tokenizer.encode(text, claim)
            self._tokenizer.no_truncation()
        return encoded

    def _run(self, encoded: Sequence[Any]) -> Shares:
        width = max(len(one.ids) for one in encoded)
        columns = {
            "input_ids": [one.ids for one in encoded],
            "attention_mask": [one.attention_mask for one in encoded],
            "token_type_ids": [one.type_ids for one in encoded],
        }
        feed = {
            name: np.array([row + [0] * (width - len(row)) for row in columns[name]], np.int64)
            for name in self._inputs
        }
        try:
            logits = np.asarray(self._session.run(None, feed)[0], np.float64)
        except Exception as error:  # noqa: BLE001 - the library's errors have no base class of their own
            raise ConfigurationError(
                f"the tokenizer {str(self.tokenizer_path)!r} does not fit the model {str(self.path)!r}: "
                f"{error_words(error)}; "
                "take the one that came with the model"
            ) from None
        if logits.ndim != 2 or len(logits) != len(encoded) or not np.isfinite(logits).all():
            raise ConfigurationError(
                f"the model {str(self.path)!r} gives no row of label scores for a pair of texts but an array "
                f"of shape {logits.shape}: export it for sequence classification"
            )
        return _shares(logits)

    def _input_names(self) -> list[str]:
        names = [one.name for one in self._session.get_inputs()]
        odd = sorted(set(names) - _INPUTS) or ["nothing named input_ids"]
        if not {"input_ids"} <= set(names) <= _INPUTS:
            raise ConfigurationError(
                f"the model {str(self.path)!r} wants {', '.join(odd)}: "
                "a sentence-pair model takes input_ids, attention_mask and token_type_ids"
            )
        return names


def _shares(logits: Shares) -> Shares:
    """Softmax over the labels; a model with one score gets a second label, its opposite."""
    if logits.shape[1] == 1:
        chance = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
        return np.hstack([1 - chance, chance])
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Shares = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _model_file(given: Path) -> Path:
    if not given.is_dir():
        return given
    for name in _PLACES:
        if (given / name).is_file():
            return given / name
    raise ConfigurationError(
        f"the folder {str(given)!r} holds no model: none of {', '.join(_PLACES)}; name the model file itself"
    )


def _tokenizer_file(model: Path, given: str | Path | None) -> Path:
    if given is not None:
        return Path(given) / _TOKENIZER if Path(given).is_dir() else Path(given)
    for folder in (model.parent, model.parent.parent):
        if (folder / _TOKENIZER).is_file():
            return folder / _TOKENIZER
    raise ConfigurationError(f"there is no {_TOKENIZER} beside {str(model)!r}; name it with tokenizer=")


def _open_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises plain Exception
        raise ConfigurationError(
            f"{str(path)!r} is not a tokenizer: {error_words(error)}; name a tokenizer.json with tokenizer="
        ) from None


def _own_limit(tokenizer: Any) -> int | None:
    truncation = tokenizer.truncation
    return int(truncation["max_length"]) if truncation else None
