"""Recover P and Q from fixed data: by moments (``spectral``) and by likelihood."""
