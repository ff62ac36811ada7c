#!/usr/bin/env python3
"""The structure of the sources: which room may include which, what is public, and what files are called.

The rooms of packages/comm stand in its CMakeLists.txt from the ground up. A file includes files of its own room and of
rooms before it. X/impl belongs to room X, and other rooms leave its headers alone. The program has the room support,
above it problem, and above that one room a subcommand.
"""
import re
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Headers of an impl folder that another room may include, and why.
SHARED_IMPL = {
    ("tpetra", "Komvos_GatherKernels.hpp"): "imports and exports pack and unpack with the kernels of the exchange",
}
PROGRAM_ROOMS = ("support", "problem")  # from the ground up; a subcommand each above them
FILE_NAME = re.compile(r"Komvos_([A-Z][a-z0-9]*)+(\.cpp|\.hpp|_def\.hpp)")


def cmake_list(cmake, name):
    found = re.search(rf"^set\({name}\s([^)]*)\)", cmake, re.MULTILINE)
    return found[1].split() if found else []


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".hpp", ".cpp"))


def includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)


class Package:
    """packages/comm, or something like it."""

    def __init__(self, folder):
        self.cmake = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
        self.src = folder / "src"
        self.rooms = list(dict.fromkeys(room.partition("/")[0] for room in cmake_list(self.cmake, "rooms")))
        self.public = cmake_list(self.cmake, "Komvos_comm_PUBLIC_HEADERS")
        self.definitions = cmake_list(self.cmake, "Komvos_comm_DEFINITION_HEADERS")
        self.implementation = cmake_list(self.cmake, "Komvos_comm_IMPLEMENTATION_HEADERS")
        self.files = {path.name: path.relative_to(self.src) for path in sources(self.src)}

    def includes(self):
        """(including file, included one), both as paths from src; None where there is no such file."""
        for path in sources(self.src):
            for name in includes(path):
                yield path.relative_to(self.src), self.files.get(name)


def faults_of_rooms(package, shared_impl):
    for file in package.files.values():
        if file.parts[0] not in package.rooms:
            yield f"{file} is in no room of CMakeLists.txt"
    for file, included in package.includes():
        if included is None:
            yield f"{file} includes a file that is not in {package.src}"
            continue
        room, below = file.parts[0], included.parts[0]
        if room in package.rooms and below in package.rooms and package.rooms.index(below) > package.rooms.index(room):
            yield f"{file} includes {included}, which is above it"
        if "impl" in included.parts and room != below and (room, included.name) not in shared_impl:
            yield f"{file} includes {included}, which belongs to room {below} alone"


def faults_of_permissions(package, shared_impl):
    """Exceptions that nobody needs any more."""
    used = {(file.parts[0], included.name) for file, included in package.includes() if included}
    return [f"{room} does not include {name}" for room, name in shared_impl if (room, name) not in used]


def faults_of_names(package):
    paths = sources(package.src)
    for path in paths:
        if not FILE_NAME.fullmatch(path.name):
            yield f"{path.name} is not named Komvos_Type"
        if package.files[path.name] != path.relative_to(package.src):
            yield f"{path.name} is there twice"


def faults_of_public_headers(package):
    public = {Path(header).name for header in package.public}
    for header in package.public:
        path = package.src.parent / header
        if "impl" in path.parts:
            yield f"{header} is public and lies in an impl folder"
        for name in includes(path):
            if name not in public:
                yield f"{header} is public and includes {name}, which is not"
    for what in re.findall(r"^install\(((?:FILES|DIRECTORY)[^)]*?)\s+DESTINATION", package.cmake, re.MULTILINE):
        if what not in (f"FILES ${{Komvos_comm_{kind}_HEADERS}}" for kind in ("PUBLIC", "DEFINITION", "IMPLEMENTATION")):
            yield f"CMakeLists.txt installs {what}, which is not in the list of public headers"


def faults_of_definitions(package):
    """Every _def.hpp is installed with all that it includes, and nothing else is."""
    src = package.src.parent
    installed = {Path(header).name for header in package.public + package.definitions + package.implementation}
    needed = set()
    for header in package.definitions + package.implementation:
        needed.update(includes(src / header))
        for name in includes(src / header):
            if name not in installed:
                yield f"{header} is installed and includes {name}, which is not"
    for header in package.implementation:
        if Path(header).name not in needed:
            yield f"{header} is installed, but no definition needs it"
    listed = {Path(header).name for header in package.definitions}
    for name in package.files:
        if name.endswith("_def.hpp") != (name in listed):
            yield f"{name} should be in the list of definition headers if it is a _def.hpp, else not"


def faults_of_program(src):
    for path in sources(src):
        file = path.relative_to(src)
        for name in includes(path):
            if "/" not in name or len(file.parts) == 1:
                continue  # a header of a library, or main.cpp, which includes all subcommands
            room, below = file.parts[0], name.partition("/")[0]
            known = (*PROGRAM_ROOMS, room)[:(*PROGRAM_ROOMS, room).index(room) + 1]
            if below not in known or not (src / name).exists():
                yield f"{file} includes {name}, which is not in {', '.join(known)}"


