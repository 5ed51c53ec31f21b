"""The interactive session: reads prompts, runs turns and commands."""
