"""Static word vectors, which the package `wordllama` ships, and an embedder of them: no key, no network.

Only its two data files are used, the table (memory-mapped) and the tokenizer's. Its own loader is never
called, because that one reaches for the network when a file is not where it expects it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard._internal.forks import ForkLock
from steelyard._internal.loops import CpuThrottle
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.scores import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Rows = NDArray[np.float16]

DIMENSIONS = 256
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_REMEMBERED = 8192
"""Words whose vector is kept: 8 MB at most."""
_ALONE = 200_000
"""Multiplications from which OpenBLAS takes several threads, less a margin."""

# Two threads would map the file and load the tokenizer twice.
_lock = ForkLock()
_vectors: Vectors | None = None


def load() -> Vectors:
    """The vectors, read on the first call and shared by the whole process."""
    global _vectors
    with _lock:
        if _vectors is None:
            _vectors = Vectors(_folder())
        return _vectors


def _folder() -> Path:
    spec = find_spec("wordllama")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place)
        if (folder / _WEIGHTS).is_file() and (folder / _TOKENIZER).is_file():
            return folder
    raise MissingDependency("wordllama", extra="all")


def _rows(path: Path) -> Rows:
    """The table in the file, memory-mapped: only the rows that are looked at are read from disk.

    The format is a header in JSON behind its length in eight bytes, and then the numbers.
    """
    import numpy as np

    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        table = json.loads(file.read(length))["embedding.weight"]
    if table["dtype"] != "F16":
        raise ConfigurationError(
            f"{str(path)!r} holds {table['dtype']!r} numbers where 'F16' was expected; "
            "reinstall the package wordllama"
        )
    begin = 8 + length + int(table["data_offsets"][0])
    return np.asarray(np.memmap(path, np.dtype("<f2"), "r", begin, tuple(table["shape"])))


class Vectors:
    """Vectors of tokens, of words and of texts."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        self._rows = _rows(folder / _WEIGHTS)
        # The tokenizer alone takes a tenth of a second, which is why a Monitor loads it when it is made.
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._known: dict[str, Matrix] = {}

    def words(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of single words, one row each; zeros for what has no token."""
        import numpy as np

        if not texts:
            return np.zeros((0, DIMENSIONS), np.float32)
        return np.concatenate([self._word(text) for text in texts]).reshape(-1, DIMENSIONS)

    def proper(self, word: str) -> bool:
        """Whether English writes a word with a capital: the tokenizer knows it only that way.

        Its vocabulary was made from running text, so a word that it holds as `Paris` and not as `paris`
        is a name even where it opens a sentence.
        """
        known = self._tokenizer.token_to_id
        return known(f"▁{word}") is not None and known(f"▁{word.lower()}") is None

    def empty(self) -> Matrix:
        """A vector of zeros."""
        import numpy as np

        return np.zeros(DIMENSIONS, np.float32)

    def tokens(self, text: str) -> tuple[Matrix, int]:
        """The sum of the vectors of a text's tokens, and how many there are."""
        # Half a surrogate pair is legal in a Python string and in no other.
        clean = text if text.isascii() else text.encode("utf-8", "replace").decode()
        ids: list[int] = self._tokenizer.encode(clean, add_special_tokens=False).ids
        if not ids:
            return self.empty(), 0
        import numpy as np

        return self._rows[ids].astype(np.float32).sum(axis=0), len(ids)

    def _word(self, text: str) -> Matrix:
        found = self._known.get(text)
        if found is None:
            vector, _ = self.tokens(text)
            length = math.sqrt(float(vector @ vector))
            found = vector / length if length else vector
            # Emptied rather than pruned: words of the next texts fill it again within one answer.
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[text] = found
        return found


_PLACES = 5
"""Digits of a likeness that count: the last of a float32 differ with the order in which a processor adds, and
would choose between equal passages."""


def nearest(words: Matrix, others: Matrix) -> Matrix:
    """Each word's cosine with the most similar one of others, in 0..1.

    In blocks so small that a linear algebra library does not spread them over threads: for a few words,
    handing over takes many times as long as multiplying, above all where all cores are busy.
    """
    import numpy as np

    if not len(words) or not len(others):
        return np.zeros(len(words), np.float32)
    step = max(1, _ALONE // (DIMENSIONS * len(others)))
    blocks = [words[at : at + step] @ others.T for at in range(0, len(words), step)]
    found: Matrix = np.concatenate(blocks).max(axis=1).clip(0.0, 1.0).round(_PLACES)
    return found


def cosine(one: Matrix, other: Matrix) -> float:
    """How alike two unit vectors are, in -1..1."""
    return round(float(one @ other), _PLACES)


def mean(vectors: Matrix, weights: Sequence[float]) -> Matrix:
    """The unit vector of the weighted mean; zeros where there is nothing."""
    import numpy as np

    total: Matrix = np.einsum("i,ij->j", np.array(weights, np.float32), vectors)
    length = math.sqrt(float(total @ total))
    return total / length if length else total


_PIECE = 1000
"""Characters embedded in one slice of work."""


class StaticEmbedder:
    """The mean of static token vectors (256 dimensions) that the package `wordllama` ships.

    Good enough to compare the wording of short texts; it knows nothing of word order.
    """

    name = "static:wordllama-l2-256"

    def __init__(self, *, max_share: float | None = None) -> None:
        """Make an embedder.

        Args:
            max_share: Largest share of one core it may use while it works, in (0, 1]; None for no limit.

        Raises:
            ConfigurationError: If the share is out of range.
        """
        self._pace = CpuThrottle(max_share)

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text, in order; not normalised, zeros for an empty text."""
        vectors = load()
        return await self._pace.drive(_embed(texts, vectors)), Usage(requests=1)

    async def aclose(self) -> None:
        """Nothing to release."""


def _embed(texts: Sequence[str], vectors: Vectors) -> Generator[None, None, list[list[float]]]:
    found: list[list[float]] = []
    for text in texts:
        total, count = vectors.empty(), 0
        for piece in _pieces(text):
            yield
            added, tokens = vectors.tokens(piece)
            total += added
            count += tokens
        found.append((total / max(1, count)).tolist())
    return found


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    while len(text) > _PIECE:
        cut = text.rfind(" ", 1, _PIECE)
        cut = cut if cut > 0 else _PIECE
        pieces.append(text[:cut])
        text = text[cut:].removeprefix(" ")
    return [*pieces, text]
