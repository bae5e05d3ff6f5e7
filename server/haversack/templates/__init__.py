"""Templates: how the result of the line is written for one kind of endpoint."""
