"""Session files of other agents: reads them without changing them, and exports sessions in their formats."""
