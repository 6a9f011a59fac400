"""``tf-lstm-ops completion``: prints a script by which a shell completes the command line."""

from __future__ import annotations

import argparse
import functools
import shlex
from collections.abc import Iterator

from tf_lstm_ops.cli import output

Commands = argparse._SubParsersAction  # of argparse.ArgumentParser

_BASH = """\
# bash completion of tf-lstm-ops
_tf_lstm_ops() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words={commands}
  else
    case "${{COMP_WORDS[1]}} $previous" in
{values}
    *)
      [[ $word == -* ]] && case ${{COMP_WORDS[1]}} in
{options}
      esac
    esac
  fi
  # Without a match, bash completes names of files.
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _tf_lstm_ops tf-lstm-ops
"""

_ZSH = """\
#compdef tf-lstm-ops
_tf_lstm_ops() {{
  local -a commands=(
{commands}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  case "$words[2] $words[CURRENT-1]" in
{values}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    case $words[2] in
{options}
    esac
  else
    _files
  fi
}}
if [[ $funcstack[1] == _tf_lstm_ops ]]; then  # zsh loads this file as the function
  _tf_lstm_ops "$@"
else
  compdef _tf_lstm_ops tf-lstm-ops
fi
"""


def add_parser(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line.

    Args:
      commands: the commands of ``tf-lstm-ops``.
    """
    summary = "print a script by which bash or zsh completes commands and options"
    parser = commands.add_parser(
        "completion",
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. Write it to a file once: the command "
        "imports TensorFlow, which takes seconds.",
        epilog=output.examples(
            "tf-lstm-ops completion bash > ~/.local/share/bash-completion/completions/tf-lstm-ops",
            "tf-lstm-ops completion zsh > ~/.zfunc/_tf-lstm-ops",
        ),
        formatter_class=output.Help,
    )
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell: bash or zsh")
    parser.set_defaults(run=functools.partial(run, commands))


def run(commands: Commands[argparse.ArgumentParser], arguments: argparse.Namespace) -> int:
    """Prints the script.

    Args:
      commands: the commands of ``tf-lstm-ops``.
      arguments: those of the command line.

    Returns:
      0.
    """
    print({"bash": bash, "zsh": zsh}[arguments.shell](commands), end="")
    return 0


def bash(commands: Commands[argparse.ArgumentParser]) -> str:
    """The script for bash.

    Args:
      commands: the commands of ``tf-lstm-ops``.

    Returns:
      The script.
    """
    return _BASH.format(
        commands=shlex.quote(" ".join([*commands.choices, "--help", "--version"])),
        values="\n".join(
            f'    "{place}") words={shlex.quote(" ".join(values))} ;;'
            for place, values in _values(commands)
        ),
        options="\n".join(
            f"      {name}) words={shlex.quote(' '.join(_options(parser)))} ;;"
            for name, parser in commands.choices.items()
        ),
    )


def zsh(commands: Commands[argparse.ArgumentParser]) -> str:
    """The script for zsh.

    Args:
      commands: the commands of ``tf-lstm-ops``.

    Returns:
      The script.
    """
    return _ZSH.format(
        commands="\n".join(
            f"    {shlex.quote(f'{action.dest}:{action.help}')}"
            for action in commands._choices_actions
        ),
        values="\n".join(
            f'    "{place}") compadd -- {shlex.join(values)}; return ;;'
            for place, values in _values(commands)
        ),
        options="\n".join(
            f"    {name}) compadd -- {shlex.join(_options(parser))} ;;"
            for name, parser in commands.choices.items()
        ),
    )


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [o for action in parser._actions for o in action.option_strings if o.startswith("--")]


def _values(commands: Commands[argparse.ArgumentParser]) -> Iterator[tuple[str, list[str]]]:
    """The values of arguments that have few, by the command and the word before the value."""
    for name, parser in commands.choices.items():
        for action in parser._actions:
            for before in action.option_strings or [name]:
                if action.choices:
                    yield f"{name} {before}", [str(value) for value in action.choices]
