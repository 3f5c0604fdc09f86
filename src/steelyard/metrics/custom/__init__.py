"""Metrics whose question is yours: an aspect, a rubric, a scale of your own."""
