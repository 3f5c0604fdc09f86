"""What comes out of judging, as values with a JSON form."""

from steelyard.scores._clean import clean_evidence, clean_score, clean_usage
from steelyard.scores._diagnosis import CAUSES, Cause, Diagnosis, Trial
from steelyard.scores._json import (
    evaluation_from_dict,
    evaluation_from_json,
    evaluation_to_dict,
    evaluation_to_json,
    score_from_dict,
    score_to_dict,
)
from steelyard.scores._scores import (
    Direction,
    Evaluation,
    Evidence,
    Outcome,
    Provenance,
    Score,
    TurnEvidence,
    Usage,
    Verdict,
)

__all__ = [
    "CAUSES",
    "Cause",
    "Diagnosis",
    "Direction",
    "Evaluation",
    "Evidence",
    "Outcome",
    "Provenance",
    "Score",
    "Trial",
    "TurnEvidence",
    "Usage",
    "Verdict",
    "clean_evidence",
    "clean_score",
    "clean_usage",
    "evaluation_from_dict",
    "evaluation_from_json",
    "evaluation_to_dict",
    "evaluation_to_json",
    "score_from_dict",
    "score_to_dict",
]
