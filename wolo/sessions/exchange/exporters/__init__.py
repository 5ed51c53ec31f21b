"""Writes sessions in the form that other agents keep."""
