from __future__ import annotations

import shutil
import subprocess

import pytest

from isulad_py.spec.apparmor_default import NAME, PROFILE

PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


def test_it_says_what_it_forbids() -> None:
    assert PROFILE.startswith(f"profile {NAME} ")
    assert "{{" not in PROFILE
    denied = [line.split()[1] for line in PROFILE.splitlines() if line.startswith("  deny ")]
    assert {"mount,", "/proc/kcore", "/sys/firmware/**", "/sys/kernel/security/**"} <= set(denied)
    assert PROFILE.count("{") == PROFILE.count("}")


@pytest.mark.skipif(not shutil.which("apparmor_parser", path=PATH), reason="apparmor_parser is not installed")
def test_the_parser_takes_it() -> None:
    done = subprocess.run(
        ["apparmor_parser", "--skip-kernel-load", "--skip-cache", "--stdout"],
        input=PROFILE.encode(), capture_output=True, check=False, env={"PATH": PATH}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
