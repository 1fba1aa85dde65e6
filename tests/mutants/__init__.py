"""Whether the tests notice a change of the numbers that decide."""
