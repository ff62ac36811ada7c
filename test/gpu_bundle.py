#!/usr/bin/env python3
"""Packs the tests of packages comm, hmatrix and krylov, the program komvos and some benchmarks, built for NVIDIA GPUs
of compute capability 9 (H100, H200), with MPI, the CUDA runtime and all other libraries they need, and a script that
checks and times them on a machine that has nothing but the driver.

  test/gpu_bundle.py make         build, and write build/komvos-gpu-bundle.tar.xz
  test/gpu_bundle.py check FILE   unpack and start it here, and in a bare Debian 12 without driver, MPI or Python
                                  (needs root and debootstrap)

On the machine with the GPU: tar xJf komvos-gpu-bundle.tar.xz && komvos-gpu-bundle/run

make needs what the preset cuda needs (CONTRIBUTING.md), and unpacks the Trilinos beside the checkout if none is given.
Debian's MPI knows nothing of GPUs. So the first time an Open MPI of the same version is built from Debian's source
package, with CUDA, and kept in the cache; that takes some ten minutes. A bundle is not for publication: NVIDIA's files
in it have a licence of their own.

How it works: ctest says what there is to run (runs_of_ctest), ldd which libraries the programs load (libraries_of).
gpu_bundle/run is the script inside; gpu_info.c and mpi_check.c tell it what the machine has. They need no GPU.
"""
import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bare_machine

ROOT = Path(__file__).resolve().parent.parent
PARTS = ROOT / "test/gpu_bundle"
BUILD = ROOT / "build/cuda"
NAME = "komvos-gpu-bundle"
PACKED_TRILINOS = ROOT.parent / "shared/trilinos/trilinos-13.2-cuda.tar.xz"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "komvos"
LIMIT = 60 * 2**20  # bytes of the packed file
BENCHMARKS = [BUILD / "perf" / f"perf_{name}" for name in ("products", "row_transfer", "hmatrix_products")]
# The programs hold the same parts of Trilinos: the dictionary reaches from one to the next.
XZ = "xz --lzma2=preset=6,dict=512MiB"
# The C library and the driver are those of the machine.
NOT_PACKED = re.compile(r"(ld-linux.*|lib(c|m|mvec|pthread|dl|rt|util|resolv|nsl|anl|cuda))\.so")
SANITIZER = (Path("/usr/bin"), ("compute-sanitizer", "TreeLauncherSubreaper", "TreeLauncherTargetLdPreloadHelper"),
             Path("/usr/lib/nvidia-cuda-toolkit/compute-sanitizer"))
# Its components are in its libraries, so that it can be moved. Only what one machine needs.
OPEN_MPI_OPTIONS = """
    --with-cuda=/usr --enable-mca-static --enable-dlopen --with-hwloc=external --with-libevent=internal
    --with-pmix=internal --without-verbs --without-ucx --without-ofi --without-psm --without-psm2
    --without-slurm --without-libnl --disable-oshmem --enable-mpi-fortran=no --disable-mpi-cxx
    --disable-io-romio --disable-libompitrace --disable-dependency-tracking --disable-debug CFLAGS=-O2""".split()


def fail(message):
    sys.exit(f"gpu_bundle: {message}")


def call(*words, **how):
    subprocess.run([str(word) for word in words], check=True, **how)


def output_of(*words, **how):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True, **how).stdout


# ---- What the bundle is made of.


def trilinos_prefix(given):
    """The folder of a Trilinos with CUDA; unpacks the one beside the checkout, into the place where .ci/run has it."""
    if given:
        return given.resolve()
    if not PACKED_TRILINOS.exists():
        fail(f"no {PACKED_TRILINOS}; use --trilinos")
    folder = CACHE / hashlib.sha256(PACKED_TRILINOS.read_bytes()).hexdigest()[:16]
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(prefix="unpacking.", dir=CACHE)
        call("tar", "-xJf", PACKED_TRILINOS, "-C", temporary)
        os.rename(temporary, folder)
    return folder / "trilinos-13.2-cuda"


