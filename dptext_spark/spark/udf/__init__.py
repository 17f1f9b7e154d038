"""The function that workers apply to Arrow batches, and the model that they open."""
