"""The scripts of ``completion``, in the shells that are installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tf_lstm_ops import __main__

COMMANDS = ["info", "doctor", "demo", "bench", "selftest", "completion"]


@pytest.fixture
def script(tmp_path: Path, capsys):
    """Writes the script for a shell. Skips the test if the shell is not installed."""

    def write(shell: str) -> Path:
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        assert __main__.main(["completion", shell]) == 0
        file = tmp_path / "script"
        file.write_text(capsys.readouterr().out)
        return file

    return write


def run(shell: str, program: str) -> list[str]:
    """The words that a program prints."""
    done = subprocess.run([shell, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tf-lstm-ops", ""], [*COMMANDS, "--help", "--version"]),
        (["tf-lstm-ops", "do"], ["doctor"]),
        (["tf-lstm-ops", "doctor", "--no"], ["--no-timing", "--no-exports"]),
        (["tf-lstm-ops", "info", "--j"], ["--json"]),
        (["tf-lstm-ops", "info", "--all", "--j"], ["--json"]),
        (["tf-lstm-ops", "completion", ""], ["bash", "zsh"]),
        (
            ["tf-lstm-ops", "demo", "--dtype-policy", "mixed"],
            ["mixed_float16", "mixed_bfloat16"],
        ),
        (["tf-lstm-ops", "doctor", "mod"], []),  # bash then completes names of files
    ],
)
def test_bash(script, words: list[str], expected: list[str]) -> None:
    typed = " ".join(f"'{word}'" for word in words)
    program = (
        f"source {script('bash')}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; "
        '_tf_lstm_ops; echo "${COMPREPLY[@]}"'
    )
    assert run("bash", program) == expected


def test_bash_completes_files(script) -> None:
    assert "-o default" in " ".join(
        run("bash", f"source {script('bash')}; complete -p tf-lstm-ops")
    )


def test_zsh_reads_the_script(script) -> None:
    program = (
        f"autoload -U compinit; compinit -D; source {script('zsh')}; echo $_comps[tf-lstm-ops]"
    )
    assert run("zsh", program) == ["_tf_lstm_ops"]


def test_zsh_has_every_command_and_option(capsys) -> None:
    """Also where zsh is not installed."""
    assert __main__.main(["completion", "zsh"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("#compdef tf-lstm-ops\n")
    for command in COMMANDS:
        assert f"    '{command}:" in printed
        assert f"    {command}) compadd -- --help" in printed
    assert '"completion completion") compadd -- bash zsh' in printed
