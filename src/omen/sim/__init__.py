"""Runs protocol cores in virtual time, from one seed."""
