"""What comes out of judging, as values with a JSON form."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.scores._json import clean_evidence as clean_evidence
from steelyard.scores._json import clean_score as clean_score
from steelyard.scores._json import clean_usage as clean_usage
from steelyard.scores._json import (
    evaluation_from_dict,
    evaluation_from_json,
    evaluation_to_dict,
    evaluation_to_json,
)
from steelyard.scores._json import score_from_dict as score_from_dict
from steelyard.scores._json import score_to_dict as score_to_dict
from steelyard.scores._scores import CAUSES as CAUSES
from steelyard.scores._scores import Cause as Cause
from steelyard.scores._scores import (
    Diagnosis,
    Evaluation,
    Evidence,
    Outcome,
    Provenance,
    Score,
    TurnEvidence,
    Usage,
    Verdict,
)
from steelyard.scores._scores import Direction as Direction
from steelyard.scores._scores import Trial as Trial

__all__ = [
    "Diagnosis",
    "Evaluation",
    "Evidence",
    "Outcome",
    "Provenance",
    "Score",
    "TurnEvidence",
    "Usage",
    "Verdict",
    "evaluation_from_dict",
    "evaluation_from_json",
    "evaluation_to_dict",
    "evaluation_to_json",
]
