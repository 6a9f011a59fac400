"""``python benchmarks/peers``: compares the speed of tf_lstm_ops with its alternatives.

* ``command``: the arguments.
* ``cases``: what a row is, and the data that every peer gets.
* ``rows``: the rows of the tables.
* ``examples``, ``case_sets``: the sizes of published examples; the sets of rows to select from.
* ``frameworks``: the peers, one module each. A module's ``build`` makes the call that is timed.
* ``worker``: the process of one peer.
* ``runner``: starts workers, compares their results and times them in interleaved rounds.
* ``capacity``: the check that each thread has a core.
* ``roofline``: the shortest time of a row by the roofline model of the processor.
* ``report``, ``plot``: the files that a run writes.

The package tf_lstm_ops is the installed one. A worker imports its ``weights`` without its
``__init__``, so that the process of a peer without TensorFlow does not load it. Therefore no module
here imports TensorFlow or the rest of tf_lstm_ops at import time, except ``command`` and the peers
that use TensorFlow.
"""
