"""A discussion among agents as a durable run: a graph, its checkpoints, approvals and memories."""
