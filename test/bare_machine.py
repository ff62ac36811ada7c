#!/usr/bin/env python3
"""Shows that the two commands of the README work on a bare Debian: makes one in a folder (debootstrap), clones this
repository's HEAD into it, runs ./quickstart and ./quickstart test there, and both again.

The suite is bookworm (Debian 12: Trilinos 13.2, Open MPI 4), trixie (Debian 13: 13.2, 5), sid (16.1, 6), experimental
(sid with the Trilinos of experimental: 17.0), or another that debootstrap knows.

Needs root and debootstrap, and takes proxies, certificates and keys for apt from this machine. Exit status 1 if a
command fails or, on bookworm, takes too long: 30 minutes from scratch, 5 minutes the second time.

How it works: make_system() fills the folder. Then the script starts itself again, with --inside, in mount and PID
namespaces of its own (run_inside). All that is mounted there goes away with the last process, and all processes end
with the one that main() holds.
"""
import argparse
import contextlib
import glob
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMED = "bookworm"  # the suite whose times the README's readers can rely on
LIMIT_FIRST = 1800  # seconds for both commands from scratch, packages and compilation included
LIMIT_AGAIN = 300  # seconds for both commands when nothing has changed
ROOM = 8 * 10**9  # bytes for the system, the packages and the build
# Experimental is no system of its own: sid with some packages in newer versions, of which these are wanted.
PINNED = "Package: src:trilinos\nPin: release a=experimental\nPin-Priority: 990\n"


def fail(message):
    sys.exit(f"bare_machine: {message}")


def call(*words, **how):
    subprocess.run([str(word) for word in words], check=True, **how)


def output_of(*words):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout


def megabytes(folder):
    return int(output_of("du", "-sxm", folder).split()[0])


# ---- Inside the namespaces of the new system.


def mount_system(folder):
    dev = folder / "dev"
    call("mount", "--make-rprivate", "/")
    call("mount", "--bind", folder, folder)  # the tests of the virtual cluster need a root that is a mount point
    call("mount", "-t", "proc", "proc", folder / "proc")
    call("mount", "--rbind", "/sys", folder / "sys")
    call("mount", "--make-rslave", folder / "sys")
    call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", dev)
    for device in ("null", "zero", "full", "random", "urandom", "tty"):
        (dev / device).touch()
        call("mount", "--bind", f"/dev/{device}", dev / device)
    for name, kind, options in (("pts", "devpts", "newinstance,ptmxmode=666,mode=620"), ("shm", "tmpfs", "mode=1777")):
        (dev / name).mkdir()
        call("mount", "-t", kind, "-o", options, kind, dev / name)
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"),
                         ("stderr", "fd/2")):
        (dev / name).symlink_to(target)


