"""Arrays of other programs, whose axes have any order, as values of a session."""
