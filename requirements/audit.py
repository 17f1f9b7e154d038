"""`make audit-deps`: ask for known vulnerabilities of every version that is locked, and say so where nobody answered.

pip-audit passes over a package that its service does not know, and ends well: behind a mirror of the index that is every
package. So what it left out is counted here, and an audit that left something out does not end well.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCKS = (
    "build.txt",
    "run.txt",
    "test.txt",
    "docs.txt",
    "oldest.txt",
    "tools.txt",
    "classifier.txt",
)
SERVICES = ("pypi", "osv")
FOUND, NOT_CHECKED = 1, 3
SHOWN = 120  # characters of an error


def ask(lock: Path, service: str) -> list[dict[str, Any]] | str:
    """Return what pip-audit says of each package of a lock file; or why there is no answer, in a line."""
    options = ["--require-hashes", "--disable-pip", "--progress-spinner=off", "--format=json", "--timeout=15"]
    command = [sys.executable, "-m", "pip_audit", *options, "-s", service, "-r", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return list(json.loads(done.stdout)["dependencies"])
    except (ValueError, KeyError):
        said = done.stderr.strip().splitlines()
        return said[-1][:SHOWN] if said else f"pip-audit ended with {done.returncode} and said nothing"


def judge(name: str, answers: list[dict[str, Any]]) -> tuple[int, str]:
    """Return how the audit of a lock file ends, and a sentence with what was found.

    Args:
        name: of the file.
        answers: of pip-audit, a package each: `vulns`, or `skip_reason` where it was not checked.
    """
    skipped = [one["name"] for one in answers if "skip_reason" in one]
    found = [
        f"{one['name']} {one['version']}: {', '.join(sorted(v['id'] for v in one['vulns']))}"
        for one in answers
        if one.get("vulns")
    ]
    checked = f"{len(answers) - len(skipped)} of {len(answers)} packages checked"
    if found:
        return FOUND, f"{name}: {checked}; known vulnerabilities:\n  " + "\n  ".join(found)
    if skipped or not answers:
        return (
            NOT_CHECKED,
            f"{name}: NOT AUDITED, {checked}; left out: {', '.join(skipped[:5])}{' ...' * (len(skipped) > 5)}",
        )
    return 0, f"{name}: {checked}, no known vulnerability"


def main() -> int:
    """Audit each lock file by the first service that answers; return 0, 1 (found something) or 3 (something was not checked)."""
    ends = set()
    for name in LOCKS:
        lock = Path(__file__).parent / name
        for service in SERVICES:
            answers = ask(lock, service)
            end, said = (
                (NOT_CHECKED, f"{name}: NOT AUDITED: {answers}")
                if isinstance(answers, str)
                else judge(name, answers)
            )
            if end != NOT_CHECKED:
                break
        sys.stdout.write(said + "\n")
        ends.add(end)
    return FOUND if FOUND in ends else max(ends)


if __name__ == "__main__":
    sys.exit(main())
