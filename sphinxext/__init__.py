"""What this site needs and Sphinx lacks: examples that are all run, numbers that were measured."""