def fetch_open_mpi(folder):
    """Debian's source package, of the release that this machine's packages come from. Returns the unpacked folder."""
    sources = [f"deb-src {url} {suite} main\n" for url, suite in bare_machine.host_sources() if "-" not in suite]
    if not sources:
        fail("no Debian source of packages here to get the source of Open MPI from; use --mpi")
    (folder / "sources.list").write_text("".join(sources))
    (folder / "lists/partial").mkdir(parents=True)
    options = ["-q", "-o", f"Dir::Etc::SourceList={folder}/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null", "-o",
               f"Dir::State::Lists={folder}/lists", "-o", "APT::Sandbox::User=root"]
    call("apt-get", *options, "update", stdout=subprocess.DEVNULL)
    call("apt-get", *options, "--download-only", "source", "openmpi", cwd=folder, stdout=subprocess.DEVNULL)
    call("tar", "-xf", next(folder.glob("openmpi_*.orig.tar.*")), "-C", folder)
    return next(path for path in folder.glob("openmpi-*") if path.is_dir())


def mpi_prefix(given, jobs):
    """The folder of an Open MPI for the bundle. It must be of the version that the programs are compiled with."""
    if given:
        return given.resolve()
    version = re.search(r"(\d+\.\d+\.\d+)", output_of("mpirun", "--version"))[1]
    prefix = CACHE / f"openmpi-{version}-cuda"
    if not (prefix / "bin/ompi_info").exists():  # one of the last to be installed
        print(f"building Open MPI {version} with CUDA, once, into {prefix}", flush=True)
        with tempfile.TemporaryDirectory(prefix="komvos-openmpi.") as temporary:
            source = fetch_open_mpi(Path(temporary))
            build = Path(temporary) / "build"
            build.mkdir()
            environment = {**os.environ, "CCACHE_DISABLE": "1"}
            with open(CACHE / "openmpi-build.log", "w", encoding="utf-8") as log:
                for command in ([source / "configure", f"--prefix={prefix}", *OPEN_MPI_OPTIONS],
                                ["make", "-s", f"-j{jobs}"], ["make", "-s", "install"]):
                    call(*command, cwd=build, stdout=log, stderr=subprocess.STDOUT, env=environment)
    return prefix


def build_programs(trilinos, jobs):
    environment = {**os.environ, "OMPI_CXX": str(trilinos / "bin/nvcc_wrapper"),
                   "NVCC_WRAPPER_DEFAULT_COMPILER": "g++-11", "CCACHE_DISABLE": "1"}
    call("cmake", "--preset", "cuda", f"-DCMAKE_PREFIX_PATH={trilinos}", cwd=ROOT, env=environment,
         stdout=subprocess.DEVNULL)
    programs = sorted({run["path"] for run in runs_of_ctest()})
    call("cmake", "--build", BUILD, "--parallel", str(jobs), "--target", "komvos",
         *(program.name for program in [*BENCHMARKS, *programs]), cwd=ROOT, env=environment)
    return [BUILD / "src/komvos", *BENCHMARKS, *programs]


def runs_of_ctest():
    """What ctest runs under mpirun of these packages, for runs.tsv. Komvos::core has nothing to do with GPUs."""
    listed = output_of("ctest", "--test-dir", BUILD, "--show-only=json-v1", "-L", "^(comm|hmatrix|krylov)$",
                       "-LE", "^core$")
    tests = json.loads(listed)["tests"]
    runs = []
    for test in tests:
        words = test.get("command", [])
        place = next((i for i, word in enumerate(words) if word.startswith(str(BUILD))), None)
        if place is None or "-n" not in words[:place]:
            continue
        environment = next((p["value"] for p in test["properties"] if p["name"] == "ENVIRONMENT"), [])
        runs.append({"name": test["name"], "ranks": words[words.index("-n") + 1], "program": Path(words[place]).name,
                     "path": Path(words[place]), "arguments": " ".join(words[place + 1:]) or "-",
                     "variables": ",".join(v for v in environment if v.startswith(("KOMVOS_", "TPETRA_"))) or "-"})
    if not runs:
        fail(f"ctest knows no tests with the labels comm, hmatrix and krylov in {BUILD}")
    return runs


