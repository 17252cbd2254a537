"""Generates isulad_py/api from protos/; `--check` only tells whether the two have drifted apart.

    python protos/generate.py [--check]

Needs the development extras (grpcio-tools for protoc, betterproto's compiler). The comparison is of syntax trees,
because the plugin's layout depends on the formatter that happens to be installed.
"""

from __future__ import annotations

import argparse
import ast
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
API = PROTOS.parent / "isulad_py" / "api"
PLUGIN = "protoc-gen-python_betterproto"
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"
"""google/protobuf/*.proto, as protoc comes with them."""


def generate(into: Path) -> None:
    """Runs protoc with betterproto's plugin over every .proto file."""
    plugin = Path(sysconfig.get_path("scripts")) / PLUGIN
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    arguments = [
        "protoc",
        f"--proto_path={PROTOS}",
        f"--proto_path={WELL_KNOWN}",
        f"--plugin={PLUGIN}={plugin}",
        f"--python_betterproto_out={into}",
        *sources,
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")
    # The package's own door-plate is written by hand.
    (into / "__init__.py").unlink(missing_ok=True)


def modules(root: Path) -> dict[str, str]:
    """Generated modules below `root`: the syntax tree by relative path."""
    return {
        str(path.relative_to(root)): ast.dump(ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(root.rglob("*.py"))
        if path != root / "__init__.py"
    }


def drift(fresh: Path) -> list[str]:
    """Modules of the API that are missing, left over or different."""
    wanted, present = modules(fresh), modules(API)
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def replace(fresh: Path) -> None:
    for old in API.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
    shutil.copytree(fresh, API, dirs_exist_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the API has drifted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        generate(fresh)
        if not options.check:
            replace(fresh)
            return
        drifted = drift(fresh)
    if drifted:
        sys.stderr.write("isulad_py/api differs from protos/: " + ", ".join(drifted) + "\nrun: nox -s protos\n")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