class Commands:
    """Runs commands in the new system one after the other, and reports their times."""

    def __init__(self, folder, as_user):
        self.folder, self.as_user = folder, as_user
        self.report, self.total, self.in_time = [], 0, True

    def status_of(self, command):
        """Of a shell command with an environment as a fresh login has it."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "dumb"}
        for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
            if os.environ.get(name):
                environment[name] = os.environ[name]
        login = ["chroot"]
        if self.as_user:
            login.append("--userspec=builder:builder")
        name = "builder" if self.as_user else "root"
        environment.update(HOME="/home/builder" if self.as_user else "/root", USER=name)
        variables = [f"{name}={value}" for name, value in environment.items()]
        return subprocess.run([*login, self.folder, "env", "-i", *variables, "bash", "-c", f"cd && {command}"],
                              stdin=subprocess.DEVNULL).returncode

    def run(self, name, command):
        print(f"---- {name}", flush=True)
        start = time.monotonic()
        status = self.status_of(command)
        elapsed = time.monotonic() - start
        self.total += elapsed
        self.add(name, elapsed, f"FAILED with status {status}" if status else "")
        if status:
            self.print_report()
            sys.exit(1)

    def compare_total(self, name, limit):
        late = self.total > limit
        within = f"within {limit} s" if limit < math.inf else ""
        self.add(name, self.total, f"TOO LONG, limit {limit} s" if late else within)
        self.in_time = self.in_time and not late
        self.total = 0

    def add(self, name, seconds, remark):
        self.report.append(f"{name:34} {seconds:5.0f} s  {remark}".rstrip())

    def print_report(self):
        print("---- times", *self.report, sep="\n", flush=True)


def run_inside(arguments):
    mount_system(arguments.folder)
    commands = Commands(arguments.folder, arguments.user)
    first, again = (LIMIT_FIRST, LIMIT_AGAIN) if arguments.suite == TIMED else (math.inf, math.inf)
    commands.run("git clone", "git clone -q /var/tmp/komvos.bundle komvos && git -C komvos log -1 --format='%h %s'")
    if arguments.packages_only:
        commands.run("install-dependencies", "cd komvos && docker/install-dependencies")
        commands.run("install-dependencies, again", "cd komvos && docker/install-dependencies")
    else:
        commands.run("./quickstart", "cd komvos && ./quickstart")
        commands.run("./quickstart test", "cd komvos && ./quickstart test")
        commands.compare_total("from scratch", first)
        commands.run("./quickstart, again", "cd komvos && ./quickstart")
        commands.run("./quickstart test, again", "cd komvos && ./quickstart test")
        commands.compare_total("again", again)
    commands.print_report()
    return 0 if commands.in_time else 1


# ---- Outside: makes the new system.


def new_folder():
    for place in filter(None, (os.environ.get("TMPDIR"), "/var/tmp", "/tmp")):
        with contextlib.suppress(OSError):
            if shutil.disk_usage(place).free >= ROOM:
                return Path(tempfile.mkdtemp(prefix="komvos-bare-machine.", dir=place))
    fail(f"no file system with {ROOM // 10**9} GB free; give a folder")


def prepare_folder(given):
    """The folder of the new system, empty."""
    if given is None:
        folder = new_folder()
    else:
        if given.exists() and not (given.is_dir() and not any(given.iterdir())):
            fail(f"{given} is not an empty folder")
        given.mkdir(parents=True, exist_ok=True)
        folder = given.resolve()
    folder.chmod(0o755)
    return folder


def host_sources():
    """Package sources of this machine for Debian's component main: (URL, suite)."""
    lines = output_of("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages",
                      "Origin: Debian", "Component: main").splitlines()
    return sorted({tuple(line.split()) for line in lines})


def system_suite(suite):
    """The suite that the system is made of."""
    return "sid" if suite == "experimental" else suite


def copy_apt_settings(etc, suite, given_mirror, mirror):
    settings = re.findall("^Acquire::(?:http|https|Check-|ForceIP|Retries|AllowInsecure).*",
                          output_of("apt-config", "dump"), re.MULTILINE)
    (etc / "apt/apt.conf.d/99host").write_text("".join(f"{line}\n" for line in settings))
    for name in ("auth.conf", "auth.conf.d", "keyrings", "trusted.gpg.d", "trusted.gpg"):
        if Path("/etc/apt", name).exists():
            call("cp", "-a", f"/etc/apt/{name}", etc / "apt")
    sources = [f"deb {url} {name} main\n" for url, name in host_sources() if name.startswith(system_suite(suite))]
    if not sources or given_mirror:
        sources = [f"deb {mirror} {system_suite(suite)} main\n"]
    if suite == "experimental":
        sources.append(f"deb {mirror} experimental main\n")
        (etc / "apt/preferences.d/experimental").write_text(PINNED)
    (etc / "apt/sources.list").write_text("".join(sources))


def copy_network_settings(folder):
    for name in ("hosts", "resolv.conf"):
        shutil.copy(f"/etc/{name}", folder / "etc" / name)
    certificates = folder / "usr/local/share/ca-certificates"
    certificates.mkdir(parents=True, exist_ok=True)
    ours = glob.glob("/usr/local/share/ca-certificates/*.crt")
    for path in ours:
        shutil.copy(path, certificates)
    if ours:
        call("chroot", folder, "update-ca-certificates", stdout=subprocess.DEVNULL)


