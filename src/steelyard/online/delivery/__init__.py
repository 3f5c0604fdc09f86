"""From a finished Evaluation to sinks and callbacks."""
