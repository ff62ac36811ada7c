#!/usr/bin/env python3
"""Installs the build into a folder of its own, and builds and runs test/client against that copy."""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run(command, limit):
    print("+", " ".join(map(str, command)), flush=True)
    subprocess.run([str(word) for word in command], check=True, timeout=limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build", required=True, type=Path, help="the build to install")
    parser.add_argument("--generator", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--prefix-path", default="", help="where the Trilinos is, as CMAKE_PREFIX_PATH")
    parser.add_argument("--mpiexec", required=True)
    arguments = parser.parse_args()
    client = Path(__file__).resolve().parent / "client"
    with tempfile.TemporaryDirectory(prefix="komvos-install-") as folder:
        prefix, build = Path(folder, "prefix"), Path(folder, "build")
        run([arguments.cmake, "--install", arguments.build, "--prefix", prefix], 120)
        prefixes = ";".join(filter(None, [str(prefix), arguments.prefix_path, os.environ.get("CMAKE_PREFIX_PATH", "").replace(":", ";")]))
        run([arguments.cmake, "-S", client, "-B", build, "-G", arguments.generator,
             f"-DCMAKE_PREFIX_PATH={prefixes}", f"-DCMAKE_CXX_COMPILER={arguments.compiler}"], 120)
        run([arguments.cmake, "--build", build], 600)
        run([arguments.mpiexec, "-n", "2", build / "client"], 60)
        for optional in (build / "multigrid_client", prefix / "bin" / "komvos"):
            if optional.exists():
                run([arguments.mpiexec, "-n", "2", optional] + (["--version"] if optional.name == "komvos" else []), 60)


if __name__ == "__main__":
    sys.exit(main())
