"""Seven faults put into real chains, with controls that are fine; what the diagnosis has to say of each."""
