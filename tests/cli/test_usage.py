"""Wrong usage exits with 2 and says what is wrong; a failure exits with 1."""

from pathlib import Path

import pytest

from tf_lstm_ops import __main__

WRONG = {
    "command": (["dance"], "invalid choice: 'dance'"),
    "option of no command": (["--loud"], "unrecognized arguments: --loud"),
    "info, argument": (["info", "more"], "unrecognized arguments: more"),
    "info, option": (["info", "--loud"], "unrecognized arguments: --loud"),
    "info, folder": (["info", "--include-dir", "--json"], "go with neither --all nor --json"),
    "demo, option": (["demo", "--loud"], "unrecognized arguments: --loud"),
    "demo, one epoch": (["demo", "--epochs", "1"], "--epochs must be at least 2 but is 1"),
    "demo, epochs": (["demo", "--epochs", "-3"], "--epochs must be at least 2 but is -3"),
    "demo, no number": (["demo", "--epochs", "many"], "argument --epochs: invalid int value"),
    "demo, no value": (["demo", "--epochs"], "argument --epochs: expected one argument"),
    "demo, seed": (["demo", "--seed", "-1"], "--seed must be from 0 to 4294967295 but is -1"),
    "demo, large seed": (["demo", "--seed", str(2**32)], "4294967295 but is 4294967296"),
    "demo, policy": (["demo", "--dtype-policy", "int8"], "argument --dtype-policy: invalid choice"),
    "doctor, no model": (["doctor"], "the following arguments are required: MODEL"),
    "doctor, option": (["doctor", "m.keras", "--loud"], "unrecognized arguments: --loud"),
    "doctor, batch": (["doctor", "m.keras", "--batch", "0"], "--batch must be at least 1 but is 0"),
    "doctor, steps": (["doctor", "m.keras", "--steps", "-1"], "at least 1 but is -1"),
    "doctor, no module": (["doctor", "m.keras", "--import"], "--import: expected one argument"),
    "convert, no OUT": (["convert", "m.keras"], "the following arguments are required: OUT"),
    "convert, kind": (["convert", "m.keras", "m.pb"], "must end in .keras, .session or .onnx but"),
    "convert, missing": (["convert", "m.keras", "m.session"], "m.keras does not exist"),
    "convert, nothing": (["convert", "m.pt", "m.session"], "m.pt does not exist"),
    "convert, session": (["convert", "m.session", "m.keras"], "is a session already"),
    "convert, to": (["convert", "m.h5", "m.onnx", "--to", "stock"], "--to stock is for a .keras"),
    "convert, weights": (
        ["convert", "m.h5", "m.keras", "--weights", "int8"],
        "--weights int8 is for a .session file, but OUT is m.keras",
    ),
    "checkpoint, no path": (["checkpoint"], "the following arguments are required: PATH"),
    "checkpoint, kind": (["checkpoint", "m", "--to", "m.pt"], "--to must end in .safetensors or"),
    "checkpoint, bias": (["checkpoint", "m", "--forget-bias", "nan"], "must be finite but is nan"),
    "checkpoint, no file": (["checkpoint", "m", "--forget-bias", "1"], "no effect without --to"),
    "selftest, option": (["selftest", "--loud"], "unrecognized arguments: --loud"),
    "selftest, kind": (["selftest", "--device", "TPU"], "--device must be CPU, GPU, GPU:1 or such"),
    "selftest, lower case": (["selftest", "--device", "gpu"], "GPU:1 or such but is 'gpu'"),
    "selftest, number": (["selftest", "--device", "GPU:x"], "GPU:1 or such but is 'GPU:x'"),
    "selftest, no device": (["selftest", "--device", ""], "GPU:1 or such but is ''"),
    "selftest, no time": (["selftest", "--time-limit", "0"], "--time-limit must be more than 0"),
    "selftest, NaN": (["selftest", "--time-limit", "nan"], "more than 0 and finite but is nan"),
    "selftest, endless": (["selftest", "--time-limit", "inf"], "more than 0 and finite but is inf"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, message = WRONG[name]
    with pytest.raises(SystemExit) as exit_:
        __main__.main(arguments)
    printed = capsys.readouterr()
    assert exit_.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("usage: tf-lstm-ops")
    assert message in printed.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--output", "file"],
        ["selftest", "--device", "GPU:7"],
        ["selftest", "--device", "CPU", "--report", "file/report.txt"],
    ],
    ids=" ".join,
)
def test_failures(arguments, capsys, tmp_path: Path, monkeypatch):
    """What depends on the machine is no wrong usage."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert __main__.main(arguments) == 1
    assert capsys.readouterr().err.startswith("tf-lstm-ops: ")
