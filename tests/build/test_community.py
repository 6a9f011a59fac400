"""What contributors and GitHub use: tools of CI's versions, scripts and files that exist."""

import re

import pytest

PIN = re.compile(r"([a-z][a-z0-9-]*)==([0-9][0-9.]*)")
SCRIPT = re.compile(r"(?<![\w/.-])((?:\.ci|scripts|tests)/[\w./-]+)")
USES = "uses:"
DOCUMENTED = re.compile(r"`([\w./-]+)`")
TEMPLATES = (".github/PULL_REQUEST_TEMPLATE.md", ".github/ISSUE_TEMPLATE/bug_report.yml")


@pytest.fixture
def workflows(root) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root / ".github/workflows").glob("*.yml")}


def test_pre_commit_has_the_versions_of_ci(root):
    required = dict(PIN.findall((root / ".ci" / "requirements.txt").read_text()))
    hooks = PIN.findall((root / ".pre-commit-config.yaml").read_text())
    assert {"ruff", "mypy", "clang-format", "pre-commit-hooks"} == {name for name, _ in hooks}
    assert [(n, v) for n, v in hooks if required[n] != v] == []


def test_pre_commit_formats_the_files_that_ci_checks(root):
    """`.ci/run` finds them with find; the hook by a pattern."""
    config = (root / ".pre-commit-config.yaml").read_text()
    [pattern] = re.findall(r"entry: clang-format -i\n +files: (\S+)", config)
    [command] = re.findall(r"find (.*) -print0\n\}", (root / ".ci/run").read_text())
    folders = command.partition("\\(")[0].split()
    suffixes = re.findall(r"-name '\*(\.\w+)'", command)
    assert {"cc", "tests"} <= set(folders) and {".cc", ".h"} <= set(suffixes)
    tops = [p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")]
    files = [p.relative_to(root).as_posix() for top in tops for p in top.rglob("*.*")]
    checked = {f for f in files if f.split("/")[0] in folders and f.endswith(tuple(suffixes))}
    assert {f for f in files if re.search(pattern, f)} == checked


def test_workflows_run_every_script_of_ci(root, workflows):
    scripts = {f".ci/{p.name}" for p in (root / ".ci").iterdir() if p.suffix != ".txt"}
    named = SCRIPT.findall("".join(workflows[f"{name}.yml"] for name in ("ci", "nightly", "site")))
    called = {name for name in named if name.startswith(".ci/")}
    assert {".ci/run", ".ci/cuda", ".ci/metal", ".ci/nightly", ".ci/site"} <= scripts
    assert called == scripts


def test_nightly_runs_the_slow_checks(workflows):
    assert "pytest -m slow" in workflows["nightly.yml"]
    assert "scripts/try_tensorflow_versions.py --pytest" in workflows["nightly.yml"]
    assert "run: .ci/nightly\n" in workflows["nightly.yml"]


def test_what_workflows_and_templates_name_exists(root, workflows):
    texts = [*workflows.values(), *((root / name).read_text() for name in TEMPLATES)]
    named = {script for text in texts for script in SCRIPT.findall(text)}
    assert ".ci/run" in named
    assert [name for name in named if not (root / name.rstrip(".")).exists()] == []


def test_every_action_is_pinned_by_hash(workflows):
    uses = [line for text in workflows.values() for line in text.splitlines() if USES in line]
    pinned = re.compile(rf"[- ]+{USES} [\w-]+/[\w/-]+@[0-9a-f]{{40}} # v\d+\.\d+\.\d+")
    assert uses
    assert [line for line in uses if not pinned.fullmatch(line)] == []
    pins = {line.partition(USES)[2] for line in uses}
    assert len(pins) == len({pin.partition("@")[0] for pin in pins}), "an action in two versions"


def test_no_checkout_keeps_its_credentials(workflows):
    step = "uses: actions/checkout@"
    for name, text in workflows.items():
        checkouts = text.split(step)[1:]
        assert checkouts, name
        for checkout in checkouts:
            options = [line.strip() for line in checkout.splitlines()[1:3]]
            assert options == ["with:", "persist-credentials: false"], name


def test_every_workflow_limits_its_token_and_says_that_it_has_not_run(workflows):
    assert {"ci.yml", "nightly.yml", "release.yml"} <= set(workflows)
    for name, text in workflows.items():
        comment = text.partition("\nname:")[0]
        assert "has never run on GitHub's runners" in comment, name
        assert re.search(r"^permissions:( \{\}|\n  contents: read)\n\n", text, re.MULTILINE), name


def test_ci_runs_the_command_of_the_readme(root, workflows):
    [command] = re.findall(
        r"^python3 -m venv .* && \.venv/bin/pytest$", (root / "README.md").read_text(), re.MULTILINE
    )
    assert f"- run: {command}\n" in workflows["ci.yml"]


def test_a_release_installs_the_packages_that_its_page_names(root, workflows):
    page = (root / "docs/reference/releases.md").read_text()
    [packages] = re.findall(r"^apt install (.+)$", page, re.MULTILINE)
    command = re.search(r"apt-get install ((?:.*\\\n)*.*)", workflows["release.yml"])[1]
    words = command.replace("\\\n", " ").split()
    assert [word for word in words if not word.startswith("-")] == packages.split()


def test_only_wheels_and_source_distributions_are_published(workflows):
    """What twine uploads; it sends an attestation as a part of the file that it belongs to."""
    [arguments] = re.findall(r"twine upload ((?:[^\\\n]|\\\n)*)", workflows["release.yml"])
    files = [word for word in arguments.split() if "/" in word]
    assert files == ["dist/*.whl", "dist/*.tar.gz", "dist/*.publish.attestation"]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/stability.md"])
def test_files_that_a_page_names_exist(root, page):
    """Paths in code quotes, but for those with a placeholder, of files that a reader adds. In a
    table those of the second column are relative to the folder in the first one."""
    named, folder = set(), ""
    for line in (root / page).read_text().splitlines():
        cells = line.split("|")[1:-1]
        if len(cells) == 4:
            first = re.search(r"`([^`]+)`", cells[0])
            folder = (first[1] if first else "") if cells[0].strip() else folder
            if cells[2].strip() == "edit" and folder and "<" not in folder:
                named |= {f"{folder}/{name}" for name in DOCUMENTED.findall(cells[1])}
            line = cells[0] + cells[3]
        paths = [name.rstrip("/") for name in DOCUMENTED.findall(line) if "/" in name]
        named |= {path for path in paths if (root / path.split("/")[0]).exists()}
    assert named
    assert [name for name in named if not (root / name).exists()] == []


def test_every_decision_says_why(root):
    _, *decisions = (root / "docs/decisions/README.md").read_text().split("\n## ")
    assert len(decisions) > 20
    assert [text for text in decisions if not re.search(r"\*\*(Reason|Rejected)\.", text)] == []
