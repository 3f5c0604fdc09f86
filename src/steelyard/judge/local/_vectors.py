"""Static word vectors: the table that the package `wordllama` ships, read row by row.

Only its two data files are used, through safetensors (memory-mapped) and tokenizers. Its own loader is never
called, because that one reaches for the network when a file is not where it expects it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import MissingDependency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]


DIMENSIONS = 256
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_REMEMBERED = 8192
"""Words whose vector is kept: 8 MB at most."""

_lock = threading.Lock()
_vectors: Vectors | None = None


def load() -> Vectors:
    """The vectors, read on the first call and shared by the whole process.

    Raises:
        MissingDependency: If the package with the files is not there.
    """
    global _vectors
    with _lock:
        if _vectors is None:
            _vectors = Vectors(_folder())
        return _vectors


def loaded() -> bool:
    """Whether `load` would return at once."""
    return _vectors is not None


def _folder() -> Path:
    spec = find_spec("wordllama")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place)
        if (folder / _WEIGHTS).is_file() and (folder / _TOKENIZER).is_file():
            return folder
    raise MissingDependency("wordllama", extra="all")


def _rows(path: Path) -> Any:
    """The table in the file: only the rows that are asked for are read from disk."""
    from safetensors import safe_open

    opened: Any = safe_open
    return opened(str(path), framework="np").get_slice("embedding.weight")


class Vectors:
    """Vectors of tokens, of words and of texts."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        self._rows = _rows(folder / _WEIGHTS)
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._known: dict[str, Matrix] = {}

    def words(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of single words, one row each; zeros for what has no token."""
        import numpy as np

        if not texts:
            return np.zeros((0, DIMENSIONS), np.float32)
        return np.stack([self._word(text) for text in texts])

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
        total = self.empty()
        for number in ids:
            total += self._rows[number : number + 1][0]
        return total, len(ids)

    def _word(self, text: str) -> Matrix:
        import numpy as np

        found = self._known.get(text)
        if found is None:
            vector, _ = self.tokens(text)
            length = float(np.linalg.norm(vector))
            found = vector / length if length else vector
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[text] = found
        return found
