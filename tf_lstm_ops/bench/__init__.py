"""``tf-lstm-ops bench``: measures this package beside its alternatives.

* ``cases``: what is measured, row by row, and the data that every peer gets.
* ``peers``: the frameworks, one module each. A module's ``build`` makes the call that is timed.
* ``worker``: the process of one peer.
* ``runner``: starts workers, compares their results, times them in turns.
* ``roofline``: the least time that a row can take on the processor.
* ``report``, ``plot``: files.

A worker imports these modules without the package's own ``__init__``, so that the process of a peer
without TensorFlow does not load it. Therefore no module here, but for peers that are TensorFlow,
imports TensorFlow or the rest of the package when it is imported.
"""
