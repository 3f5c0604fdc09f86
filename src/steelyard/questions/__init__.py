"""What may be asked, what can be answered, and the batcher that fuses questions."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.questions._answer import Answer, Texts, YesNo
from steelyard.questions._answer import ChosenOption as ChosenOption
from steelyard.questions._answer import Level as Level
from steelyard.questions._answer import Unanswered as Unanswered
from steelyard.questions._answer import Vector as Vector
from steelyard.questions._batcher import QuestionBatcher as QuestionBatcher
from steelyard.questions._packing import Fuse as Fuse
from steelyard.questions._packing import Group as Group
from steelyard.questions._packing import pack as pack
from steelyard.questions._question import QUESTION_KINDS as QUESTION_KINDS
from steelyard.questions._question import (
    Choose,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Noncommittal,
    Question,
    Rating,
    Relevant,
    Same,
    Supported,
    Useful,
)
from steelyard.questions._question import Embed as Embed
from steelyard.questions._question import Part as Part
from steelyard.questions._question import Predicate as Predicate
from steelyard.questions._question import Sufficient as Sufficient
from steelyard.questions._request import Capabilities as Capabilities
from steelyard.questions._request import Embedder, Judge, Reply, Request, ScoreOf, View
from steelyard.questions._request import MetricRun as MetricRun
from steelyard.questions._request import check as check
from steelyard.questions._request import has as has
from steelyard.questions._request import keyed as keyed
from steelyard.questions._request import require as require

__all__ = [
    "Answer",
    "Choose",
    "Claims",
    "Contradicted",
    "Embedder",
    "Entities",
    "GeneratedQuestions",
    "Judge",
    "Noncommittal",
    "Question",
    "Rating",
    "Relevant",
    "Reply",
    "Request",
    "Same",
    "ScoreOf",
    "Supported",
    "Texts",
    "Useful",
    "View",
    "YesNo",
]
