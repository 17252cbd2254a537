"""The default AppArmor profile, in the parser's language (apparmor.d(5)).

What engines have settled on for containers without more privileges: everything a file's mode and a capability allow,
but no mounts, no writes to the host's settings in /proc and /sys, and signals and traces among the containers only.
Nothing is included from /etc/apparmor.d: the profile must load wherever the parser runs.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "isulad-default"

PROFILE: Final = f"""\
profile {NAME} flags=(attach_disconnected,mediate_deleted) {{
  capability,
  file,
  network,
  umount,
  unix,

  # The daemon, its monitors and runtimes end containers; so does a kubelet's shell.
  signal (receive) peer=unconfined,
  signal (receive) peer={{runc,crun}},
  signal (send, receive) peer={NAME},
  ptrace (trace, read, tracedby, readby) peer={NAME},

  deny mount,

  deny /proc/* w,
  deny /proc/{{acpi,asound,bus,cpu,driver,dynamic_debug,fs,irq,pressure,scsi,sysvipc,tty}}/** w,
  deny /proc/sys/[^k]** w,
  deny /proc/sys/k[^e]** w,
  deny /proc/sys/kernel/[^s]** w,
  deny /proc/sys/kernel/s[^h]** w,
  deny /proc/kcore rwklx,
  deny /proc/sysrq-trigger rwklx,

  deny /sys/{{block,bus,class,dev,devices,hypervisor,kernel,module,power}}/** wklx,
  deny /sys/fs/[^c]** wklx,
  deny /sys/firmware/** rwklx,
  deny /sys/devices/virtual/powercap/** rwklx,
  deny /sys/kernel/security/** rwklx,
}}
"""
