"""Exports of a run: tables, JUnit, SWE-bench predictions and the HTML report."""
