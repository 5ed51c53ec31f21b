"""Panels above the input line: approvals, choices and questions."""
