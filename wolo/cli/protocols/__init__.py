"""Command lines of programs that were written for another agent."""
