from __future__ import annotations

from isulad_py.config.schema import Config, RegistryEntry
from isulad_py.daemon.adapters import injection_places, registry_options


def test_both_ways_of_naming_mirrors_and_insecure_hosts() -> None:
    entry = RegistryEntry(mirrors=("slow.example",), insecure=True, ca_file="/ca.pem")
    config = Config(
        registry_mirrors=("http://fast.example:5000",),
        registries={"docker.io": entry, "quay.io": RegistryEntry()},
        insecure_registries=("10.0.0.0/8",),
        insecure_skip_verify_enforce=True,
        certs_dir="/certs",
        registry_auth_file="/auth.json",
    )
    options = registry_options(config)
    assert options.mirrors == {"docker.io": ("http://fast.example:5000", "slow.example")}
    assert options.insecure_hosts == ("10.0.0.0/8", "docker.io", "registry-1.docker.io")
    assert options.ca_files == {"docker.io": "/ca.pem", "registry-1.docker.io": "/ca.pem"}
    assert options.auth_file == "/auth.json"
    assert (options.skip_verify, options.certs_dir) == (True, "/certs")


def test_cdi_is_read_only_where_it_is_on() -> None:
    off = injection_places(Config(hook_spec="/h", hooks_dir=("/d",)))
    assert (off.cdi_dirs, off.hook_spec, off.hook_dirs) == (None, "/h", ("/d",))
    assert injection_places(Config(enable_cdi=True)).cdi_dirs == ("/etc/cdi", "/var/run/cdi")
