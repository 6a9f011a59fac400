"""The bill of materials of a wheel: CycloneDX 1.6 as JSON. PEP 770 gives its place in a wheel."""

from __future__ import annotations

import datetime
import hashlib
import json
import uuid
from typing import Any


def sbom(
    name: str, version: str, files: dict[str, bytes], tools: dict[str, str], epoch: int
) -> str:
    """The text of the file.

    Args:
      name, version: of the package.
      files: the native libraries of the wheel, by path.
      tools: the versions of what they were built with. What a tool links into them is its own.
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
                "licenses": [{"license": {"id": "Apache-2.0"}}],
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
        ],
    }
    return json.dumps(document, indent=1) + "\n"
