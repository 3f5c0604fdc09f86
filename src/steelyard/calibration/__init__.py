"""What a judge's numbers mean, going by what people say of the same turns.

Labels and scores are brought together for each metric and judge (`collect`), compared
(`assess`), and made into a map from the judge's value to the probability that people call a turn good
(`fit`). A `Calibration` holds such maps, has a file with a version, and puts calibrated values beside the raw
ones. Nothing is calibrated on too few labels, or on labels of one kind: a `Refusal` says why.

>>> from steelyard.calibration import Calibration
>>> calibration = Calibration.load("steelyard-calibration.json")  # doctest: +SKIP
"""

from steelyard.calibration._assess import Agreement
from steelyard.calibration._assess import Assessment as Assessment
from steelyard.calibration._assess import assess as assess
from steelyard.calibration._assess import chances_by as chances_by
from steelyard.calibration._assess import corrected as corrected
from steelyard.calibration._assess import drawn_to_label as drawn_to_label
from steelyard.calibration._collect import Answers as Answers
from steelyard.calibration._collect import Judged as Judged
from steelyard.calibration._collect import Key as Key
from steelyard.calibration._collect import Labelled as Labelled
from steelyard.calibration._collect import Material as Material
from steelyard.calibration._collect import PersonLabel as PersonLabel
from steelyard.calibration._collect import collect as collect
from steelyard.calibration._collect import judged_scores as judged_scores
from steelyard.calibration._collect import read_annotations
from steelyard.calibration._file import Calibration
from steelyard.calibration._maps import Fit as Fit
from steelyard.calibration._maps import IdentityMap as IdentityMap
from steelyard.calibration._maps import IsotonicMap as IsotonicMap
from steelyard.calibration._maps import PlattMap as PlattMap
from steelyard.calibration._maps import Refusal as Refusal
from steelyard.calibration._maps import fit
from steelyard.calibration._maps import spread_error as spread_error

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.calibration._screens import FittedScreen as FittedScreen
from steelyard.calibration._screens import Lesson as Lesson
from steelyard.calibration._screens import findings_of as findings_of
from steelyard.calibration._screens import fit_screen as fit_screen
from steelyard.calibration._screens import made_by as made_by

__all__ = ["Agreement", "Calibration", "fit", "read_annotations"]
