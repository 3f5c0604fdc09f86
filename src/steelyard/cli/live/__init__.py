"""What `steelyard doctor` tells of turns: what was taken for what."""
