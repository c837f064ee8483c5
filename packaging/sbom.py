# SPDX-License-Identifier: Apache-2.0
"""The list of what is inside a package (SPDX 2.3 in JSON): ours, and the software of others with its version,
licence and files."""

import hashlib
import json
import re
import time

import archive
from parts import LICENSE


def spdx_id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", text)


def package(name, version, license, purl=""):
    entry = {
        "SPDXID": spdx_id(f"Package-{name}"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": license,
        "licenseDeclared": license,
        "copyrightText": "NOASSERTION",
    }
    if purl:
        reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
        entry["externalRefs"] = [reference]
    return entry


def document(name, version, folder, origins):
    """The list for a package `name` with the files of `folder`."""
    ours = package(name, version, LICENSE)
    packages, files, relations = [ours], [], []

    def relate(one, kind, other):
        relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})

    relate("SPDXRef-DOCUMENT", "DESCRIBES", ours["SPDXID"])
    owner = {}
    for origin in sorted(origins):
        theirs = package(origin.name, origin.version, origin.license, origin.purl)
        packages.append(theirs)
        relate(ours["SPDXID"], "CONTAINS" if origin.files else "STATIC_LINK", theirs["SPDXID"])
        owner |= {file: theirs for file in origin.files}
    digest = hashlib.sha256()
    for path in archive.walk(folder):
        if path.is_symlink() or not path.is_file():
            continue
        file = path.relative_to(folder).as_posix()
        checksum = archive.sha256(path)
        digest.update(checksum.encode())
        of = owner.get(file, ours)
        entry = {
            "SPDXID": spdx_id(f"File-{file}"),
            "fileName": f"./{file}",
            "checksums": [{"algorithm": "SHA256", "checksumValue": checksum}],
            "licenseConcluded": of["licenseConcluded"],
            "copyrightText": "NOASSERTION",
        }
        files.append(entry)
        relate(of["SPDXID"], "CONTAINS", entry["SPDXID"])
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": f"urn:nereid:{name}-{version}-{digest.hexdigest()[:32]}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(archive.epoch())),
            "creators": ["Tool: packaging/sbom.py"],
        },
        "packages": packages,
        "files": files,
        "relationships": relations,
    }


def write(target, name, version, folder, origins):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document(name, version, folder, origins), indent=1, sort_keys=True) + "\n")
