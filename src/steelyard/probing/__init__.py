"""How good a judge is, measured on questions whose right answers are known.

The probe set is a few short texts and pairs of claims about them, one true and one false, that differ in a
single point: a number, a name, a negation. `check_judge` asks a judge all of them the way metrics do, several
times over, and makes a `JudgeCheck` of the answers. Two baselines without any judgement, word overlap and
answer length, are measured in the same way: what does not beat them has not read the text.
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.probing._check import acheck_judge as acheck_judge
from steelyard.probing._check import baselines as baselines
from steelyard.probing._check import check_judge
from steelyard.probing._figures import Accuracy as Accuracy
from steelyard.probing._figures import Effect as Effect
from steelyard.probing._figures import JudgeCheck
from steelyard.probing._figures import Reliability as Reliability
from steelyard.probing._figures import advice as advice
from steelyard.probing._probes import AskedProbes as AskedProbes
from steelyard.probing._probes import Probe as Probe
from steelyard.probing._probes import ProbeSet, load_probes
from steelyard.probing._probes import ask as ask

__all__ = ["JudgeCheck", "ProbeSet", "check_judge", "load_probes"]
