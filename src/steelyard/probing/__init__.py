"""How good a judge is, measured on questions whose right answers are known.

The probe set is a few short texts and pairs of claims about them, one true and one false, that differ in a
single point: a number, a name, a negation. `check_judge` asks a judge all of them the way metrics do, several
times over, and makes a `JudgeCheck` of the answers. Two baselines without any judgement, word overlap and
answer length, are measured in the same way: what does not beat them has not read the text.
"""

from steelyard.probing._advice import advice
from steelyard.probing._asking import AskedProbes, ProbeAnswer, ask
from steelyard.probing._baselines import baselines
from steelyard.probing._check import CheckRun, check_judge
from steelyard.probing._figures import Accuracy, Effect, JudgeCheck, Reliability
from steelyard.probing._probes import Probe, ProbeSet, load_probes

__all__ = [
    "Accuracy",
    "AskedProbes",
    "Reliability",
    "Effect",
    "CheckRun",
    "ProbeAnswer",
    "JudgeCheck",
    "Probe",
    "ProbeSet",
    "advice",
    "ask",
    "baselines",
    "check_judge",
    "load_probes",
]
