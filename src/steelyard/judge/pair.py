"""PairJudge: a sentence-pair model of your own, combined with what the local judge sees in the words."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard._internal.forks import ForkLock
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError
from steelyard.judge._minilm import open_session
from steelyard.judge.local._judge import LocalJudge
from steelyard.questions import (
    Answer,
    Capabilities,
    Contradicted,
    Question,
    Reply,
    Request,
    Same,
    Supported,
    View,
    YesNo,
)

_VERSION = "p1"
_MOST_WINDOWS = 16
"""Windows that a claim is checked against."""
_MISSING = 0.49  # below one half, for no model of pairs reads numbers well enough to outvote a missing one
_PLACES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""What a model may want, and what the tokenizer calls it."""
_LEAST_TOKENS = 32
_BATCH = 16
"""Pairs in one run of the model."""

_Shares = npt.NDArray[np.float64]
"""One row a pair, one column a label."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairLabels:
    """What a model's labels mean, by their place among its scores, from 0."""

    entailed: int
    """The text entails the claim."""
    contradicted: int | None = None
    """The text says otherwise; None where no label means that."""
    claim_first: bool = False
    """Whether the model wants the claim before the text."""


class PairJudge:
    """A judge on a local model that reads a text and a claim together, such as a model of textual entailment.

    Claims are checked against each passage, cut into windows if it is long; the window that entails one
    most decides. The probability is a weighted mean of that and of the local judge's score, which knows what
    such models overlook: a claim with a number that is nowhere in the passages stays a no. Everything else
    (claims of an answer, relevance, evasive answers) is answered by the local judge. Nothing leaves the
    machine.

    The model is an ONNX file of a sequence classifier with its `tokenizer.json`. What its labels mean stands
    in its `config.json` (`id2label`).

    Needs `pip install 'steelyard[onnx]'`.

    Args:
        model: The ONNX file, or a folder that holds `model.onnx` or `onnx/model.onnx`.
        tokenizer: The `tokenizer.json`; beside the model, or one folder up, where None.
        labels: What the labels mean; by their names where None.
        weight: Share of the model in the probability, in (0, 1]; the rest is the local judge's.
        max_tokens: Tokens that the model reads at a time; the tokenizer's own limit, if that is lower.
        threads: Cores to use.

    Raises:
        ConfigurationError: If an option makes no sense, a file is not what it should be, or model and
            tokenizer do not fit together.
        MissingDependency: If onnxruntime is not installed.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        tokenizer: str | Path | None = None,
        labels: PairLabels | None = None,
        weight: float = 0.5,
        max_tokens: int = 512,
        threads: int = 1,
    ) -> None:
        if max_tokens < 1 or threads < 1:
            raise ConfigurationError(f"max_tokens={max_tokens!r} and threads={threads!r} must be at least 1")
        if not 0 < weight <= 1:
            raise ConfigurationError(f"weight must be in (0, 1], not {weight!r}")
        path = _model_file(Path(model))
        self._model = _PairModel(path, _beside(path, "tokenizer.json", tokenizer), threads, max_tokens)
        columns = self._model.shares([("A tower is a building.", "A tower is a building.")]).shape[1]
        self.labels = _checked(labels or _labels_of(path), columns)
        """What the model's labels mean."""
        self._weight = weight
        self._local = LocalJudge()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.name = f"pair:{path.parent.name}/{path.name}:{digest[:8]}"

    @property
    def prompt_version(self) -> str:
        """Version of the way the two are combined, the weight, and the local judge's version."""
        return f"{_VERSION}:{self._weight:g}+{self._local.prompt_version}"

    @property
    def capabilities(self) -> Capabilities:
        """Those of the local judge."""
        return self._local.capabilities

    async def answer(self, request: Request) -> Reply:
        """Answer in words first, then let the model read the claims; the model runs in a thread."""
        reply = await self._local.answer(request)
        answers: dict[str, Answer] = dict(reply.answers)
        asked: dict[str, tuple[Question, YesNo, int]] = {}
        for key, question in request.questions.items():
            in_words, column = answers.get(key), self._column(question)
            if isinstance(in_words, YesNo) and column is not None:
                asked[key] = (question, in_words, column)
        if asked:
            shares = await asyncio.to_thread(self._read, request.view, [one for one, _, _ in asked.values()])
            for (key, (question, in_words, column)), row in zip(asked.items(), shares, strict=True):
                answers[key] = self._combined(question, in_words, float(row[column]))
        return replace(reply, answers=answers)

    async def aclose(self) -> None:
        """Forget the texts read last; the model stays."""
        await self._local.aclose()

    def _column(self, question: Question) -> int | None:
        """The label that answers a question; None where the words alone do."""
        if isinstance(question, Contradicted):
            return self.labels.contradicted
        return self.labels.entailed if isinstance(question, Supported | Same) else None

    def _read(self, view: View, questions: Sequence[Question]) -> list[_Shares]:
        """For each question the largest share of each label over the windows of its passages."""
        pairs: list[tuple[str, str]] = []
        ends: list[int] = []
        for question in questions:
            claim = question.quoted or ""
            windows = [
                window for text in _passages(view, question) for window in self._model.windows(text, claim)
            ]
            likest = _likest(windows, claim)
            pairs += [(claim, one) if self.labels.claim_first else (one, claim) for one in likest]
            ends.append(len(pairs))
        return [part.max(axis=0) for part in np.split(self._model.shares(pairs), ends[:-1])]

    def _combined(self, question: Question, in_words: YesNo, share: float) -> YesNo:
        words = in_words.probability if in_words.probability is not None else float(in_words.value)
        chance = self._weight * share + (1 - self._weight) * words
        lacks_a_number = any(evidence.notes.get("missing_numbers") for evidence in in_words.evidence)
        if not isinstance(question, Contradicted) and not in_words.value and lacks_a_number:
            chance = min(chance, _MISSING)
        reason = f"the model says {share:.2f}, the words {words:.2f}: {in_words.reason}"
        return replace(in_words, value=chance >= 0.5, probability=chance, reason=reason)

    def __repr__(self) -> str:
        return f"PairJudge({str(self._model.path)!r})"


