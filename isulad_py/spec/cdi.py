"""The Container Device Interface: specification files, and the devices that requests name (CDI SPEC.md, 0.3 to 1.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from isulad_py.model.container import ContainerConfig
from isulad_py.model.edits import WantedDevice
from isulad_py.model.errors import InvalidInput, Unsupported
from isulad_py.model.hooks import Hook, Stage, check_hook
from isulad_py.spec import checks
from isulad_py.spec.devices import NO_PERMISSIONS

ANNOTATION_PREFIX: Final = "cdi.k8s.io/"
"""Keys by which device plugins ask; the value is a list of devices, separated by commas."""
FILE_LIMIT_BYTES: Final = 1024 * 1024
MOST_DEVICES: Final = 4096
"""In one file."""
MOST_WANTED: Final = 256
"""By one container."""
MOST_NESTED: Final = 32
LONGEST_SCALAR: Final = 16 * 1024
"""In YAML, where reading a number to the base of 60 (1:1:1...) costs the square of its length."""

VERSIONS: Final = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")

_WORD: Final = r"[A-Za-z](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?"
_KIND: Final = re.compile(rf"(?P<vendor>{_WORD})/(?P<class>[A-Za-z](?:[A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?)")
_DEVICE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]{0,251}[A-Za-z0-9])?")

Id = Annotated[int, Meta(ge=0, le=2**32 - 2)]
Number = Annotated[int, Meta(ge=0, le=2**32 - 1)]


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """As the specification writes it; what it does not know makes a file invalid."""


class DeviceNode(_Part, frozen=True, kw_only=True):
    path: str
    host_path: str = ""
    type: Literal["", "b", "c", "u", "p"] = ""
    major: Number = 0
    minor: Number = 0
    file_mode: Annotated[int, Meta(ge=0, le=0o7777)] | None = None
    permissions: str = ""
    uid: Id | None = None
    gid: Id | None = None


class Mount(_Part, frozen=True, kw_only=True):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class DeviceHook(_Part, frozen=True, kw_only=True):
    hook_name: Stage
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None

    @property
    def hook(self) -> Hook:
        return Hook(path=self.path, args=self.args, env=self.env, timeout=self.timeout)


class ContainerEdits(_Part, frozen=True, kw_only=True):
    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[DeviceHook, ...] = ()
    additional_gids: tuple[Id, ...] = ()
    intel_rdt: dict[str, object] | None = None
    net_devices: tuple[dict[str, object], ...] = ()


class Device(_Part, frozen=True, kw_only=True):
    name: str
    annotations: dict[str, str] = {}
    container_edits: ContainerEdits = ContainerEdits()


class Document(_Part, frozen=True, kw_only=True):
    cdi_version: str
    kind: str
    annotations: dict[str, str] = {}
    devices: Annotated[tuple[Device, ...], Meta(min_length=1, max_length=MOST_DEVICES)]
    container_edits: ContainerEdits = ContainerEdits()


class SpecFile(Struct, frozen=True, kw_only=True):
    """One file of the specification directories."""

    path: str
    priority: int
    """Of its directory; of one device in two directories, the higher one's counts."""
    document: Document | None = None
    error: str = ""
    """Why there is no document."""


class Chosen(Struct, frozen=True, kw_only=True):
    """Edits that a container gets."""

    device: WantedDevice
    edits: ContainerEdits


def wanted_devices(config: ContainerConfig) -> tuple[WantedDevice, ...]:
    """Devices by field, then by annotation, each once. Raises InvalidInput naming the field."""
    asked = [(name, f"config.CDI_devices[{index}]") for index, name in enumerate(config.cdi_devices)]
    for key in sorted(key for key in config.annotations if key.startswith(ANNOTATION_PREFIX)):
        asked += [(name, f"config.annotations[{key}]") for name in config.annotations[key].split(",")]
    if len(asked) > MOST_WANTED:
        raise InvalidInput(f"{asked[MOST_WANTED][1]}: more than {MOST_WANTED} devices")
    found: dict[str, WantedDevice] = {}
    for name, field in asked:
        kind, _, device = name.partition("=")
        if not _KIND.fullmatch(kind) or not _DEVICE.fullmatch(device):
            raise InvalidInput(f"{field}: {name[:300]!r} is not of the form vendor/class=name")
        found.setdefault(name, WantedDevice(name=name, field=field))
    return tuple(found.values())


def parse(data: bytes, *, is_yaml: bool) -> Document:
    """A specification file. Raises InvalidInput naming the member."""
    try:
        if is_yaml:
            _check_yaml(data)
            document = msgspec.yaml.decode(data, type=Document)
        else:
            document = msgspec.json.decode(data, type=Document)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError) as error:
        raise InvalidInput(f"not a CDI specification: {' '.join(str(error).split())[:500]}") from error
    _check(document)
    return document


