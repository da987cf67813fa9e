"""Figures and pages. Plotting happens here alone; what is drawn comes in as plain tables."""
