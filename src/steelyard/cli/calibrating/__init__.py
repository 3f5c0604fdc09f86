"""What `steelyard label` and `steelyard calibrate` share: turns and labels out of a results file."""
