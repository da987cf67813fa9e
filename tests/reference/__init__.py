"""Slow, literal renderings of the papers' algorithms: what the compiled kernels are held against."""
