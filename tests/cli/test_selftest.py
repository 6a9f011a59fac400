"""``selftest`` where there is no device; tests/metal has the rest."""

from tf_lstm_ops import __main__


def test_without_a_device_it_says_so(capsys):
    assert __main__.main(["selftest", "--device", "GPU:7"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "TensorFlow has no device GPU:7 here, only CPU:0" in printed.err
    assert "tensorflow-metal" in printed.err
