"""The bill of materials of a wheel: CycloneDX 1.6 as JSON. PEP 770 gives its place in a wheel."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
import uuid
from typing import Any

from targets import Target

LLVM_LICENSE = "Apache-2.0 WITH LLVM-exception"
GCC_LICENSE = "GPL-3.0-or-later WITH GCC-exception-3.1"


def tools(target: Target) -> dict[str, str]:
    """The versions of what builds the libraries for a platform."""
    found = {name: importlib.metadata.version(name) for name in ("setuptools", "ziglang")}
    found["clang (of ziglang)"] = _version([sys.executable, "-m", "ziglang", "c++"])
    if target.gcc:
        gcc = f"{target.gcc}g++"
        found[gcc] = subprocess.check_output([gcc, "-dumpfullversion"], text=True).strip()
    if target.linker:
        found[target.linker] = _version([target.linker])
    return found


def parts(target: Target, versions: dict[str, str]) -> list[dict[str, str]]:
    """The libraries of others that the native libraries contain."""
    if target.system == "Darwin":  # it has a libc++ of its own
        return []
    clang = versions["clang (of ziglang)"]
    contained = [{"name": "libc++", "version": clang, "license": LLVM_LICENSE}]
    zig = versions["ziglang"]
    contained += [{"name": "compiler-rt (of zig)", "version": zig, "license": "MIT"}]
    if target.system == "Windows":
        contained += [{"name": "mingw-w64 (of zig)", "version": zig, "license": "ZPL-2.1"}]
    if target.processor == "x86_64":  # __cpu_model
        version = versions[f"{target.gcc}g++"]
        contained += [{"name": "libgcc", "version": version, "license": GCC_LICENSE}]
    return contained


def _version(command: list[str]) -> str:
    done = subprocess.run([*command, "--version"], check=True, stdout=subprocess.PIPE, text=True)
    found = re.search(r"\d+\.\d+(\.\d+)*", done.stdout)
    assert found, done.stdout
    return found[0]


def sbom(
    name: str,
    version: str,
    files: dict[str, bytes],
    tools: dict[str, str],
    contained: list[dict[str, str]],
    epoch: int,
) -> str:
    """The text of the file.

    Args:
      name, version: of the package.
      files: the native libraries of the wheel, by path.
      tools: the versions of what they were built with.
      contained: name, version and license of each library of others that they contain.
      epoch: seconds since 1970 that stand for the time of the build.
    """
    digests = {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files.items())}
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(digests))}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).isoformat(),
            "tools": {
                "components": [
                    {"type": "application", "name": tool, "version": number}
                    for tool, number in sorted(tools.items())
                ]
            },
            "component": {
                "type": "library",
                "bom-ref": "package",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name.replace('_', '-')}@{version}",
                "licenses": [{"expression": "Apache-2.0 AND CC-BY-4.0"}],
            },
        },
        "components": [
            {
                "type": "file",
                "bom-ref": path,
                "name": path,
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
            for path, digest in digests.items()
        ]
        + [
            {
                "type": "library",
                "bom-ref": part["name"],
                "name": part["name"],
                "version": part["version"],
                "licenses": [{"expression": part["license"]}],
            }
            for part in contained
        ],
    }
    return json.dumps(document, indent=1) + "\n"
