"""Compares what a small model made with the request, and with what was there before."""
