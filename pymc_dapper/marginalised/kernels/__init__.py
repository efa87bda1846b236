"""Sums over single counts: arrays in, arrays out."""
