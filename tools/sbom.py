"""Write a bill of materials in SPDX 2.3: ``python tools/sbom.py sbom.spdx.json``.

It lists steelyard and all that it needs, extras apart, as installed where it is run,
with versions and licences by their own metadata.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NONE = "NOASSERTION"

_SPDX = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")


def needed(name: str) -> list[str]:
    """Return the names of what a distribution needs here, extras apart."""
    asked = [Requirement(text) for text in distribution(name).requires or ()]
    here = [r for r in asked if r.marker is None or r.marker.evaluate({"extra": ""})]
    return sorted({canonicalize_name(r.name) for r in here})


def closure(root: str) -> dict[str, list[str]]:
    """Return all that `root` needs, directly or not, each with what it needs."""
    needs: dict[str, list[str]] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in needs:
            needs[name] = needed(name)
            waiting += needs[name]
    return needs


def package(of: Distribution) -> dict[str, Any]:
    """Describe one distribution."""
    licence = str(of.metadata.json.get("license_expression", NONE))
    name = canonicalize_name(of.metadata["Name"])
    return {
        "SPDXID": identifier(name),
        "name": name,
        "versionInfo": of.version,
        "downloadLocation": NONE,
        "filesAnalyzed": False,
        "licenseConcluded": NONE,
        "licenseDeclared": licence if _SPDX.fullmatch(licence) else NONE,
        "copyrightText": NONE,
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:pypi/{name}@{of.version}",
            }
        ],
    }


def identifier(name: str) -> str:
    """Return the identifier of a package within the document."""
    return f"SPDXRef-{name.replace('_', '-')}"


def relation(one: str, kind: str, other: str) -> dict[str, str]:
    """Relate two elements of the document."""
    return {
        "spdxElementId": one,
        "relationshipType": kind,
        "relatedSpdxElement": other,
    }


def document(root: str = "steelyard") -> dict[str, Any]:
    """Return the bill of materials of an installed distribution."""
    needs = closure(root)
    version = distribution(root).version
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", identifier(root))]
    relations += [
        relation(identifier(name), "DEPENDS_ON", identifier(other))
        for name in sorted(needs)
        for other in needs[name]
    ]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{root}-{version}",
        "documentNamespace": f"urn:spdx:{root}-{version}",
        "creationInfo": {
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: steelyard-sbom"],
        },
        "packages": [package(distribution(name)) for name in sorted(needs)],
        "relationships": relations,
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(document(), indent=1) + "\n", "utf-8")
