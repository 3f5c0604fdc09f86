"""Whether some texts support a claim: how much of it they have, and what they say otherwise."""

from steelyard.judge.local.verifying._finding import Finding
from steelyard.judge.local.verifying._verifier import VERSION, verify

__all__ = ["VERSION", "Finding", "verify"]
