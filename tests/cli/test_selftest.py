"""``selftest`` where there is no device; tests/metal has the rest."""

from tf_lstm_ops import __main__


def test_without_a_device_it_says_so(command):
    result = command("selftest", "--device", "GPU:7")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "TensorFlow has no device GPU:7 here, only CPU:0" in result.stderr
    assert "docs/guide/gpu.md" in result.stderr


def test_a_device_of_no_known_kind(capsys):
    assert __main__.main(["selftest", "--device", "TPU"]) == 1
    assert "TensorFlow has no device TPU:0 here" in capsys.readouterr().err