def _passages(view: View, question: Question) -> list[str]:
    """The texts that a question holds its claim against; there is one, since the local judge answered."""
    if isinstance(question, Same) and question.listed:
        return ["\n\n".join(question.listed)]
    part = question.among if isinstance(question, Same) else getattr(question, "by", "contexts")
    material = getattr(view, part) or ""
    texts = [material] if isinstance(material, str) else [context.text for context in material]
    passage = question.passage if isinstance(question, Supported) else None
    return texts if passage is None else texts[passage : passage + 1]


def _likest(windows: Sequence[str], claim: str) -> list[str]:
    """The windows that share the most words with a claim, in their order; all where there are few."""
    words = set(claim.casefold().split())
    common = [len(words & set(window.casefold().split())) for window in windows]
    kept = sorted(range(len(windows)), key=lambda place: -common[place])[:_MOST_WINDOWS]
    return [windows[place] for place in sorted(kept)]


class _PairModel:
    """An ONNX model and its tokenizer; safe to use from several threads, one run at a time."""

    def __init__(self, path: Path, tokenizer: Path, threads: int, max_tokens: int) -> None:
        self.path = path
        self._threads = threads
        self._lock = ForkLock()
        self._session, self._pid = open_session(path, threads=threads, extra="onnx"), os.getpid()
        names = {one.name for one in self._session.get_inputs()}
        if not {"input_ids"} <= names <= _INPUTS.keys():
            odd = ", ".join(sorted(names - _INPUTS.keys())) or "nothing named input_ids"
            raise ConfigurationError(
                f"the model {str(path)!r} wants {odd}: "
                "a sentence-pair model takes input_ids, attention_mask and token_type_ids"
            )
        self._inputs = {name: attribute for name, attribute in _INPUTS.items() if name in names}
        self._tokenizer_path = tokenizer
        # One reads texts as they are; the other cuts and pads pairs.
        self._texts, self._pairs = _open_tokenizer(tokenizer), _open_tokenizer(tokenizer)
        own = self._texts.truncation
        self._most = max(_LEAST_TOKENS, min(max_tokens, own["max_length"] if own else max_tokens))
        self._texts.no_truncation()
        self._texts.no_padding()
        self._pairs.enable_truncation(self._most, strategy="longest_first")
        self._pairs.enable_padding()

    def windows(self, text: str, claim: str) -> list[str]:
        """A text cut into pieces that fit in beside a claim; neighbours overlap by a quarter.

        A claim longer than half of what the model reads is itself cut when it is put to it.
        """
        free = self._most - self._texts.num_special_tokens_to_add(is_pair=True)
        claimed = len(self._texts.encode(claim, add_special_tokens=False).ids)
        room = free - min(claimed, free // 2)
        offsets = self._texts.encode(text, add_special_tokens=False).offsets
        if len(offsets) <= room:
            return [text]
        step = max(room * 3 // 4, 1)
        starts = range(0, min(len(offsets) - room + step, len(offsets)), step)
        return [text[offsets[at][0] : offsets[min(at + room, len(offsets)) - 1][1]] for at in starts]

    def shares(self, pairs: Sequence[tuple[str, str]]) -> _Shares:
        with self._lock:
            if self._pid != os.getpid():  # a session's threads do not survive a fork
                self._session = open_session(self.path, threads=self._threads, extra="onnx")
                self._pid = os.getpid()
            # Alike lengths share a run: short pairs are not padded to long ones.
            order = sorted(range(len(pairs)), key=lambda place: sum(map(len, pairs[place])))
            runs = [
                self._run([pairs[place] for place in order[start : start + _BATCH]])
                for start in range(0, len(order), _BATCH)
            ]
        return np.concatenate(runs)[np.argsort(order)]

    def _run(self, pairs: Sequence[tuple[str, str]]) -> _Shares:
        encoded = self._pairs.encode_batch(list(pairs))
        feed = {
            name: np.array([getattr(one, attribute) for one in encoded], np.int64)
            for name, attribute in self._inputs.items()
        }
        try:
            logits = np.asarray(self._session.run(None, feed)[0], np.float64)
        except Exception as error:  # noqa: BLE001 - the library's errors have no base class of their own
            raise ConfigurationError(
                f"the tokenizer {str(self._tokenizer_path)!r} does not fit the model {str(self.path)!r}: "
                f"{error_words(error)}; take the one that came with the model"
            ) from None
        if logits.ndim != 2 or len(logits) != len(pairs) or not np.isfinite(logits).all():
            raise ConfigurationError(
                f"the model {str(self.path)!r} gives no row of label scores for a pair of texts but an array "
                f"of shape {logits.shape}: export it for sequence classification"
            )
        # A model with one score gets a second label, its opposite.
        if logits.shape[1] == 1:
            logits = np.hstack([np.zeros_like(logits), logits])
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: _Shares = powers / powers.sum(axis=1, keepdims=True)
        return shares


def _labels_of(model: Path) -> PairLabels:
    """What the labels mean by their names in the model's configuration; a single score is of entailment."""
    try:
        named: dict[str, str] = json.loads(_beside(model, "config.json").read_bytes())["id2label"]
        names = {int(place): str(name).lower() for place, name in named.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ConfigurationError):
        names = {}
    if len(names) == 1:
        return PairLabels(entailed=1)
    entailed, contradicted = (
        next((place for place, name in names.items() if name.startswith(meaning)), None)
        for meaning in ("entail", "contradict")
    )
    if entailed is None:
        raise ConfigurationError(
            f"the config.json of the model {str(model)!r} names no label entailment: {[*names.values()]!r}; "
            "say what they mean with labels=PairLabels(entailed=...)"
        )
    return PairLabels(entailed=entailed, contradicted=contradicted)


def _checked(labels: PairLabels, columns: int) -> PairLabels:
    for name in ("entailed", "contradicted"):
        place = getattr(labels, name)
        if place is not None and not 0 <= place < columns:
            raise ConfigurationError(
                f"labels: {name}={place!r}, but the model has {columns} labels; give a place below that"
            )
    if labels.entailed == labels.contradicted:
        raise ConfigurationError("labels: entailed and contradicted are the same label; give each its own")
    return labels


def _model_file(given: Path) -> Path:
    if not given.is_dir():
        if not given.is_file():
            raise ConfigurationError(f"there is no model {str(given)!r}; check its path")
        return given
    for name in _PLACES:
        if (given / name).is_file():
            return given / name
    raise ConfigurationError(
        f"the folder {str(given)!r} holds no model: none of {', '.join(_PLACES)}; name the model file itself"
    )


def _beside(model: Path, name: str, given: str | Path | None = None) -> Path:
    """A file of a model: as given, or beside it, or one folder up."""
    if given is not None:
        return Path(given) / name if Path(given).is_dir() else Path(given)
    for folder in (model.parent, model.parent.parent):
        if (folder / name).is_file():
            return folder / name
    raise ConfigurationError(f"there is no {name} beside {str(model)!r}; name it with {name[:-5]}=")


def _open_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises plain Exception
        raise ConfigurationError(
            f"{str(path)!r} is not a tokenizer: {error_words(error)}; name a tokenizer.json with tokenizer="
        ) from None
