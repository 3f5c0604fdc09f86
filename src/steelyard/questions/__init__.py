"""What may be asked, what can be answered, and the batcher that fuses questions."""

from steelyard.questions._answer import Answer, ChosenOption, Level, Texts, Unanswered, Vector, YesNo
from steelyard.questions._batcher import MetricView, QuestionBatcher
from steelyard.questions._check import check
from steelyard.questions._keys import keyed
from steelyard.questions._metric_run import MetricRun, ScoreOf, SupportsQuestions, require
from steelyard.questions._packing import Fuse, Group, pack
from steelyard.questions._protocols import Capabilities, Embedder, Judge, Reply, Request, View, Warming
from steelyard.questions._question import (
    QUESTION_KINDS,
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
    "QUESTION_KINDS",
    "Answer",
    "Capabilities",
    "Choose",
    "ChosenOption",
    "Claims",
    "Contradicted",
    "Embed",
    "Embedder",
    "Entities",
    "Fuse",
    "GeneratedQuestions",
    "Group",
    "Judge",
    "Level",
    "MetricRun",
    "MetricView",
    "Noncommittal",
    "Part",
    "Predicate",
    "Question",
    "QuestionBatcher",
    "Rating",
    "Relevant",
    "Reply",
    "Request",
    "Same",
    "ScoreOf",
    "Supported",
    "SupportsQuestions",
    "Texts",
    "Unanswered",
    "Useful",
    "Vector",
    "View",
    "Warming",
    "YesNo",
    "check",
    "keyed",
    "pack",
    "require",
]