def _check_yaml(data: bytes) -> None:
    """Before anything is built: references, by which a small file becomes a huge one, and nesting without end."""
    import yaml  # here, because most nodes have no such file

    depth = 0
    try:
        for event in yaml.parse(data, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise InvalidInput("YAML aliases are not read")
            if isinstance(event, yaml.ScalarEvent) and len(event.value) > LONGEST_SCALAR:
                raise InvalidInput(f"a value is longer than {LONGEST_SCALAR} characters")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MOST_NESTED:
                raise InvalidInput(f"nested more than {MOST_NESTED} deep")
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _check(document: Document) -> None:
    version = document.cdi_version.removeprefix("v")
    if version not in VERSIONS:
        raise InvalidInput(f"cdiVersion: {document.cdi_version[:100]!r} is not one of {', '.join(VERSIONS)}")
    if not _KIND.fullmatch(document.kind):
        raise InvalidInput(f"kind: {document.kind[:300]!r} is not of the form vendor/class")
    _check_edits(document.container_edits, "containerEdits")
    names = set()
    for index, device in enumerate(document.devices):
        field = f"devices[{index}]"
        if not _DEVICE.fullmatch(device.name):
            raise InvalidInput(f"{field}.name: {device.name[:300]!r} is no name of a device")
        if device.name in names:
            raise InvalidInput(f"{field}.name: {device.name!r} is there twice")
        names.add(device.name)
        _check_edits(device.container_edits, f"{field}.containerEdits")
    needed, member = _needed_version(document)
    if VERSIONS.index(version) < VERSIONS.index(needed):
        raise InvalidInput(f"cdiVersion: {version} has no {member} ({needed} has)")


def _check_edits(edits: ContainerEdits, field: str) -> None:
    for entry in edits.env:
        if checks.text(entry, f"{field}.env").find("=") <= 0:
            raise InvalidInput(f"{field}.env: not of the form NAME=VALUE: {entry[:300]!r}")
    for index, node in enumerate(edits.device_nodes):
        place = f"{field}.deviceNodes[{index}]"
        checks.inner_path(node.path, f"{place}.path")
        if node.host_path:
            checks.absolute_path(node.host_path, f"{place}.hostPath")
        if node.permissions != NO_PERMISSIONS and set(node.permissions) - set("rwm"):
            raise InvalidInput(f"{place}.permissions: not of the letters r, w and m: {node.permissions[:100]!r}")
    for index, mount in enumerate(edits.mounts):
        _check_mount(mount, f"{field}.mounts[{index}]")
    for index, hook in enumerate(edits.hooks):
        check_hook(hook.hook, f"{field}.hooks[{index}]")


def _check_mount(mount: Mount, field: str) -> None:
    if checks.inner_path(mount.container_path, f"{field}.containerPath") == "/":
        raise InvalidInput(f"{field}.containerPath: the root itself cannot be mounted on")
    if not checks.text(mount.host_path, f"{field}.hostPath"):
        raise InvalidInput(f"{field}.hostPath: must not be empty")
    for text in (mount.type, *mount.options):
        checks.text(text, field)


def _needed_version(document: Document) -> tuple[str, str]:
    """The oldest that knows what the file uses (SPEC.md, Released versions), and what that is."""
    all_edits = [document.container_edits, *(device.container_edits for device in document.devices)]
    used = (
        ("1.1.0", "netDevices", any(edits.net_devices for edits in all_edits)),
        ("0.7.0", "intelRdt", any(edits.intel_rdt is not None for edits in all_edits)),
        ("0.7.0", "additionalGids", any(edits.additional_gids for edits in all_edits)),
        ("0.6.0", "annotations", bool(document.annotations) or any(d.annotations for d in document.devices)),
        ("0.6.0", "dot in the class of a kind", "." in document.kind.partition("/")[2]),
        ("0.5.0", "device name that begins with a digit", any(d.name[0].isdigit() for d in document.devices)),
        ("0.5.0", "hostPath of a device node", any(node.host_path for e in all_edits for node in e.device_nodes)),
        ("0.4.0", "type of a mount", any(mount.type for edits in all_edits for mount in edits.mounts)),
    )
    return next(((version, member) for version, member, is_used in used if is_used), (VERSIONS[0], ""))


class Catalog:
    """All devices of the specification directories."""

    def __init__(self, files: Iterable[SpecFile]) -> None:
        self._devices: dict[str, tuple[SpecFile, Document, Device]] = {}
        self._twice: dict[str, set[str]] = {}
        self._broken: list[SpecFile] = []
        for file in sorted(files, key=lambda file: file.priority):
            if file.document is None:
                self._broken.append(file)
                continue
            for device in file.document.devices:
                self._add(file, file.document, device)

    def _add(self, file: SpecFile, document: Document, device: Device) -> None:
        name = f"{document.kind}={device.name}"
        other = self._devices.get(name)
        if other is not None and other[0].priority == file.priority:
            self._twice.setdefault(name, {other[0].path}).add(file.path)
            return
        self._twice.pop(name, None)
        self._devices[name] = (file, document, device)

    def choose(self, devices: Sequence[WantedDevice]) -> tuple[Chosen, ...]:
        """What each brings; what a file gives to all its devices comes once. Raises InvalidInput for a device that is
        not declared, or twice in directories of one priority; Unsupported for an edit that cannot be made."""
        found: list[Chosen] = []
        opened: set[str] = set()
        for device in devices:
            file, document, declared = self._find(device)
            if file.path not in opened:
                opened.add(file.path)
                found.append(_supported(device, document.container_edits))
            found.append(_supported(device, declared.container_edits))
        return tuple(found)

    def _find(self, device: WantedDevice) -> tuple[SpecFile, Document, Device]:
        if device.name in self._twice:
            paths = ", ".join(sorted(self._twice[device.name]))
            raise InvalidInput(f"{device.field}: {device.name} is declared more than once: {paths}")
        if device.name not in self._devices:
            broken = "".join(f"; {file.path}: {file.error}" for file in self._broken[:3])
            raise InvalidInput(f"{device.field}: no CDI device {device.name}{broken}")
        return self._devices[device.name]


def _supported(device: WantedDevice, edits: ContainerEdits) -> Chosen:
    unknown: Mapping[str, bool] = {
        "intelRdt": edits.intel_rdt is not None,
        "netDevices": bool(edits.net_devices),
        "deviceNodes of type p": any(node.type == "p" for node in edits.device_nodes),
    }
    for member, is_used in unknown.items():
        if is_used:
            raise Unsupported(f"{device.field}: {device.name} has {member}, which cannot be given to a container here")
    return Chosen(device=device, edits=edits)
