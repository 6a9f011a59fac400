"""Our kernels under the names of stock ops, in a process of its own, since it cannot be undone."""
