"""Measurements of time and memory: `python -m bench`, or `make bench`. Never part of the tests."""