def debootstrap_environment():
    """Acquire::http::Proxy is for apt only; debootstrap's downloads need the variable."""
    found = re.search("'(.*)'", output_of("apt-config", "shell", "value", "Acquire::http::Proxy"))
    if found and found[1] not in ("", "DIRECT") and not os.environ.get("http_proxy"):
        return {**os.environ, "http_proxy": found[1]}
    return os.environ


def make_system(folder, arguments):
    mirrors = [arguments.mirror] if arguments.mirror else [url for url, suite in host_sources() if "-" not in suite]
    if not mirrors:
        fail("no Debian mirror in this machine's package sources; use --mirror")
    include = "ca-certificates,git" + (",sudo" if arguments.user else "")
    made = subprocess.run(["debootstrap", "--variant=minbase", f"--include={include}", system_suite(arguments.suite),
                           folder, mirrors[0]],
                          env=debootstrap_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        print(*made.stdout.splitlines()[-20:], sep="\n", file=sys.stderr)
        fail("debootstrap failed")
    copy_network_settings(folder)
    copy_apt_settings(folder / "etc", arguments.suite, arguments.mirror, mirrors[0])
    if arguments.user:
        call("chroot", folder, "useradd", "--create-home", "--shell", "/bin/bash", "builder")
        (folder / "etc/sudoers.d/builder").write_text("builder ALL=(ALL) NOPASSWD: ALL\n")
    call("git", "-C", ROOT, "bundle", "create", "-q", folder / "var/tmp/komvos.bundle", "HEAD", "--branches")


def run_in_namespaces(folder, arguments):
    """Starts this script with --inside. Its processes end with the one that is held here, its mounts with them."""
    flags = [flag for flag in ("--user", "--packages-only") if getattr(arguments, flag[2:].replace("-", "_"))]
    child = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", sys.executable,
                              Path(__file__).resolve(), "--inside", "--suite", arguments.suite, *flags, folder])
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
            time.sleep(1)


def check_machine():
    if os.geteuid() != 0:
        fail("needs root")
    for program in ("debootstrap", "git", "unshare", "chroot"):
        if not shutil.which(program):
            fail(f"needs the program {program}")
    if not output_of("git", "-C", ROOT, "rev-parse", "-q", "--verify", "HEAD"):
        fail(f"{ROOT} has no commit yet")
    if output_of("git", "-C", ROOT, "status", "--porcelain"):
        print("note: changes that are not committed are not part of this check", flush=True)


def run_outside(arguments):
    check_machine()
    folder = prepare_folder(arguments.folder)
    os.environ.pop("TMPDIR", None)  # which need not exist in the new system
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))
    try:
        start = time.monotonic()
        make_system(folder, arguments)
        print(f"bare Debian ({arguments.suite}, git, ca-certificates): {time.monotonic() - start:.0f} s, "
              f"{megabytes(folder)} MB", flush=True)
        status = run_in_namespaces(folder, arguments)
        print(f"size at the end: {megabytes(folder)} MB")
        print(f"bare machine: {'FAILED' if status else 'ok'}")
        return status
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            call("rm", "-rf", "--one-file-system", folder)


def main():
    description, _, _ = __doc__.partition("\n\nHow it works")
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="bookworm",
                        help="bookworm (the default), trixie, sid, experimental, or another that debootstrap knows")
    parser.add_argument("--keep", action="store_true",
                        help="leave the system in its folder (default: remove it at the end)")
    parser.add_argument("--user", action="store_true",
                        help="run the commands as a normal user who has sudo (default: as root)")
    parser.add_argument("--mirror", metavar="URL",
                        help="Debian mirror (default: the one of this machine's package sources)")
    parser.add_argument("--packages-only", action="store_true",
                        help="clone and docker/install-dependencies only, no build")
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER",
                        help="where the system is put; empty or not there yet (default: a new one in $TMPDIR, "
                             "/var/tmp or /tmp)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    return run_inside(arguments) if arguments.inside else run_outside(arguments)


if __name__ == "__main__":
    sys.exit(main())
