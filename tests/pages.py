"""What tests read from Markdown pages: examples, what they print, links, anchors."""

import codeop
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def blocks(page: str, language: str) -> list[str]:
    """The contents of all code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def run_examples(page: str, folder: Path) -> None:
    """Runs the Python blocks from top to bottom in one process, as a reader would paste them.

    Checks that `print(...)  # x` prints x, and that each block marked ``output`` is printed.
    """
    # Empty lines put an error at the line of the page where it stands.
    program, end = "", 0
    for match in re.finditer(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        program += "\n" * page.count("\n", end, match.start(1)) + match[1]
        end = match.end(1)
    assert program
    file = folder / "page.py"
    file.write_text(program, encoding="utf-8")
    result = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=folder)
    assert result.returncode == 0, result.stderr
    # Keras prints lines of its own.
    said = re.findall(r"^print\(.*\)  # (.*)$", program, re.MULTILINE)
    assert [line for line in result.stdout.splitlines() if line in said] == said
    for text in blocks(page, "output"):
        assert text in result.stdout


def pasted(block: str) -> str | None:
    """What an interactive interpreter refuses of a block that is pasted; None if it takes all.

    There an empty line ends a compound statement, and nothing else does.
    """
    lines: list[str] = []
    for line in [*block.splitlines(), ""]:
        lines.append(line)
        try:
            if codeop.compile_command("\n".join(lines)) is not None:
                lines = []
        except SyntaxError as error:
            return f"{error.msg}: {line}"
    return "\n".join(lines).strip() or None


def links(page: str) -> list[str]:
    """The targets of all links to other files and to headings, outside of code blocks."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", prose)
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(page: str) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
