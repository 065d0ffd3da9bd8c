"""Durable agent runs: their store, the manager that drives them, and who follows them."""
