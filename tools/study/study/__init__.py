"""The study's questions, asked of a machine."""
