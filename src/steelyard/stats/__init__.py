"""What a set of scores means.

Scores of live traffic are a sample whose members were picked with unequal, known probabilities. The functions
here turn such samples into figures with intervals; they need numpy alone and read or write nothing.

>>> from steelyard.stats import weighted_mean
>>> bad, good = [0.2] * 10, [1.0] * 10
>>> estimate = weighted_mean(bad + good, [1.0] * 10 + [0.1] * 10)  # suspicious turns were all picked
>>> round(estimate.value, 3)
0.927
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.stats._assisted import AssistedSample as AssistedSample
from steelyard.stats._assisted import assisted_sample as assisted_sample
from steelyard.stats._assisted import corrected_mean
from steelyard.stats._changes import Change, find_changes
from steelyard.stats._changes import Deploy as Deploy
from steelyard.stats._changes import find_deploys as find_deploys
from steelyard.stats._difference import Difference, paired_difference, unpaired_difference
from steelyard.stats._difference import holm as holm
from steelyard.stats._difference import sample_difference as sample_difference
from steelyard.stats._difference import within_kinds as within_kinds
from steelyard.stats._estimate import FEW as FEW
from steelyard.stats._estimate import Estimate
from steelyard.stats._fits import fit_logistic as fit_logistic
from steelyard.stats._fits import fit_ridge as fit_ridge
from steelyard.stats._fits import folds_of as folds_of
from steelyard.stats._fits import smoothed_targets as smoothed_targets
from steelyard.stats._flips import ChangeAlarm
from steelyard.stats._flips import flip_probability as flip_probability
from steelyard.stats._gate import GateTest as GateTest
from steelyard.stats._gate import repeats_order as repeats_order
from steelyard.stats._gate_plan import GatePlan, plan_gate
from steelyard.stats._incidents import Incident as Incident
from steelyard.stats._incidents import find_incidents as find_incidents
from steelyard.stats._labels import auroc, cohen_kappa
from steelyard.stats._open_units import Moments as Moments
from steelyard.stats._open_units import Neighbours as Neighbours
from steelyard.stats._open_units import OpenSums as OpenSums
from steelyard.stats._sample import Alike as Alike
from steelyard.stats._sample import Sample, pass_rate, turns_needed, weighted_mean
from steelyard.stats._sample import alike_by as alike_by
from steelyard.stats._sample import sample_of as sample_of
from steelyard.stats._sequence import ConfidenceSequence, FallAlarm
from steelyard.stats._sequence import ewma as ewma
from steelyard.stats._slices import cluster as cluster
from steelyard.stats._slices import find_slices
from steelyard.stats._slices import name_clusters as name_clusters
from steelyard.stats._slices import unit_rows as unit_rows
from steelyard.stats._summary import MetricSummary as MetricSummary
from steelyard.stats._summary import Summarizer as Summarizer

__all__ = [
    "Change",
    "ChangeAlarm",
    "ConfidenceSequence",
    "Difference",
    "Estimate",
    "FallAlarm",
    "GatePlan",
    "Sample",
    "auroc",
    "cohen_kappa",
    "corrected_mean",
    "find_changes",
    "find_slices",
    "paired_difference",
    "pass_rate",
    "plan_gate",
    "turns_needed",
    "unpaired_difference",
    "weighted_mean",
]
