"""What a set of scores means.

Scores of live traffic are a sample whose members were picked with unequal, known probabilities. The functions
here turn such samples into figures with intervals; they need numpy alone and read or write nothing.

>>> from steelyard.stats import weighted_mean
>>> bad, good = [0.2] * 10, [1.0] * 10
>>> estimate = weighted_mean(bad + good, [1.0] * 10 + [0.1] * 10)  # suspicious turns were all picked
>>> round(estimate.value, 3)
0.927
"""

from steelyard.stats._assisted import AssistedSample, assisted_sample, corrected_mean
from steelyard.stats._changes import Change, Deploy, find_changes, find_deploys, within_kinds
from steelyard.stats._clusters import cluster, name_clusters
from steelyard.stats._difference import (
    Difference,
    holm,
    paired_difference,
    sample_difference,
    unpaired_difference,
)
from steelyard.stats._estimate import FEW, Estimate
from steelyard.stats._fits import fit_logistic, fit_ridge, folds_of, smoothed_targets
from steelyard.stats._flips import ChangeAlarm, flip_probability
from steelyard.stats._gate import Decision, GateTest, repeats_order
from steelyard.stats._gate_plan import GatePlan, plan_gate
from steelyard.stats._incidents import Incident, find_incidents
from steelyard.stats._labels import auroc, cohen_kappa
from steelyard.stats._open_units import Moments, Neighbours, OpenSums
from steelyard.stats._sample import Alike, Sample, alike_by, pass_rate, sample_of, turns_needed, weighted_mean
from steelyard.stats._sequence import ConfidenceSequence, FallAlarm, ewma
from steelyard.stats._slices import Slice, find_slices
from steelyard.stats._summary import MetricSummary, Summarizer

__all__ = [
    "FEW",
    "Alike",
    "AssistedSample",
    "Change",
    "ChangeAlarm",
    "ConfidenceSequence",
    "Decision",
    "Deploy",
    "Difference",
    "Estimate",
    "FallAlarm",
    "GatePlan",
    "GateTest",
    "Incident",
    "MetricSummary",
    "Moments",
    "Neighbours",
    "OpenSums",
    "Sample",
    "Slice",
    "Summarizer",
    "alike_by",
    "assisted_sample",
    "auroc",
    "cluster",
    "cohen_kappa",
    "corrected_mean",
    "ewma",
    "find_changes",
    "find_deploys",
    "find_incidents",
    "find_slices",
    "fit_logistic",
    "fit_ridge",
    "flip_probability",
    "folds_of",
    "holm",
    "name_clusters",
    "paired_difference",
    "pass_rate",
    "plan_gate",
    "repeats_order",
    "sample_difference",
    "sample_of",
    "smoothed_targets",
    "turns_needed",
    "unpaired_difference",
    "weighted_mean",
    "within_kinds",
]
