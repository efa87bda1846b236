"""Draws from conditional distributions, in compiled code."""
