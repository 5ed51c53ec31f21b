"""Questions to the user: approvals, trust, login, first run, pickers."""
