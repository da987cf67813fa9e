"""The fast parts: arrays in, arrays out. A module's kernels are compiled, or taken from the cache, when it is imported.

`python -m omen.kernels` compiles all of them ahead of time.
"""
