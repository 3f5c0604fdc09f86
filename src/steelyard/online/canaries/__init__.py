"""Canaries: probes with a known answer among the judge's requests, which tell when the judge changes."""
