"""What a person is asked, above the line they write in: one file a kind of question."""
