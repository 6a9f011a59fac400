"""Files of other programs: what they are, what they may hold, and their arrays. A module per kind.

The import of a module needs NumPy at most. The package that reads a kind of file is imported with
the first file of this kind.
"""
