"""``tf-lstm-ops bench``: this package beside everything that a user could take in its place.

* ``cases``: what is measured, row by row, and the numbers that every peer gets.
* ``peers``: the frameworks, one module each. A module's ``build`` makes the call that is timed.
* ``worker``: the process in which one peer lives.
* ``runner``: starts workers, compares their results, lets them take turns.
* ``roofline``: the time that the processor needs at least.
* ``report``, ``plot``: files.

A worker imports these modules without the package's own ``__init__``, so a peer's process holds no
TensorFlow but its own. So nothing here imports TensorFlow or the rest of the package at its top.
"""