# ---- Packing.


def libraries_of(programs, mpi):
    """Paths of what the dynamic loader finds for the programs, MPI of its own folder first."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(mpi / "lib")}
    found = {}
    for program in programs:
        for line in output_of("ldd", program, env=environment).splitlines():
            name, _, rest = line.strip().partition(" => ")
            if not rest or NOT_PACKED.match(name):
                continue
            if rest.startswith("not found"):
                fail(f"{program} needs {name}, which is not here")
            found[name] = Path(rest.split(" (")[0])
    return found


def glibc_needed(files):
    versions = set()
    for file in files:
        text = subprocess.run(["objdump", "-p", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False).stdout
        versions.update(tuple(map(int, match.split("."))) for match in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", text))
    return ".".join(map(str, max(versions)))


def copy(source, target, strip=False):
    shutil.copy(source, target)
    if strip:
        call("strip", "--strip-unneeded", target)


def fill(folder, programs, mpi):
    """Everything but the manifest."""
    for name in ("bin", "lib", "share", "etc"):
        (folder / name).mkdir(parents=True)
    for program in programs:
        copy(program, folder / "bin", strip=False)
        call("strip", folder / "bin" / program.name)
    call("cc", "-O2", "-Wall", "-o", folder / "bin/gpu_info", PARTS / "gpu_info.c", "-ldl")
    call("cc", "-O2", "-Wall", "-o", folder / "bin/mpi_check", PARTS / "mpi_check.c", f"-I{mpi}/include",
         f"-L{mpi}/lib", "-lmpi")
    for name in ("mpirun", "orted"):
        copy(mpi / "bin" / name, folder / "bin" / name, strip=True)
    for name in ("openmpi", "pmix"):
        if (mpi / "share" / name).exists():
            shutil.copytree(mpi / "share" / name, folder / "share" / name)
    for name, path in libraries_of([*(folder / "bin").iterdir()], mpi).items():
        copy(path, folder / "lib" / name, strip=True)
    programs_folder, names, libraries = SANITIZER
    if (programs_folder / names[0]).exists():
        (folder / "sanitizer").mkdir()
        for path in [*(programs_folder / name for name in names), *libraries.glob("*.so")]:
            shutil.copy(path, folder / "sanitizer")
    copy(PARTS / "run", folder / "run")
    columns = ("name", "ranks", "program", "arguments", "variables")
    (folder / "runs.tsv").write_text("".join("\t".join(run[c] for c in columns) + "\n" for run in runs_of_ctest()))


def knows_cuda(mpi):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(mpi / "lib")}
    return "opal_built_with_cuda_support:value:true" in output_of(mpi / "bin/ompi_info", "--parsable", "--all",
                                                                  env=environment)


def write_manifest(folder, mpi):
    elf = [path for path in folder.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    needed = glibc_needed(elf)
    (folder / "glibc-needed").write_text(needed + "\n")
    dirty = output_of("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no")
    manifest = {
        "format": NAME, "version": 1,
        "commit": output_of("git", "-C", ROOT, "rev-parse", "HEAD").strip()[:12] + ("-changed" if dirty else ""),
        "architecture": "sm_90", "nvcc": re.search(r"release (\S+),", output_of("nvcc", "--version"))[1],
        "mpi_knows_cuda": knows_cuda(mpi), "glibc_needed": needed,
        "bytes": {str(path.relative_to(folder)): path.stat().st_size for path in sorted(elf)}}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def make(arguments):
    jobs = arguments.jobs
    trilinos = trilinos_prefix(arguments.trilinos)
    mpi = mpi_prefix(arguments.mpi, jobs)
    programs = build_programs(trilinos, jobs)
    output = arguments.output.resolve()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="komvos-bundle.") as temporary:
        folder = Path(temporary) / NAME
        fill(folder, programs, mpi)
        manifest = write_manifest(folder, mpi)
        unpacked = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        call("tar", "-C", temporary, "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
             "-I", XZ, "-cf", output, NAME)
    size = output.stat().st_size
    print(f"{output}: {size / 2**20:.1f} MiB packed, {unpacked / 2**20:.0f} MiB unpacked; commit {manifest['commit']}; "
          f"glibc {manifest['glibc_needed']} or newer; MPI {'with' if manifest['mpi_knows_cuda'] else 'without'} CUDA")
    if size > LIMIT:
        fail(f"it may have {LIMIT // 2**20} MiB at most")
    return 0


# ---- Checking without a GPU.


def expect(what, command, status, texts):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    missing = [text for text in texts if text not in done.stdout]
    if done.returncode != status or missing:
        print(done.stdout[-4000:])
        fail(f"{what}: exit status {done.returncode}, expected {status}; missing from the output: {missing}")
    print(f"{what}: exit status {status}, as expected")
    return done.stdout


LISTED = ("BringsEveryValueAndSumsBackForAnyNumberOfColumnsInAnyOrder", "staged", "gpu-aware", "memcheck",
          "komvos bench halo")
MPI_STARTS = 'MPI: {"library": "Open MPI v'


def check_inside(folder):
    bare_machine.mount_system(folder)
    program = ["chroot", folder, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "bash",
               f"/opt/{NAME}/run", "--output", "/root/report"]
    expect("bare Debian 12, --list", [*program, "--list"], 0, LISTED)
    out = expect("bare Debian 12, run", program, 3, ("no GPU: no NVIDIA driver: libcuda.so.1", MPI_STARTS))
    print("".join(f"    {line}\n" for line in out.splitlines()), end="")
    return 0


def make_bare_system(folder):
    mirrors = [url for url, suite in bare_machine.host_sources() if "-" not in suite]
    if not mirrors:
        fail("no Debian mirror in this machine's package sources")
    call("debootstrap", "--variant=minbase", "bookworm", folder, mirrors[0], stdout=subprocess.DEVNULL,
         env=bare_machine.debootstrap_environment())
    shutil.copy("/etc/hosts", folder / "etc/hosts")  # else MPI asks for this machine's name in vain


def check(arguments):
    if arguments.inside:
        return check_inside(arguments.file)
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        fail("check needs root and debootstrap")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="komvos-bare.", dir="/var/tmp")))
        make_bare_system(folder)
        call("tar", "-xJf", arguments.file.resolve(), "-C", folder / "opt")
        here = folder / "opt" / NAME
        if subprocess.run([here / "bin/gpu_info"], stdout=subprocess.DEVNULL, check=False).returncode == 0:
            print("this machine has a GPU: not checked here; use the script run of the bundle")
        else:
            program = [here / "run", "--output", folder / "tmp/report"]
            expect("this machine, --list", [*program, "--list"], 0, LISTED)
            expect("this machine, run", program, 3, ("no GPU: ", MPI_STARTS))
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", sys.executable, __file__,
                               "check", "--inside", folder], check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\nHow it works")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="build and pack")
    making.add_argument("--output", type=Path, default=ROOT / f"build/{NAME}.tar.xz", metavar="FILE")
    making.add_argument("--trilinos", type=Path, metavar="FOLDER",
                        help="a Trilinos with CUDA (default: the packed one beside the checkout)")
    making.add_argument("--mpi", type=Path, metavar="FOLDER",
                        help="an Open MPI of the installed version, components in its libraries (default: built once)")
    making.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    checking = commands.add_parser("check", help="start it where no GPU is")
    checking.add_argument("file", type=Path, metavar="FILE")
    checking.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    return make(arguments) if arguments.command == "make" else check(arguments)


if __name__ == "__main__":
    sys.exit(main())
