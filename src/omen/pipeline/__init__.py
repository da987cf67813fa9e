"""Spark: raw data to workloads, overlays to measurements. The only room that knows pyspark."""
