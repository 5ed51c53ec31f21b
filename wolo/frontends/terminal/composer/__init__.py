"""The place to write in: editing, completion, history, pastes and drafts."""
