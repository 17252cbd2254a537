from __future__ import annotations

import resource

from isulad_py.host.limits import raise_open_files


def test_the_limit_never_falls() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert raise_open_files(before[0] + 1) >= before[0]
        assert raise_open_files(1) == resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= before[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
