"""Primitives that several rooms share: threads, process lifecycle, bounded collections."""
