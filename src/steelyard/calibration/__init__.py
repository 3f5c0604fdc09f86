"""What a judge's numbers mean, going by what people say of the same turns.

Labels and scores are brought together for each metric and judge (`collect`), compared
(`assess`), and made into a map from the judge's value to the probability that people call a turn good
(`fit`). A `Calibration` holds such maps, has a file with a version, and puts calibrated values beside the raw
ones. Nothing is calibrated on too few labels, or on labels of one kind: a `Refusal` says why.

>>> from steelyard.calibration import Calibration
>>> calibration = Calibration.load("steelyard-calibration.json")  # doctest: +SKIP
"""

from steelyard.calibration._annotations import PersonLabel, read_annotations
from steelyard.calibration._assess import Agreement, Assessment, assess, corrected
from steelyard.calibration._collect import Answers, Judged, Key, Labelled, Material, collect, judged_scores
from steelyard.calibration._file import Calibration
from steelyard.calibration._maps import (
    Fit,
    IdentityMap,
    IsotonicMap,
    PlattMap,
    Refusal,
    fit,
    spread_error,
)
from steelyard.calibration._next import chances_by, drawn_to_label

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.calibration._screens import FittedScreen as FittedScreen
from steelyard.calibration._screens import Lesson as Lesson
from steelyard.calibration._screens import findings_of as findings_of
from steelyard.calibration._screens import fit_screen as fit_screen
from steelyard.calibration._screens import made_by as made_by

__all__ = [
    "Agreement",
    "Answers",
    "Assessment",
    "Calibration",
    "Fit",
    "IdentityMap",
    "IsotonicMap",
    "Judged",
    "Key",
    "Labelled",
    "Material",
    "PersonLabel",
    "PlattMap",
    "Refusal",
    "assess",
    "chances_by",
    "collect",
    "corrected",
    "drawn_to_label",
    "fit",
    "judged_scores",
    "read_annotations",
    "spread_error",
]
