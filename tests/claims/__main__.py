"""Whether each claim of docs/cri-fields.tsv is shown by the tests that it names:

    python -m tests.claims [CLAIM ...]

For each call and field that is said to work, the product is made blind for it, and at least one of its tests must fail.
Prints the claims whose tests all pass without it, and fails if there are any. Root, as the tests need.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TABLE = PROJECT / "docs" / "cri-fields.tsv"
CLAIMED = {"works", "given back", "refused"}
SECONDS = 600


def claims() -> dict[str, list[str]]:
    """The tests that each claim names."""
    with TABLE.open(encoding="utf-8", newline="") as table:
        rows = csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["field"]: row["tests"].split(",") for row in rows if row["state"] in CLAIMED}


def is_shown(claim: str, tests: list[str]) -> str:
    """Empty where a test fails for want of it, else what was seen."""
    path = os.pathsep.join((str(PROJECT / "tests" / "claims"), str(PROJECT)))
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=no", *tests]
    environment = {**os.environ, "CRI_BLIND": claim, "PYTHONPATH": path}
    try:
        done = subprocess.run(
            argv, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode == 1:
        return ""
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claims", nargs="*", metavar="CLAIM", help="patterns; all without")
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    chosen = {
        claim: tests
        for claim, tests in claims().items()
        if not wanted.claims or any(fnmatch.fnmatchcase(claim, pattern) for pattern in wanted.claims)
    }
    missing = 0
    with ThreadPoolExecutor(wanted.jobs) as pool:
        for (claim, tests), seen in zip(chosen.items(), pool.map(is_shown, chosen, chosen.values()), strict=True):
            if seen:
                missing += 1
                print(claim, *tests, seen, sep="\t", flush=True)
    print(f"{len(chosen) - missing} of {len(chosen)} claims are shown")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
