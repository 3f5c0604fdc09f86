"""Made-up months of traffic with an incident in one slice, and made-up deploys; what is told of them."""
