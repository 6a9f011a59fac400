"""Sessions of modules of PyTorch, beside PyTorch in float64."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.inference import Session, layers

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with, is not installed")
nn = torch.nn
prune = pytest.importorskip("torch.nn.utils.prune")

B, T, C = 3, 11, 6
# Of the largest element: float32 has 1.2e-7, and a product of C terms several roundings.
TOLERANCE = 2e-6


def with_random_values(*modules: Any) -> None:
    """Also those that begin as zeros or ones. Variances stay positive."""
    for module in modules:
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point():
                values = (
                    torch.rand_like(tensor) + 0.5 if "var" in name else torch.randn_like(tensor)
                )
                tensor.data.copy_(values * 0.5)


def same(session: Any, forward: Callable[[Any], Any], x: Any, *modules: Any) -> None:
    """`forward` takes x, and copies of the modules in float64."""
    wide = [copy.deepcopy(module).double().eval() for module in modules]
    with torch.no_grad():
        expected = forward(torch.from_numpy(x).double(), *wide).numpy()
    got = session(x)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * abs(expected).max())


def floats(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=shape or (B, T, C)).astype("float32")


RECURRENT = {
    "lstm": lambda: nn.LSTM(C, 4),
    "lstm, batch first": lambda: nn.LSTM(C, 4, batch_first=True),
    "lstm, 2 layers, both directions": lambda: nn.LSTM(C, 4, 2, bidirectional=True, dropout=0.5),
    "lstm, projection": lambda: nn.LSTM(C, 4, 2, proj_size=3, bidirectional=True),
    "lstm, no bias": lambda: nn.LSTM(C, 4, bias=False),
    "gru": lambda: nn.GRU(C, 4, 2),
    "gru, both directions": lambda: nn.GRU(C, 4, batch_first=True, bidirectional=True),
    "rnn": lambda: nn.RNN(C, 4, bidirectional=True),
    "rnn, relu": lambda: nn.RNN(C, 4, nonlinearity="relu", batch_first=True),
}


@pytest.mark.parametrize("kind", RECURRENT)
def test_recurrent(kind: str, rng: np.random.Generator) -> None:
    """All steps, and the final h of the last layer."""
    module = RECURRENT[kind]()
    count = 2 if module.bidirectional else 1

    def steps(x: Any, m: Any) -> Any:
        return m(x)[0] if m.batch_first else m(x.transpose(0, 1))[0].transpose(0, 1)

    def final(x: Any, m: Any) -> Any:
        states = m(x if m.batch_first else x.transpose(0, 1))[1]
        h = states[0] if isinstance(states, tuple) else states
        return torch.cat([*h[-count:]], -1)

    same(Session.from_torch(module), steps, floats(rng), module)
    last = Session.from_torch([(module, {"return_sequences": False})])
    same(last, final, floats(rng), module)


def of_channels(x: Any, *modules: Any) -> Any:
    x = x.mT
    for module in modules:
        x = module(x)
    return x.mT


def of_features(x: Any, *modules: Any) -> Any:
    for module in modules:
        x = module(x)
    return x


FEATURES: dict[str, Callable[[], Any]] = {
    "linear": lambda: nn.Linear(C, 3),
    "linear, no bias": lambda: nn.Linear(C, 3, bias=False),
    "layer norm": lambda: nn.LayerNorm(C, eps=0.1),
    "layer norm, no bias": lambda: nn.LayerNorm(C, bias=False),
    "layer norm, no weight": lambda: nn.LayerNorm(C, elementwise_affine=False),
    "rms norm": lambda: nn.RMSNorm(C),
    "relu6": nn.ReLU6,
    "leaky relu": lambda: nn.LeakyReLU(0.2),
    "prelu": nn.PReLU,
    "elu": lambda: nn.ELU(0.5),
    "celu": lambda: nn.CELU(0.7),
    "gelu": nn.GELU,
    "gelu, tanh": lambda: nn.GELU("tanh"),
    "hardtanh": nn.Hardtanh,
    "hardtanh from 0": lambda: nn.Hardtanh(0, 0.7),
    "hardtanh of other bounds": lambda: nn.Hardtanh(-0.5, 0.7),
    "hardtanh of positive bounds": lambda: nn.Hardtanh(0.1, 0.7),
    "softshrink": lambda: nn.Softshrink(0.3),
    "hardshrink": lambda: nn.Hardshrink(0.3),
    "threshold": lambda: nn.Threshold(0.1, -0.5),
    "softmax": lambda: nn.Softmax(dim=-1),
    "log softmax": lambda: nn.LogSoftmax(2),
    "glu": nn.GLU,
    **{
        name: getattr(nn, name)
        for name in (
            *("ReLU", "SELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Hardsigmoid", "Hardswish"),
            *("Softplus", "Softsign", "Tanhshrink", "LogSigmoid", "Identity"),
            *("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"),
            "FeatureAlphaDropout",
        )
    },
}
CHANNELS: dict[str, Callable[[], Any]] = {
    "conv": lambda: nn.Conv1d(C, 5, 3),
    "conv, all options": lambda: nn.Conv1d(C, 4, 3, 2, 4, 2, groups=2, bias=False),
    "conv, same": lambda: nn.Conv1d(C, 5, 4, padding="same"),
    "conv, valid": lambda: nn.Conv1d(C, 5, 4, padding="valid"),
    "conv, depthwise": lambda: nn.Conv1d(C, C, 3, padding=1, groups=C),
    "conv, two of each channel": lambda: nn.Conv1d(C, 2 * C, 3, groups=C),
    "conv, reflect": lambda: nn.Conv1d(C, 5, 4, padding=3, padding_mode="reflect"),
    "conv, reflect same": lambda: nn.Conv1d(C, 5, 4, padding="same", padding_mode="reflect"),
    "batch norm": lambda: nn.BatchNorm1d(C, eps=0.1),
    "batch norm, no weight": lambda: nn.BatchNorm1d(C, affine=False),
    "prelu of channels": lambda: nn.PReLU(C),
    "max": lambda: nn.MaxPool1d(3, 2),
    "max, padded": lambda: nn.MaxPool1d(3, 1, 1),
    "average": lambda: nn.AvgPool1d(2),
    "average, padded": lambda: nn.AvgPool1d(3, 2, 1),
    "average without padding": lambda: nn.AvgPool1d(5, 1, 2, count_include_pad=False),
    "mean": lambda: nn.AdaptiveAvgPool1d(1),
    "maximum": lambda: nn.AdaptiveMaxPool1d((1,)),
    "constant pad": lambda: nn.ConstantPad1d((1, 2), 0.0),
    "zero pad": lambda: nn.ZeroPad1d(2),
    "reflection pad": lambda: nn.ReflectionPad1d((1, 3)),
    "upsample": lambda: nn.Upsample(scale_factor=3),
}


@pytest.mark.parametrize("kind", [*FEATURES, *CHANNELS])
@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch's Dropout2d, padding="same"
def test_modules(kind: str, rng: np.random.Generator) -> None:
    module = (FEATURES | CHANNELS)[kind]()
    with_random_values(module)
    session = Session.from_torch([layers.Input((None, C)), module])
    same(session, of_features if kind in FEATURES else of_channels, floats(rng), module)


@pytest.mark.parametrize("kind", [*RECURRENT, *FEATURES, *CHANNELS])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_state_dicts(kind: str, rng: np.random.Generator) -> None:
    """The state dict of a module with its options is the module. Both are compared."""
    module = (RECURRENT | FEATURES | CHANNELS)[kind]()
    with_random_values(module)
    name, first = type(module).__name__, layers.Input((None, C))
    arguments = inspect.signature(type(module).__init__).parameters
    if isinstance(module, nn.RNNBase):
        arguments = {*inspect.signature(nn.RNNBase.__init__).parameters, "nonlinearity"} - {"mode"}
    options = {each: getattr(module, each) for each in arguments if hasattr(module, each)}
    options = {k: v is not None if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    state = {f"m.{key}": tensor for key, tensor in module.state_dict().items()}
    got, x = Session.from_torch(state, [first, ("m.", name, options)]), floats(rng)
    np.testing.assert_array_equal(got(x), Session.from_torch([first, module])(x))


def test_sequential(rng: np.random.Generator) -> None:
    """The size of the input is that of the first module which has one."""
    net = nn.Sequential(
        nn.ZeroPad1d(1),
        nn.Sequential(nn.Conv1d(C, 8, 3), nn.BatchNorm1d(8), nn.ReLU()),
        nn.MaxPool1d(2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(8, 2),
        nn.Softmax(1),
    )
    with_random_values(net)
    session = Session.from_torch(net)
    same(session, lambda x, m: m(x.mT), floats(rng), net)
    assert session.inputs[0].shape == (None, None, C)


def test_embedding(rng: np.random.Generator) -> None:
    table, gru, head = nn.Embedding(20, 5, padding_idx=0), nn.GRU(5, 4, 2), nn.Linear(4, 3)
    session = Session.from_torch([table, gru, layers.LastStep(), head])
    words = rng.integers(0, 20, (B, T))

    def forward(x: Any, table: Any, gru: Any, head: Any) -> Any:
        return head(gru(table(x.long().T))[0][-1])

    same(session, forward, words, table, gru, head)


def test_layers_between(rng: np.random.Generator) -> None:
    """A list of a forward method: last step, both directions, a layer of a session."""
    lstm = nn.LSTM(C, 4, batch_first=True)
    conv, head = nn.Conv1d(4, 5, 3), nn.Linear(5, 2)
    with_random_values(lstm, conv, head)

    def forward(x: Any, lstm: Any, conv: Any, head: Any) -> Any:
        return head(torch.tanh(conv(lstm(x)[0].mT)).amax(-1))

    chain = [lstm, conv, layers.Activation("tanh"), layers.GlobalMaxPooling1D(), head]
    same(Session.from_torch(chain), forward, floats(rng), lstm, conv, head)


def test_streams(rng: np.random.Generator) -> None:
    lstm, head = nn.LSTM(C, 4, 2), nn.Linear(4, 2)
    session = Session.from_torch([lstm, layers.LastStep(), head])
    stream, x = session.stream(B), floats(rng)
    for step in range(T):
        y = stream(x[:, step])
    np.testing.assert_array_equal(y, session(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_types(dtype: Any, rng: np.random.Generator) -> None:
    """Their weights become float32. The sum of two biases of float16 has more digits than they."""
    lstm, head = nn.LSTM(C, 4, batch_first=True).to(dtype), nn.Linear(4, 2).to(dtype)
    session = Session.from_torch([lstm, head])
    same(session, lambda x, a, b: b(a(x)[0]), floats(rng), lstm, head)


class Mine(nn.LSTM):
    pass


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(C, 4)


def hooked() -> Any:
    module = nn.Linear(C, 2)
    module.register_forward_hook(lambda *args: None)
    return module


def replaced() -> Any:
    module = nn.Linear(C, 2)
    module.forward = lambda x: x
    return module


def in_a_sequential(module: Any) -> Any:
    return nn.Sequential(nn.Linear(C, C), module)


REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "a model": (Net, r"Net: its forward is code.*\[net.lstm, layers.LastStep\(\), net.head\]"),
    "a model in a list": (lambda: [Net()], r"module 0 \(Net\): its forward is code"),
    "a subclass": (lambda: Mine(C, 2), "it is a subclass of torch.nn.LSTM, whose forward may"),
    "hooks": (hooked, "Linear: it has hooks, which may change what it computes"),
    "a replaced forward": (replaced, r"its method forward was replaced.*del module.forward"),
    "in a Sequential": (lambda: in_a_sequential(hooked()), r"module 1 \(Linear\): it has hooks"),
    "weight norm": (lambda: nn.utils.weight_norm(nn.Linear(C, 2)), "remove_weight_norm"),
    "parametrized": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(C, 2)),
        "it is parametrized. Call torch.nn.utils.parametrize.remove_parametrizations",
    ),
    "pruned": (
        lambda: prune.identity(nn.Linear(C, 2), "weight"),
        "prune.remove",
    ),
    "scripted": (lambda: torch.jit.script(nn.Linear(C, 2)), "before the quantization or torch.jit"),
    "of several devices": (
        lambda: nn.DataParallel(nn.LSTM(C, 2)),
        "DataParallel: it is another form of a module. Pass its attribute module",
    ),
    "compiled": (lambda: [torch.compile(nn.LSTM(C, 2))], "Pass its attribute _orig_mod"),
    "a cell": (lambda: nn.LSTMCell(C, 2), r"layers.LSTM\(LSTMWeights.from_torch\(cell\)"),
    "another class": (
        lambda: nn.Conv2d(1, 1, 2),
        "Conv2d: a session does not compute torch.nn.Conv2d",
    ),
    "max_norm": (lambda: nn.Embedding(3, 2, max_norm=1.0), "max_norm changes rows of the table"),
    "padding mode": (
        lambda: nn.Conv1d(C, 2, 3, padding=1, padding_mode="circular"),
        "padding_mode must be 'zeros' or 'reflect'. Received: 'circular'",
    ),
    "no statistics": (
        lambda: nn.BatchNorm1d(C, track_running_stats=False),
        "it has no running_mean. It has track_running_stats=False",
    ),
    "two axes": (lambda: nn.LayerNorm((2, C)), "a session normalises the last axis only"),
    "softplus": (lambda: nn.Softplus(2), "a session has beta=1 only. Received: beta=2"),
    "threshold": (lambda: nn.Softplus(threshold=5), "has threshold=20.0 or more. Received"),
    "hardtanh": (lambda: nn.Hardtanh(-2, -1), "Hardtanh: max_value must be positive"),
    "max pool": (lambda: nn.MaxPool1d(4, padding=1), "a session has padding=0, or"),
    "ceil": (lambda: nn.AvgPool1d(4, ceil_mode=True), "has ceil_mode=False only"),
    "indices": (lambda: nn.MaxPool1d(4, return_indices=True), "return_indices=False"),
    "average": (
        lambda: nn.AvgPool1d(4, padding=1, count_include_pad=False),
        "count_include_pad=False, a session has padding=0",
    ),
    "adaptive": (lambda: nn.AdaptiveAvgPool1d(2), "has output_size=1 only"),
    "flatten": (lambda: [layers.Input((T, C)), nn.Flatten(2)], "joins all axes after the batch"),
    "pad": (lambda: nn.ConstantPad1d(1, 0.5), "a session has value=0 only. Received: value=0.5"),
    "crop": (lambda: nn.ConstantPad1d(-1, 0), "ConstantPad1d: padding must be 0 or more"),
    "linear": (lambda: nn.Upsample(scale_factor=2, mode="linear"), "has mode='nearest' only"),
    "scale": (lambda: nn.Upsample(scale_factor=1.5), "scale_factor must be a whole number"),
    "meta": (lambda: nn.Linear(C, 2, device="meta"), "Linear: weight must be an array but"),
    "an option": (
        lambda: [(nn.LSTM(C, 2), {"batch_first": True})],
        r"the options in a list are return_sequences; a module has its own. Received: batch_first",
    ),
    "an option of a linear": (
        lambda: [(nn.Linear(C, 2), {"return_sequences": False})],
        "the options in a list are none",
    ),
    "sizes": (
        lambda: [nn.Linear(C, 3), nn.Linear(4, 2)],
        r"layer 1, module 1 \(Linear\) .*last axis of its input is 3, must be 4",
    ),
    "an empty Sequential": (nn.Sequential, "a chain has one module or more"),
    "an unknown size": (nn.ReLU, "Begin the layers with layers.Input"),
}


@pytest.mark.parametrize(
    "kind",
    # torch.compile imports what takes seconds.
    [pytest.param(kind, marks=[pytest.mark.full] * (kind == "compiled")) for kind in REFUSALS],
)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_refusals(kind: str) -> None:
    made, text = REFUSALS[kind]
    with pytest.raises(ValueError, match=text) as raised:
        Session.from_torch(made())
    assert len(str(raised.value)) < 500


def test_several_refusals_are_said_at_once() -> None:
    inner = nn.Sequential(nn.Linear(C, C), nn.MaxPool2d(2), nn.AvgPool1d(4, ceil_mode=True))
    with pytest.raises(ValueError) as raised:
        Session.from_torch([nn.Softplus(2), inner, nn.Conv2d(1, 1, 2), nn.Linear(C, 2)])
    what = "a session does not compute torch.nn"
    page = "The reference page 'Models of other programs in sessions' lists the classes"
    assert str(raised.value).splitlines() == [
        "4 modules are refused:",
        "module 0 (Softplus): a session has beta=1 only. Received: beta=2",
        f"module 1.1 (MaxPool2d): {what}.MaxPool2d. {page}",
        "module 1.2 (AvgPool1d): a session has ceil_mode=False only. Received: ceil_mode=True",
        f"module 2 (Conv2d): {what}.Conv2d. {page}",
    ]


def test_elements_of_a_list() -> None:
    for element, text in (("LSTM", "Element 1 is 'LSTM'"), (layers.LastStep, "Call the class")):
        with pytest.raises(TypeError, match=text):
            Session.from_torch([nn.LSTM(C, 2), element])
    with pytest.raises(ValueError, match="layers is for state dicts and files"):
        Session.from_torch(nn.LSTM(C, 2), ["ReLU"])


def test_a_module_twice(rng: np.random.Generator) -> None:
    """PyTorch's named_children has it once."""
    linear, relu = nn.Linear(C, C), nn.ReLU()
    net = nn.Sequential(linear, relu, linear, relu)
    same(Session.from_torch(net), lambda x, m: m(x), floats(rng), net)


