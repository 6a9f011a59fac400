"""``python benchmarks/latency.py``: the latency of a batch of one, a step or a sequence at a time.

* ``cases``: the models that are measured.
* ``keras_model``: a case as a Keras model. All peers get its weights.
* ``onnx_graph``: a case as an ONNX graph, for the peers that run those.
* ``peers``, ``tensorflow_peers``, ``session_peers``, ``runtime_peers``: the calls that are timed.
* ``timing``: percentiles, measured in interleaved rounds.
* ``page``: the Markdown page.
"""
