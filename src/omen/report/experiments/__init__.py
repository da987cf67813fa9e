"""The papers' experiments: each a grid of cells, and how their results become claims and figures."""
