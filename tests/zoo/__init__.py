"""Models of others, inside packages of the package index."""
