"""Embedders: texts become vectors. Each loads its libraries when it is first used."""