def test_shared_weights(rng: np.random.Generator) -> None:
    """One tensor with two names is two arrays."""
    lstm = nn.LSTM(4, 4, 2, batch_first=True)
    lstm.weight_hh_l1 = lstm.weight_hh_l0
    same(Session.from_torch(lstm), lambda x, m: m(x)[0], floats(rng, B, T, 4), lstm)


def test_prelu_first(rng: np.random.Generator) -> None:
    """One factor does not say the size of the input."""
    net = nn.Sequential(nn.PReLU(), nn.Linear(C, 2))
    same(Session.from_torch(net), lambda x, m: m(x), floats(rng), net)


@pytest.mark.parametrize("kind", ["linear", "lstm"])
def test_a_bias_that_is_no_parameter(kind: str) -> None:
    module, name = (nn.Linear(C, 2), "bias") if kind == "linear" else (nn.LSTM(C, 2), "bias_hh_l0")
    bias = getattr(module, name).detach()
    delattr(module, name)
    setattr(module, name, bias)
    for check in (True, False):
        with pytest.raises(ValueError, match=f"its {name} is neither a parameter nor a buffer"):
            Session.from_torch(module, check=check)


CONTRADICTIONS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "layers": (lambda: nn.LSTM(C, 4, 2), {"num_layers": 1}),
    "directions": (lambda: nn.GRU(C, 4), {"bidirectional": True}),
    "units": (lambda: nn.RNN(C, 4), {"hidden_size": 99}),
    "projection": (lambda: nn.LSTM(C, 4, proj_size=2), {"proj_size": 3}),
    "no projection": (lambda: nn.LSTM(C, 4), {"proj_size": 3}),
    "bias": (lambda: nn.Linear(C, 2), {"bias": False}),
    "window": (lambda: nn.Conv1d(C, 4, 3), {"kernel_size": (5,)}),
    "table": (lambda: nn.Embedding(9, 2), {"num_embeddings": 10}),
    "scale": (lambda: nn.BatchNorm1d(C), {"affine": False}),
    "no scale": (lambda: nn.BatchNorm1d(C, affine=False), {"affine": True}),
    "layer norm": (lambda: nn.LayerNorm(C), {"elementwise_affine": False}),
    "layer norm's axis": (lambda: nn.LayerNorm(C), {"normalized_shape": [C + 1]}),
    "factors": (lambda: nn.PReLU(C), {"num_parameters": 1}),
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_arguments_that_contradict_arrays(kind: str) -> None:
    make, options = CONTRADICTIONS[kind]
    module = make()
    (name,) = options
    with pytest.raises(ValueError, match=f"its arrays have {name}=.* Received: {name}="):
        Session.from_torch(module.state_dict(), [("", type(module).__name__, options)])


@pytest.mark.parametrize("options", [{"mode": "RNN_RELU"}, {"args": 1}])
def test_what_is_no_argument(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the options of RNN that change results are"):
        Session.from_torch(nn.RNN(C, 2).state_dict(), [("", "RNN", options)])


def test_a_later_option() -> None:
    """An option of a later version of PyTorch may change results."""

    class Linear(nn.Linear):
        def __init__(self, in_features: int, out_features: int, twice: bool = False) -> None:
            super().__init__(in_features, out_features)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn, "Linear", Linear)
        with pytest.raises(ValueError, match="PyTorch has the option twice, which a session does"):
            Session.from_torch(Linear(C, 2))
