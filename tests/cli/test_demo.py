"""``demo``: a shortened run from end to end, and each of its checks made to fail."""

import contextlib
import io
import re
from pathlib import Path
from types import SimpleNamespace

import keras
import matplotlib.image
import numpy as np
import pytest

from tf_lstm_ops import __main__
from tf_lstm_ops.cli import CommandError, demo, plot, training, vowels
from tf_lstm_ops.cli.arguments import DTYPE_POLICIES
from tf_lstm_ops.keras import LSTM
from tf_lstm_ops.keras.policy import default_dtype_policy


@pytest.fixture(scope="module")
def parts() -> tuple[vowels.Utterances, vowels.Utterances]:
    return vowels.standardise(*vowels.load())


@pytest.fixture(scope="module")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """In this process, except for the reloaded model; test_full_run has a process of its own."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = __main__.main(["demo", "--epochs", "2", "--output", str(folder)])
    return SimpleNamespace(folder=folder, printed=printed.getvalue(), status=status)


def accuracy_printed(printed: str) -> float:
    """Our test accuracy in the summary, in per cent."""
    return float(re.search(r"^test accuracy +([\d.]+)%, stock ", printed, re.MULTILINE)[1])


@pytest.mark.full
def test_short_run_tells_its_progress_and_where_it_wrote(short_run: SimpleNamespace) -> None:
    assert re.findall(r"^ *(\d+)/ *2 ", short_run.printed, re.MULTILINE) == ["1", "2"]
    for name in ("demo.png", "saved_model"):
        assert (short_run.folder / name).exists()
        assert str(short_run.folder / name) in short_run.printed
    assert short_run.printed.endswith(f"\n{demo.NEXT}\n")


@pytest.mark.full
def test_short_run_takes_the_fused_op_and_reloads_bit_for_bit(short_run: SimpleNamespace) -> None:
    assert re.search(r"^path taken +one fused op per sequence$", short_run.printed, re.MULTILINE)
    assert re.search(r"^reloaded model .* equal bit for bit$", short_run.printed, re.MULTILINE)


@pytest.mark.full
def test_exit_status_follows_the_accuracy(short_run: SimpleNamespace) -> None:
    enough = accuracy_printed(short_run.printed) >= 95
    assert short_run.status == (0 if enough else 1)


@pytest.mark.full
def test_picture_is_a_valid_image(short_run: SimpleNamespace) -> None:
    picture = matplotlib.image.imread(short_run.folder / "demo.png", format="png")
    height, width, _ = picture.shape
    assert width > height > 500
    left, right = picture[:, : width // 2, :3], picture[:, width // 2 :, :3]
    for half in (left, right):  # curves here, bars there: neither is blank
        assert len(np.unique(half @ [1, 256, 256**2])) > 10


@pytest.mark.full
def test_both_layers_learn_from_the_same_start_and_data(parts) -> None:
    ours, stock = training.train_side_by_side(*parts, epochs=2, seed=1)
    assert isinstance(ours.model.layers[1], LSTM)
    assert type(stock.model.layers[1]) is keras.layers.LSTM
    for mine, theirs in zip(ours.train, stock.train, strict=True):
        # The same float32 arithmetic in another order, over ten or twenty steps of Adam. Another
        # order of the data changes the loss by some per cent.
        assert mine.loss == pytest.approx(theirs.loss, rel=1e-3)
    assert len(ours.seconds) == len(stock.seconds) == 2


@pytest.mark.parametrize("policy", DTYPE_POLICIES)
def test_dtype_policy_reaches_all_but_the_probabilities(policy: str) -> None:
    before = keras.config.dtype_policy()
    model = training.build_model(LSTM, steps=1, seed=3, dtype_policy=policy)
    assert keras.config.dtype_policy() == before
    masking, lstm, dense = model.layers
    assert masking.dtype_policy.name == lstm.dtype_policy.name == policy
    assert dense.dtype_policy.name == "float32"
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}
    scaled = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scaled is (policy == "mixed_float16")


def test_default_dtype_policy_comes_back_after_an_error() -> None:
    before = keras.config.dtype_policy()
    with pytest.raises(ZeroDivisionError), default_dtype_policy("mixed_bfloat16"):
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
        raise ZeroDivisionError
    assert keras.config.dtype_policy() == before


def test_time_per_epoch_leaves_out_the_first() -> None:
    assert training.Training(model=None, seconds=[90.0, 3.0, 1.0, 2.0]).seconds_per_epoch() == 2


def test_score_is_cross_entropy_and_accuracy() -> None:
    probabilities = np.float32([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]])
    model = SimpleNamespace(predict_on_batch=lambda features: probabilities)
    utterances = vowels.Utterances(np.zeros((2, 1, 12)), np.array([1, 1]), np.array([1, 2]))
    loss, accuracy = training.score(model, utterances)
    assert loss == pytest.approx(-(np.log(0.25) + np.log(0.6)) / 2, rel=1e-6)  # float32 logarithms
    assert accuracy == 0.5


def test_the_picture_shows_the_seconds_of_both(tmp_path: Path, monkeypatch) -> None:
    figures = []
    monkeypatch.setattr(plot.Figure, "savefig", lambda self, *_, **__: figures.append(self))
    ours, stock = (
        training.Training(
            None, 2 * [training.Score(0.5, 0.9)], 2 * [training.Score(0.5, 0.9)], [9.0, seconds]
        )
        for seconds in (0.5, 1.25)
    )
    plot.save(tmp_path / "demo.png", ours, stock)
    [figure] = figures
    [seconds] = [axes for axes in figure.axes if axes.patches]
    assert [bar.get_height() for bar in seconds.patches] == [0.5, 1.25]
    assert seconds.get_title() == "Training: 2.50 times as fast as stock"
    assert [text.get_text() for text in seconds.texts] == ["0.500 s", "1.250 s"]


@pytest.mark.parametrize(("accuracy", "passed"), [(0.949, False), (0.95, True)])
def test_accuracy_below_the_limit_fails_and_says_what_to_do(
    accuracy: float, passed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = [training.Score(0.1, 0.99), training.Score(0.1, accuracy)]
    trained = training.Training(model=None, test=scores)
    assert demo._report_accuracy(trained, trained) is passed
    assert ("--epochs" in capsys.readouterr().out) is not passed


@pytest.mark.full
def test_reload_check_sees_a_perturbed_model(
    parts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    features = parts[1].features[:20]
    model = training.build_model(LSTM, steps=1, seed=2)
    expected = model.predict_on_batch(features)
    demo._export(model, tmp_path / "same")
    *others, bias = model.get_weights()
    model.set_weights([*others, bias + np.linspace(0, 1e-3, bias.size, dtype=bias.dtype)])
    demo._export(model, tmp_path / "perturbed")

    same = demo._predict_in_fresh_process(tmp_path / "same", features)
    perturbed = demo._predict_in_fresh_process(tmp_path / "perturbed", features)
    assert demo._report_reload(expected, same)
    assert "bit for bit" in capsys.readouterr().out
    assert not demo._report_reload(expected, perturbed)
    assert "differ" in capsys.readouterr().out
    assert not demo._report_reload(expected, np.nextafter(expected, 1))


@pytest.mark.full
def test_unusable_saved_model_is_reported(parts, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"(?s)could not use .*tf-lstm-ops info"):
        demo._predict_in_fresh_process(tmp_path / "absent", parts[1].features[:1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "1"], "--epochs must be at least 2"),
        (["--seed", "-1"], "--seed must be from 0"),
        (["--output", __file__], "choose another folder with --output"),
    ],
)
def test_wrong_arguments_say_what_to_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = __main__.main(["demo", *arguments])
    except SystemExit as usage:
        status = usage.code
    assert status == (1 if "--output" in arguments else 2)  # 2: wrong usage
    assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "seed"),
    [("float32", seed) for seed in range(5)] + [("mixed_float16", 0), ("mixed_bfloat16", 0)],
)
def test_full_run(command, tmp_path: Path, policy: str, seed: int) -> None:
    result = command("demo", "--dtype-policy", policy, "--seed", seed, "--output", tmp_path)
    assert result.stderr == ""
    assert f" in {policy}\n" in result.stdout
    assert result.returncode == 0, result.stdout + result.stderr
    assert accuracy_printed(result.stdout) >= 95
