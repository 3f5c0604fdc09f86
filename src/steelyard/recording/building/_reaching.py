"""Whether a passage that only stood near a turn came into it: by its own words, not by words like them.

What was looked up before a turn in the same thread may be another user's, and passages of two users are often
alike but for a name or a number. So a likeness that would do for what the turn looked up itself is no proof
here: the passage has to stand in the prompt whole, as it was cut, or with most of its sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.recording.provenance import plain
from steelyard.text import sentences

_LEAST_CUT = 40
_CUT = ("\n", "\r", ".", "…", "[", "(", '"', "'", "<", "`", "|", "}", "]")
_LEAST_SENTENCE = 20


def reaches(text: str, prompts: Sequence[str]) -> bool:
    """Whether a passage stands in one of the prompts: whole, cut at its end, or most of its sentences."""
    return any(test(text, prompt) for test in (_is_whole, _is_cut, _is_mostly) for prompt in prompts)


def _is_whole(text: str, prompt: str) -> bool:
    form = plain(text)
    return bool(form) and form in plain(prompt)


def _is_cut(text: str, prompt: str) -> bool:
    """Whether a beginning of it stands there that ends as what was cut ends: not within other words."""
    text = text.strip()
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] in prompt else (low, middle - 1)
    if low < _LEAST_CUT:
        return False
    # What follows each place where it stands.
    _, *rests = prompt.split(text[:low].rstrip())
    return any(not rest or rest.startswith(_CUT) for rest in rests)


def _is_mostly(text: str, prompt: str) -> bool:
    form = plain(prompt)
    said = [plain(one.text) for one in sentences(text)]
    sizes = [(len(one), len(one) >= _LEAST_SENTENCE and one in form) for one in said]
    return 2 * sum(size for size, is_there in sizes if is_there) > sum(size for size, _ in sizes)
