"""What the model did to files, so that it can be undone: before and after of each change, and looks around commands."""
