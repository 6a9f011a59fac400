"""The parts of `tf_lstm_ops.export.tflite`.

``layers`` replaces the recurrent layers' computation while a model is traced, ``trace`` makes the
function that is converted, ``convert`` calls TensorFlow's converter, ``flatbuffer`` edits and reads
the file, ``check`` runs it.
"""
