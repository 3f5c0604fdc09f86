"""Static vectors as an embedder: no key, no network."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from steelyard.judge._cpu_throttle import CpuThrottle
from steelyard.judge._vectors import Vectors, load
from steelyard.scores import Usage

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