class TheTree(unittest.TestCase):
    def setUp(self):
        self.package = Package(ROOT / "packages" / "comm")

    def check(self, faults):
        self.assertEqual([], list(faults))

    def test_rooms_include_their_own_files_and_those_below(self):
        self.assertGreater(len(list(self.package.includes())), 100)
        self.check(faults_of_rooms(self.package, SHARED_IMPL))

    def test_every_exception_is_needed(self):
        self.check(faults_of_permissions(self.package, SHARED_IMPL))

    def test_files_are_named_after_their_type(self):
        self.check(faults_of_names(self.package))

    def test_public_headers_include_public_headers_only(self):
        self.check(faults_of_public_headers(self.package))

    def test_definitions_are_installed_with_all_they_include(self):
        self.assertGreater(len(self.package.definitions), 0)
        self.check(faults_of_definitions(self.package))

    def test_headers_of_multigrid_include_public_headers_only(self):
        src = ROOT / "packages" / "multigrid" / "src"
        public = {Path(header).name for header in self.package.public} | {path.name for path in src.glob("*.hpp")}
        self.check(f"{path.name} includes {name}" for path in src.glob("*.hpp") for name in includes(path)
                   if name not in public)

    def test_subcommands_do_not_know_each_other(self):
        self.check(faults_of_program(ROOT / "src"))


class TheChecker(unittest.TestCase):
    """The checker finds each kind of fault in a small tree."""

    CMAKE = ("set(rooms low high high/impl)\nset(Komvos_comm_PUBLIC_HEADERS\n  src/low/Komvos_A.hpp\n"
             "  src/high/Komvos_B.hpp)\ninstall(FILES ${Komvos_comm_PUBLIC_HEADERS} DESTINATION include)\n")
    FILES = {"CMakeLists.txt": CMAKE, "src/low/Komvos_A.hpp": "", "src/high/Komvos_B.hpp": '#include "Komvos_A.hpp"\n',
             "src/high/Komvos_B.cpp": '#include "Komvos_C.hpp"\n', "src/high/impl/Komvos_C.hpp": '#include <vector>\n'}

    def package(self, files, base):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in {**base, **files}.items():
            path = Path(folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Path(folder.name)

    def faults(self, files, shared_impl=()):
        package = Package(self.package(files, self.FILES))
        return [*faults_of_rooms(package, shared_impl), *faults_of_permissions(package, shared_impl),
                *faults_of_names(package), *faults_of_public_headers(package), *faults_of_definitions(package)]

    def test_a_sound_tree_has_no_faults(self):
        self.assertEqual(self.faults({}), [])

    def test_each_fault_is_found(self):
        for files, fault in (
            ({"src/low/Komvos_D.cpp": '#include "Komvos_B.hpp"\n'},
             "low/Komvos_D.cpp includes high/Komvos_B.hpp, which is above"),
            ({"src/low/Komvos_D.cpp": '#include "Komvos_E.hpp"\n'}, "low/Komvos_D.cpp includes a file that is not in"),
            ({"src/cellar/Komvos_D.cpp": ""}, "cellar/Komvos_D.cpp is in no room"),
            ({"src/high/d.cpp": ""}, "d.cpp is not named Komvos_Type"),
            ({"src/high/Komvos_A.hpp": ""}, "Komvos_A.hpp is there twice"),
            ({"src/low/Komvos_A.hpp": '#include "Komvos_D.hpp"\n', "src/low/Komvos_D.hpp": ""},
             "Komvos_A.hpp is public and includes Komvos_D.hpp, which is not"),
            ({"CMakeLists.txt": self.CMAKE.replace("high/Komvos_B", "high/impl/Komvos_C")},
             "high/impl/Komvos_C.hpp is public and lies in an impl folder"),
            ({"CMakeLists.txt": self.CMAKE + "install(DIRECTORY src/ DESTINATION include)\n"},
             "installs DIRECTORY src/"),
            ({"src/high/Komvos_B_def.hpp": ""}, "Komvos_B_def.hpp should be in the list of definition headers"),
            ({"CMakeLists.txt": self.CMAKE + "set(Komvos_comm_DEFINITION_HEADERS src/high/Komvos_B_def.hpp)\n",
              "src/high/Komvos_B_def.hpp": '#include "Komvos_C.hpp"\n'}, "includes Komvos_C.hpp, which is not"),
            ({"CMakeLists.txt": self.CMAKE + "set(Komvos_comm_IMPLEMENTATION_HEADERS src/high/impl/Komvos_C.hpp)\n"},
             "Komvos_C.hpp is installed, but no definition needs it"),
        ):
            with self.subTest(fault):
                self.assertIn(fault, "\n".join(self.faults(files)))

    def test_a_private_header_is_for_its_own_room_unless_that_is_allowed(self):
        files = {"CMakeLists.txt": self.CMAKE.replace("high/impl)", "high/impl top)"),
                 "src/top/Komvos_D.cpp": '#include "Komvos_C.hpp"\n'}
        self.assertEqual(self.faults(files),
                         ["top/Komvos_D.cpp includes high/impl/Komvos_C.hpp, which belongs to room high alone"])
        allowed = {("top", "Komvos_C.hpp"): "a reason"}
        self.assertEqual(self.faults(files, allowed), [])
        self.assertEqual(self.faults({}, allowed), ["top does not include Komvos_C.hpp"])

    def test_the_program(self):
        base = {"main.cpp": '#include "fly/fly.hpp"\n#include "swim/swim.hpp"\n', "support/text.hpp": "",
                "problem/matrix.hpp": '#include "support/text.hpp"\n#include "Komvos_A.hpp"\n',
                "swim/swim.hpp": '#include "problem/matrix.hpp"\n', "fly/fly.hpp": ""}
        self.assertEqual(list(faults_of_program(self.package({}, base))), [])
        for name, text in (("fly/fly.hpp", '#include "swim/swim.hpp"\n'),
                           ("support/text.hpp", '#include "problem/matrix.hpp"\n'),
                           ("problem/matrix.hpp", '#include "fly/fly.hpp"\n')):
            faults = list(faults_of_program(self.package({name: text}, base)))
            self.assertEqual(len(faults), 1)
            self.assertIn(f"{name} includes {text.split(chr(34))[1]}", faults[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
