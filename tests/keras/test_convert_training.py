"""A copy trains as its model: nothing that a configuration lacks is lost."""

import collections
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
from keras import layers, ops

from tf_lstm_ops.keras import StackedGRU, StackedLSTM, convert_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 5, 3)).astype("float32")
Y = RNG.normal(size=(16, 2)).astype("float32")


class Loss(keras.losses.Loss):
    """Has the configuration of its base class, without the factor."""

    def __init__(self, factor: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor, self.table = factor, np.array([factor, 1.0], "float32")

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.factor * ops.mean(self.table * (y_true - y_pred) ** 2, axis=-1)


class Metric(keras.metrics.Mean):
    def __init__(self, factor: float = 1.0, name: str = "mine", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.factors = {"all": [factor]}

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return super().update_state(self.factors["all"][0] * y_pred)


class Late(keras.metrics.Metric):
    """Makes its variable in the first call."""

    made: Any = None

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        if self.made is None:
            self.made = self.add_variable((), "zeros", name="made")
        self.made.assign(ops.mean(y_pred))

    def result(self) -> Any:
        return ops.convert_to_tensor(self.made)


class Clip(keras.constraints.Constraint):
    def __init__(self, bound: float = 1.0) -> None:
        self.bound = bound

    def __call__(self, w: Any) -> Any:
        return ops.clip(w, -self.bound, self.bound)


class Penalty(keras.regularizers.Regularizer):
    def __init__(self, factor: float = 0.0) -> None:
        self.factor = factor

    def __call__(self, w: Any) -> Any:
        return self.factor * ops.sum(w * w)

    def get_config(self) -> dict[str, Any]:
        return {}


class Boosted(keras.optimizers.SGD):
    def __init__(self, learning_rate: float = 0.1, boost: float = 1.0, **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        self.boost = boost

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        super().update_step(gradient * self.boost, variable, learning_rate)


class Rate(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, rate: float = 0.01) -> None:
        self.rate = rate

    def __call__(self, step: Any) -> Any:
        return self.rate

    def get_config(self) -> dict[str, Any]:
        return {}


def _excluded(model: keras.Model, **options: Any) -> Any:
    optimizer = keras.optimizers.AdamW(0.05, weight_decay=0.5)
    if not options:
        options = {"var_list": [model.layers[0].cell.recurrent_kernel]}
    optimizer.exclude_from_weight_decay(**options)
    return optimizer


def _with_attribute() -> Any:
    loss = Loss()
    loss.factor = 7.0
    return loss


COMPILED: dict[str, Any] = {
    "loss": lambda model: {"loss": Loss(5.0)},
    "attribute set later": lambda model: {"loss": _with_attribute()},
    "huber": lambda model: {"loss": keras.losses.Huber(0.1)},
    "axis of a loss": lambda model: {"loss": keras.losses.CosineSimilarity(axis=0)},
    "losses": lambda model: {"loss": [Loss(5.0)]},
    "metric": lambda model: {"metrics": [Metric(3.0)]},
    "axis of a metric": lambda model: {"metrics": [keras.metrics.CosineSimilarity(axis=0)]},
    "optimizer": lambda model: {"optimizer": Boosted(0.1, boost=3.0)},
    "inner optimizer": lambda model: {
        "optimizer": keras.optimizers.LossScaleOptimizer(Boosted(0.1, boost=3.0))
    },
    "schedule": lambda model: {"optimizer": keras.optimizers.SGD(Rate(0.2))},
    "no decay by name": lambda model: {
        "optimizer": _excluded(model, var_names=["recurrent_kernel"])
    },
    "no decay of a list": lambda model: {"optimizer": _excluded(model)},
}


def _model(**options: Any) -> keras.Model:
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((None, 3)), layers.LSTM(4, **options), layers.Dense(2)])


def _history(model: keras.Model) -> dict[str, list[float]]:
    fitted = model.fit(X, Y, epochs=3, batch_size=4, shuffle=False, verbose=0)
    return fitted.history


def _assert_trains_alike(model: keras.Model, copy: keras.Model) -> None:
    want, got = _history(model), _history(copy)
    assert want.keys() == got.keys()
    for name, values in want.items():
        # float32: twelve steps, each of which rounds anew
        np.testing.assert_allclose(got[name], values, rtol=1e-4, atol=1e-5)


FIRST = ("loss", "metric", "no decay of a list")  # the default run has one case of each kind


@pytest.mark.parametrize(
    "case", [c if c in FIRST else pytest.param(c, marks=pytest.mark.full) for c in COMPILED]
)
@pytest.mark.parametrize("trained", [False, pytest.param(True, marks=pytest.mark.full)])
def test_compiled(case: str, trained: bool) -> None:
    model = _model()
    model.compile(**{"optimizer": "sgd", "loss": "mse", **COMPILED[case](model)})
    if trained:
        _history(model)
    _assert_trains_alike(model, convert_model(model))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_constraint": Clip(0.1), "recurrent_regularizer": Penalty(0.5)},
        pytest.param({"kernel_constraint": Clip(0.1)}, marks=pytest.mark.full),
        pytest.param({"recurrent_regularizer": Penalty(0.5)}, marks=pytest.mark.full),
    ],
)
def test_of_weights(options: dict[str, Any]) -> None:
    model = _model(**options)
    model.compile("sgd", "mse")
    copy = convert_model(model)
    _assert_trains_alike(model, copy)
    _assert_trains_alike(model, convert_model(copy, to="stock"))


def test_a_metric_whose_variables_are_not_known() -> None:
    model = _model()
    model.compile("sgd", "mse", metrics=[Late()], run_eagerly=True)
    model.train_on_batch(X, Y)
    with pytest.warns(UserWarning, match="compile the converted model.*has 1 variables, but 0"):
        assert not convert_model(model).compiled


@pytest.mark.parametrize("kind", [StackedLSTM, StackedGRU])
def test_a_frozen_stack(kind: Any) -> None:
    """Stock layers of a stack are not trainable either."""
    stack = kind(3, num_layers=2)
    stack.trainable = False
    model = keras.Sequential([keras.Input((None, 3)), stack, layers.Dense(1)])
    copy = convert_model(model, to="stock")
    assert [w.shape for w in copy.trainable_weights] == [w.shape for w in model.trainable_weights]
    assert len(copy.trainable_weights) == 2


class Pair(NamedTuple):
    a: float
    b: list[float]


def test_containers_keep_their_types() -> None:
    loss = Loss(2.0)
    loss.pair, loss.counts = Pair(1.0, [2.0]), collections.defaultdict(int, {"x": 1})
    model = _model()
    model.compile("sgd", loss)
    copy = convert_model(model).loss
    assert copy is not loss and copy.pair == loss.pair and copy.pair.b is not loss.pair.b
    assert copy.counts == loss.counts and copy.counts["other"] == 0 and "other" not in loss.counts
