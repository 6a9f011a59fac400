"""Our kernels under the names of stock ops, in a process of its own: there is no way back."""
