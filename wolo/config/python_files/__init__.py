"""Python files of users and projects: custom tools and extensions, with consent."""
