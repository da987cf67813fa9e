"""The papers' claims, one test each, and the command that measures them at the papers' own sizes."""
