#!/usr/bin/env python3
"""Installs the build into a folder of its own, and builds and runs programs against that copy.

core_client: test/core_client, which wants Komvos::core alone; Trilinos must not be looked for
client:      test/client, programs as a user would write them: one line in place of Tpetra's, everything that a program may
             do with a matrix, an import and an export, compared with Tpetra on 1 to 8 ranks, multigrid and a complex
             hierarchical matrix if they are built; and the installed komvos
examples:    packages/comm/example, on several numbers of ranks; each checks its own result
"""
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(command, limit):
    print("+", " ".join(map(str, command)), flush=True)
    subprocess.run([str(word) for word in command], check=True, timeout=limit)


def run_core_client(build, prefix, mpi):
    for ranks in (1, 5):
        run(mpi(ranks) + [build / "core_client"], 60)


def run_client(build, prefix, mpi):
    run(mpi(2) + [build / "client"], 60)
    run(mpi(2) + [build / "types_client"], 60)
    for ranks in range(1, 9):
        run(mpi(ranks) + [build / "equals_tpetra"], 120)
    for part, optional in (("multigrid", "multigrid_client"), ("hmatrix", "waves_client")):
        if list(prefix.glob(f"lib*/**/libkomvos_{part}.*")):
            run(mpi(2) + [build / optional], 60)
    if (prefix / "bin" / "komvos").exists():
        run(mpi(2) + [prefix / "bin" / "komvos", "--version"], 60)


def run_examples(build, prefix, mpi):
    run([build / "05_predict_a_cluster"], 60)
    cache = build / "tuning_cache.json"
    for ranks in (1, 4, 5):  # five: two ranks, two ranks and one on a node
        for example in ("01_belos_one_line", "02_import", "04_own_topology", "09_assembly"):
            run(mpi(ranks) + [build / example], 60)
        run(mpi(ranks) + [build / "03_choose_and_save_routes", cache], 60)
        for example in ("08_pipelined_bicgstab", "10_boundary_elements"):
            if (build / example).exists():
                run(mpi(ranks) + [build / example], 60)
    if (build / "06_belos_and_muelu").exists():
        check_that_only_lines_of_ours_are_new()
        for ranks in (1, 4, 5):
            run_alike(*(mpi(ranks) + [build / name] for name in MUELU_EXAMPLES))


MUELU_EXAMPLES = ("06_belos_and_muelu", "07_belos_and_muelu_node_aware")


def check_that_only_lines_of_ours_are_new():
    """Without the comments above the first include."""
    ordinary, ours = ((ROOT / "packages/comm/example" / f"{name}.cpp").read_text() for name in MUELU_EXAMPLES)
    without = [line for line in ours.splitlines() if "Komvos" not in line]
    first = [lines.index("#include <BelosLinearProblem.hpp>") for lines in (ordinary.splitlines(), without)]
    if ordinary.splitlines()[first[0]:] != without[first[1]:]:
        sys.exit("the examples with MueLu differ in more than lines with 'Komvos'")


def run_alike(*commands):
    """They print the same: as many iterations, the same residual."""
    outputs = set()
    for command in commands:
        print("+", " ".join(map(str, command)), flush=True)
        outputs.add(subprocess.run([str(word) for word in command], check=True, timeout=60, capture_output=True,
                                   text=True).stdout)
    if len(outputs) != 1:
        sys.exit(f"the examples with MueLu print different things: {outputs}")


PROJECTS = {
    "core_client": (ROOT / "test/core_client", run_core_client, ["-DCMAKE_DISABLE_FIND_PACKAGE_KomvosTrilinos=ON"]),
    "client": (ROOT / "test/client", run_client, []),
    "examples": (ROOT / "packages/comm/example", run_examples, []),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", choices=PROJECTS)
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build", required=True, type=Path, help="the build to install")
    parser.add_argument("--generator", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--prefix-path", default="", help="where the Trilinos is, as CMAKE_PREFIX_PATH")
    parser.add_argument("--launcher", default="", help="of the compiler, as CMAKE_CXX_COMPILER_LAUNCHER: ccache")
    parser.add_argument("--mpiexec", required=True)
    arguments = parser.parse_args()
    source, run_programs, settings = PROJECTS[arguments.project]
    # The copy is always made afresh. What was built against it stays: files keep their times when they are installed,
    # so that only what has changed is compiled again.
    folder = arguments.build / "test" / ("install-" + arguments.project)
    prefix, build = folder / "prefix", folder / "build"
    shutil.rmtree(prefix, ignore_errors=True)
    run([arguments.cmake, "--install", arguments.build, "--prefix", prefix], 120)
    prefixes = [str(prefix), arguments.prefix_path, os.environ.get("CMAKE_PREFIX_PATH", "").replace(":", ";")]
    run([arguments.cmake, "-S", source, "-B", build, "-G", arguments.generator,
         f"-DCMAKE_PREFIX_PATH={';'.join(filter(None, prefixes))}", f"-DCMAKE_CXX_COMPILER={arguments.compiler}",
         f"-DCMAKE_CXX_COMPILER_LAUNCHER={arguments.launcher}", *settings], 120)
    run([arguments.cmake, "--build", build, "--parallel", "2"], 600)
    run_programs(build, prefix, lambda ranks: [arguments.mpiexec, "-n", str(ranks)])


if __name__ == "__main__":
    sys.exit(main())
