"""Which ops have a kernel on which GPU. This module imports nothing. Every op has one on the CPU.

Ops are named without their namespace.
"""

_PARAMS = "CudnnRNNParamsSize", "CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"
_TO_PARAMS = "CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"
_LAYERS = "GRU", "ResetBeforeGRU", "LayerNormLSTM", "LayerNormGRU", "SimpleRNN"

ON_METAL = frozenset(
    (
        *("LSTMBlockCell", "LSTMBlockCellGrad", "LSTMBlockCellFullGrad"),
        *("CudnnRNNV3", "CudnnRNNBackpropV3"),
        *("MPSGraphLSTM", "MPSGraphLSTMGradients"),
    )
)

# Ops that move the elements of weights; one that reads a reserve, to test dropout; and ops of
# layers, of which KerasLSTM alone has a kernel.
NOT_ON_CUDA = frozenset(
    (
        *(*_PARAMS, *_TO_PARAMS, "CudnnRNNDropoutMask"),
        *(f"Keras{layer}{grad}" for layer in _LAYERS for grad in ("", "Grad")),
        *(f"KerasBidirectional{x}{grad}" for x in ("LSTM", *_LAYERS) for grad in ("", "Grad")),
    )
)
