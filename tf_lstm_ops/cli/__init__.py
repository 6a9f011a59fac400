"""Commands of the command line, one module each. Importing this package imports no TensorFlow."""


class CommandError(Exception):
    """A command cannot continue. The message says why and what to do next."""
