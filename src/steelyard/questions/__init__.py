"""The questions room: what may be asked, what can be answered, and the batcher that fuses questions."""

from steelyard.questions._answer import Answer, Choice, Level, Texts, Unanswered, Vector, YesNo
from steelyard.questions._batcher import MetricRun, QuestionBatcher, SupportsQuestions, Unanswerable, require
from steelyard.questions._check import check
from steelyard.questions._packing import Fuse, Group, pack
from steelyard.questions._protocols import Capabilities, Embedder, Judge, Reply, Request, View
from steelyard.questions._question import (
    Choose,
    Claims,
    Contradicted,
    Embed,
    Entities,
    GeneratedQuestions,
    Noncommittal,
    Part,
    Predicate,
    Question,
    Rating,
    Relevant,
    Same,
    Supported,
    Useful,
)

__all__ = [
    "Answer",
    "SupportsQuestions",
    "MetricRun",
    "Capabilities",
    "Choice",
    "Claims",
    "Contradicted",
    "QuestionBatcher",
    "Embed",
    "Embedder",
    "Entities",
    "Fuse",
    "Group",
    "Judge",
    "Level",
    "Noncommittal",
    "Part",
    "Choose",
    "Predicate",
    "Question",
    "GeneratedQuestions",
    "Rating",
    "Relevant",
    "Reply",
    "Request",
    "Same",
    "Supported",
    "Texts",
    "Unanswerable",
    "Unanswered",
    "Useful",
    "Vector",
    "View",
    "YesNo",
    "check",
    "pack",
    "require",
]
