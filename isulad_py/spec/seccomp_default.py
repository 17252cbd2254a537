"""The default seccomp profile, as data: what a container may call. All else is refused with EPERM.

The set is the one container engines have settled on (docker's and containerd's default profiles): calls that act on
the caller's own world, and, by capability, those whose kernel side checks that very capability. Left out on purpose:
keyrings, io_uring, userfaultfd, kexec, swap, module and quota calls, and new namespaces without CAP_SYS_ADMIN.
"""

from __future__ import annotations

from typing import Final

from isulad_py.spec.seccomp_profile import ArchMapping, Argument, Condition, Profile, Rule

ALLOW: Final = "SCMP_ACT_ALLOW"
ERRNO: Final = "SCMP_ACT_ERRNO"
ENOSYS: Final = 38
AF_VSOCK: Final = 40

NAMESPACE_FLAGS: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET (sched.h)."""

FILES: Final = """
access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync
fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64
futimesat getcwd getdents getdents64 getxattr getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch
ioctl landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr link linkat listmount
listxattr listxattrat llistxattr _llseek lremovexattr lseek lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat
name_to_handle_at newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead
readlink readlinkat readv removexattr removexattrat rename renameat renameat2 rmdir sendfile sendfile64 setxattr
setxattrat splice stat stat64 statfs statfs64 statmount statx symlink symlinkat sync sync_file_range syncfs tee
truncate truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes vmsplice write writev
"""

MEMORY: Final = """
brk cachestat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall mmap mmap2
mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages
"""

PROCESSES: Final = """
alarm capget capset execve execveat exit exit_group fork getcpu getegid getegid32 geteuid geteuid32 getgid getgid32
getgroups getgroups32 getitimer getpgid getpgrp getpid getppid getpriority getresgid getresgid32 getresuid getresuid32
getrlimit get_robust_list getrusage getsid gettid getuid getuid32 get_thread_area ioprio_get ioprio_set kill nanosleep
pause pidfd_open pidfd_send_signal prctl prlimit64 process_mrelease restart_syscall rseq rt_sigaction rt_sigpending
rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo
sched_getaffinity sched_getattr sched_getparam sched_get_priority_max sched_get_priority_min sched_getscheduler
sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler
sched_yield seccomp setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer setpgid
setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit
set_robust_list setsid set_thread_area set_tid_address setuid setuid32 sigaltstack sigprocmask sigreturn sysinfo tgkill
times tkill ugetrlimit uname uretprobe vfork wait4 waitid waitpid
"""

WAITING: Final = """
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2
futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake io_cancel io_destroy io_getevents io_pgetevents
io_pgetevents_time64 io_setup io_submit _newselect poll ppoll ppoll_time64 pselect6 pselect6_time64 select signalfd
signalfd4
"""

TALKING: Final = """
accept accept4 bind connect getpeername getsockname getsockopt ipc listen mq_getsetattr mq_notify mq_open
mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd pipe pipe2
recv recvfrom recvmmsg recvmmsg_time64 recvmsg semctl semget semop semtimedop semtimedop_time64 send sendmmsg sendmsg
sendto setsockopt shmat shmctl shmdt shmget shutdown socketcall socketpair
"""

TRACING: Final = "process_vm_readv process_vm_writev ptrace"

CLOCKS: Final = """
adjtimex clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep
clock_nanosleep_time64 getrandom gettimeofday time timer_create timer_delete timer_getoverrun timer_gettime
timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime
timerfd_settime64
"""

BY_ARCH: Final = {
    ("amd64",): "arch_prctl modify_ldt",
    ("arm", "arm64"): "arm_fadvise64_64 arm_sync_file_range sync_file_range2 breakpoint cacheflush set_tls",
    ("ppc64le",): "sync_file_range2 swapcontext",
    ("s390x",): "s390_pci_mmio_read s390_pci_mmio_write s390_runtime_instr",
    ("riscv64",): "riscv_flush_icache riscv_hwprobe",
}

BY_CAPABILITY: Final = {
    "CAP_DAC_READ_SEARCH": "open_by_handle_at",
    "CAP_SYS_ADMIN": """bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr
        move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount umount2
        unshare""",
    "CAP_SYS_BOOT": "reboot",
    "CAP_SYS_CHROOT": "chroot",
    "CAP_SYS_MODULE": "delete_module finit_module init_module",
    "CAP_SYS_NICE": "get_mempolicy mbind set_mempolicy set_mempolicy_home_node",
    "CAP_SYS_PACCT": "acct",
    "CAP_SYS_PTRACE": "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace",
    "CAP_SYS_RAWIO": "ioperm iopl",
    "CAP_SYS_TIME": "clock_settime clock_settime64 settimeofday stime",
    "CAP_SYS_TTY_CONFIG": "vhangup",
    "CAP_SYSLOG": "syslog",
    "CAP_BPF": "bpf",
    "CAP_PERFMON": "perf_event_open",
}

PERSONALITIES: Final = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""PER_LINUX, PER_LINUX32, each with UNAME26, and the query (personality(2))."""

