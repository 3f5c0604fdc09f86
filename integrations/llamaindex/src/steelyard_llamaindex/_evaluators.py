"""Whether LlamaIndex's own evaluators ask an engine, which is no user's turn."""

from __future__ import annotations

import sys
from types import FrameType

# As deep as they call an engine, with room to spare.
_MOST_FRAMES = 60
_EVALUATORS = ("llama_index.core.evaluation", "llama_index.core.llama_dataset.generator")


def is_asked_by_evaluator() -> bool:
    """Whether the caller is one of LlamaIndex's own evaluators or makers of test questions.

    They run a query engine over the passages of an answer, and nothing but the caller tells it from a user's.
    """
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__")).startswith(_EVALUATORS):
            return True
        frame = frame.f_back
    return False
