"""Reads files that extend wolo: agents, commands, skills, hooks and instructions."""