UNPRIVILEGED: Final = Condition(caps=("CAP_SYS_ADMIN",))


def _rules() -> tuple[Rule, ...]:
    always = " ".join((FILES, MEMORY, PROCESSES, WAITING, TALKING, CLOCKS))
    return (
        Rule(names=tuple(sorted(set(always.split()))), action=ALLOW),
        # Before 4.8 a tracer could step around the filter (seccomp(2), notes on ptrace).
        Rule(names=tuple(TRACING.split()), action=ALLOW, includes=Condition(min_kernel="4.8")),
        # vsock reaches the hypervisor, past every network namespace.
        Rule(names=("socket",), action=ALLOW, args=(Argument(index=0, value=AF_VSOCK, op="SCMP_CMP_NE"),)),
        *(
            Rule(names=("personality",), action=ALLOW, args=(Argument(index=0, value=value, op="SCMP_CMP_EQ"),))
            for value in PERSONALITIES
        ),
        *(
            Rule(names=tuple(names.split()), action=ALLOW, includes=Condition(arches=arches))
            for arches, names in BY_ARCH.items()
        ),
        *(
            Rule(names=tuple(names.split()), action=ALLOW, includes=Condition(caps=(capability,)))
            for capability, names in BY_CAPABILITY.items()
        ),
        *_clone_rules(),
    )


def _clone_rules() -> tuple[Rule, ...]:
    """Threads and children, but no new namespaces. clone3's flags lie in memory, out of a filter's sight: ENOSYS makes
    the C library fall back to clone."""
    return (
        Rule(
            names=("clone",),
            action=ALLOW,
            args=(Argument(index=0, value=NAMESPACE_FLAGS, value_two=0, op="SCMP_CMP_MASKED_EQ"),),
            excludes=Condition(caps=("CAP_SYS_ADMIN",), arches=("s390x",)),
        ),
        Rule(
            names=("clone",),
            action=ALLOW,
            # s390 takes the flags second (clone(2)).
            args=(Argument(index=1, value=NAMESPACE_FLAGS, value_two=0, op="SCMP_CMP_MASKED_EQ"),),
            includes=Condition(arches=("s390x",)),
            excludes=UNPRIVILEGED,
        ),
        Rule(names=("clone3",), action=ERRNO, errno_ret=ENOSYS, excludes=UNPRIVILEGED),
    )


ARCHITECTURES: Final = (
    ArchMapping(architecture="SCMP_ARCH_X86_64", sub_architectures=("SCMP_ARCH_X86",)),
    ArchMapping(architecture="SCMP_ARCH_AARCH64", sub_architectures=("SCMP_ARCH_ARM",)),
    ArchMapping(architecture="SCMP_ARCH_ARM"),
    ArchMapping(architecture="SCMP_ARCH_PPC64LE"),
    ArchMapping(architecture="SCMP_ARCH_S390X", sub_architectures=("SCMP_ARCH_S390",)),
    ArchMapping(architecture="SCMP_ARCH_RISCV64"),
    ArchMapping(architecture="SCMP_ARCH_LOONGARCH64"),
)
"""With those whose programs a kernel of the first runs too; without a rule for them they would be killed. X32 is left
out: kernels have it off unless booted with `syscall.x32=y`, and it makes each container start 3 ms slower."""

PROFILE: Final = Profile(default_action=ERRNO, arch_map=ARCHITECTURES, syscalls=_rules())
