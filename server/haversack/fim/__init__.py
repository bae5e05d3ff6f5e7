"""Inline completion: what a model that fills in the middle should read at a cursor."""
