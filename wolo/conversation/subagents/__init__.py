"""Runs tasks that the model gives to other agents."""
