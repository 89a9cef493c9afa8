"""The softmax transformer, trained by its exact mini-batch gradient."""
