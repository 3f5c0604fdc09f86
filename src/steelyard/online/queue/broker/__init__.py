"""Turns that wait on a message broker, for workers on any number of machines."""
