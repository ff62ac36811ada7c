#!/usr/bin/env python3
"""The structure of the sources: which layer may include which, what is public, and what files are called.

The layers of packages/comm stand in its CMakeLists.txt from the ground up. A file includes files of its own layer and of
layers before it. X/impl belongs to layer X, and other layers leave its headers alone. The library core is the files of
core_layers without files_with_kokkos; it includes nothing of Kokkos or Trilinos. The program has the layer support, above
it problem, and above that one layer a subcommand.
"""
import re
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Headers of an impl folder that another layer may include, and why.
SHARED_IMPL = {
    ("tpetra", "Komvos_GatherKernels.hpp"): "imports and exports pack and unpack with the kernels of the exchange",
    ("tune", "Komvos_NodeMemory.hpp"): "tuning gives back the shared memory that it measured in",
}
PROGRAM_LAYERS = ("support", "problem")  # from the ground up; a subcommand each above them
# What core may include besides its own files: C++, the system, MPI, and JSON.
CORE_LIBRARIES = re.compile(r"[a-z_]+|(dlfcn|mpi|sched|unistd|sys/mman)\.h|nlohmann/json\.hpp")
LIBRARIES = ("core", "comm")
INSTALLED_LISTS = [f"${{Komvos_{headers}_HEADERS}}" for headers in
                   ("core_PUBLIC", "comm_PUBLIC", "comm_DEFINITION", "comm_IMPLEMENTATION")]
FILE_NAME = re.compile(r"Komvos_([A-Z][a-z0-9]*)+(\.cpp|\.hpp|_def\.hpp)")


def cmake_list(cmake, name):
    found = re.search(rf"^set\({name}\s([^)]*)\)", cmake, re.MULTILINE)
    return found[1].split() if found else []


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".hpp", ".cpp"))


def includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)


def library_includes(path):
    return re.findall(r"^\s*#\s*include\s+<([^>]+)>", path.read_text(encoding="utf-8"), re.MULTILINE)


def library_sources(cmake, name):
    return re.search(rf"^komvos_add_package_library\({name}\s([^)]*)\)", cmake, re.MULTILINE)[1].split()[1:]


class Package:
    """packages/comm, or something like it."""

    def __init__(self, folder):
        self.cmake = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
        self.src = folder / "src"
        folders = {library: cmake_list(self.cmake, f"{library}_layers") for library in LIBRARIES}
        self.core_layers = {layer.partition("/")[0] for layer in folders["core"]}
        self.layers = list(dict.fromkeys(layer.partition("/")[0] for layers in folders.values() for layer in layers))
        self.with_kokkos = set(cmake_list(self.cmake, "files_with_kokkos"))
        self.public_of = {library: cmake_list(self.cmake, f"Komvos_{library}_PUBLIC_HEADERS") for library in LIBRARIES}
        self.public = [header for headers in self.public_of.values() for header in headers]
        self.definitions = cmake_list(self.cmake, "Komvos_comm_DEFINITION_HEADERS")
        self.implementation = cmake_list(self.cmake, "Komvos_comm_IMPLEMENTATION_HEADERS")
        self.files = {path.name: path.relative_to(self.src) for path in sources(self.src)}

    def is_core(self, file):
        return file.parts[0] in self.core_layers and file.as_posix() not in self.with_kokkos

    def includes(self):
        """(including file, included one), both as paths from src; None where there is no such file."""
        for path in sources(self.src):
            for name in includes(path):
                yield path.relative_to(self.src), self.files.get(name)


def faults_of_layers(package, shared_impl):
    for file in package.files.values():
        if file.parts[0] not in package.layers:
            yield f"{file} is in no layer of CMakeLists.txt"
    for file, included in package.includes():
        if included is None:
            yield f"{file} includes a file that is not in {package.src}"
            continue
        layer, below = file.parts[0], included.parts[0]
        if layer in package.layers and below in package.layers and package.layers.index(below) > package.layers.index(layer):
            yield f"{file} includes {included}, which is above it"
        if "impl" in included.parts and layer != below and (layer, included.name) not in shared_impl:
            yield f"{file} includes {included}, which belongs to layer {below} alone"


def faults_of_core(package):
    """Where core and the rest are not kept apart: in what files include, and in which library and list they stand."""
    for file in filter(package.is_core, package.files.values()):
        for name in library_includes(package.src / file):
            if not CORE_LIBRARIES.fullmatch(name):
                yield f"{file} is core's and includes <{name}>"
        for name in includes(package.src / file):
            if name in package.files and not package.is_core(package.files[name]):
                yield f"{file} is core's and includes {package.files[name]}, which is not"
    for library in LIBRARIES:
        for name in library_sources(package.cmake, library) + package.public_of[library]:
            if package.is_core(Path(name).relative_to("src")) != (library == "core"):
                yield f"{name} stands in {library}"
    for name in package.with_kokkos:
        if not needs_kokkos(package, package.files.get(Path(name).name)):
            yield f"{name} is listed as a file with Kokkos, and does not need it"


def needs_kokkos(package, file):
    """Whether a file, or the other half of it (.hpp, .cpp), includes Kokkos or Trilinos, itself or by another file."""
    waiting, seen = [file], set()
    while waiting:
        file = waiting.pop()
        if file is None or file in seen:
            continue
        seen.add(file)
        if any(not CORE_LIBRARIES.fullmatch(name) for name in library_includes(package.src / file)):
            return True
        waiting += [package.files.get(name) for name in includes(package.src / file)]
        if len(seen) == 1:
            waiting += [package.files.get(file.stem + half) for half in (".hpp", ".cpp")]
    return False


def faults_of_permissions(package, shared_impl):
    """Exceptions that nobody needs any more."""
    used = {(file.parts[0], included.name) for file, included in package.includes() if included}
    return [f"{layer} does not include {name}" for layer, name in shared_impl if (layer, name) not in used]


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
        if what.removeprefix("FILES ") not in INSTALLED_LISTS:
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
            layer, below = file.parts[0], name.partition("/")[0]
            known = (*PROGRAM_LAYERS, layer)[:(*PROGRAM_LAYERS, layer).index(layer) + 1]
            if below not in known or not (src / name).exists():
                yield f"{file} includes {name}, which is not in {', '.join(known)}"


class TheTree(unittest.TestCase):
    def setUp(self):
        self.package = Package(ROOT / "packages" / "comm")

    def check(self, faults):
        self.assertEqual([], list(faults))

    def test_layers_include_their_own_files_and_those_below(self):
        self.assertGreater(len(list(self.package.includes())), 100)
        self.check(faults_of_layers(self.package, SHARED_IMPL))

    def test_core_knows_neither_kokkos_nor_trilinos(self):
        core = [file for file in self.package.files.values() if self.package.is_core(file)]
        self.assertGreater(len(core), 70)
        self.assertIn(Path("exchange/impl/Komvos_MessageEngine.cpp"), core)
        self.check(faults_of_core(self.package))

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

    CMAKE = ("set(core_layers low)\nset(comm_layers high high/impl)\nset(files_with_kokkos low/Komvos_K.hpp)\n"
             'komvos_add_package_library(core "${core_layers}"\n  src/low/Komvos_A.cpp)\n'
             'komvos_add_package_library(comm "${comm_layers}"\n  src/high/Komvos_B.cpp)\n'
             "set(Komvos_core_PUBLIC_HEADERS\n  src/low/Komvos_A.hpp)\n"
             "set(Komvos_comm_PUBLIC_HEADERS\n  src/low/Komvos_K.hpp\n  src/high/Komvos_B.hpp)\n"
             "install(FILES ${Komvos_comm_PUBLIC_HEADERS} DESTINATION include)\n")
    FILES = {"CMakeLists.txt": CMAKE, "src/low/Komvos_A.hpp": "#include <mpi.h>\n",
             "src/low/Komvos_A.cpp": '#include "Komvos_A.hpp"\n', "src/low/Komvos_K.hpp": "#include <Kokkos_Core.hpp>\n",
             "src/high/Komvos_B.hpp": '#include "Komvos_A.hpp"\n', "src/high/Komvos_B.cpp": '#include "Komvos_C.hpp"\n',
             "src/high/impl/Komvos_C.hpp": '#include <vector>\n'}

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
        return [*faults_of_layers(package, shared_impl), *faults_of_core(package), *faults_of_permissions(package, shared_impl),
                *faults_of_names(package), *faults_of_public_headers(package), *faults_of_definitions(package)]

    def test_a_sound_tree_has_no_faults(self):
        self.assertEqual(self.faults({}), [])

    def test_each_fault_is_found(self):
        for files, fault in (
            ({"src/low/Komvos_D.cpp": '#include "Komvos_B.hpp"\n'},
             "low/Komvos_D.cpp includes high/Komvos_B.hpp, which is above"),
            ({"src/low/Komvos_D.cpp": '#include "Komvos_E.hpp"\n'}, "low/Komvos_D.cpp includes a file that is not in"),
            ({"src/cellar/Komvos_D.cpp": ""}, "cellar/Komvos_D.cpp is in no layer"),
            ({"src/high/d.cpp": ""}, "d.cpp is not named Komvos_Type"),
            ({"src/high/Komvos_A.hpp": ""}, "Komvos_A.hpp is there twice"),
            ({"src/low/Komvos_A.hpp": '#include "Komvos_D.hpp"\n', "src/low/Komvos_D.hpp": ""},
             "Komvos_A.hpp is public and includes Komvos_D.hpp, which is not"),
            ({"CMakeLists.txt": self.CMAKE.replace("high/Komvos_B", "high/impl/Komvos_C")},
             "high/impl/Komvos_C.hpp is public and lies in an impl folder"),
            ({"src/low/Komvos_D.hpp": "#include <Tpetra_Map.hpp>\n"},
             "low/Komvos_D.hpp is core's and includes <Tpetra_Map.hpp>"),
            ({"src/low/Komvos_A.cpp": '#include "Komvos_K.hpp"\n'},
             "low/Komvos_A.cpp is core's and includes low/Komvos_K.hpp, which is not"),
            ({"CMakeLists.txt": self.CMAKE.replace("src/high/Komvos_B.cpp", "src/low/Komvos_A.cpp")},
             "src/low/Komvos_A.cpp stands in comm"),
            ({"CMakeLists.txt": self.CMAKE.replace("src/low/Komvos_A.hpp", "src/low/Komvos_K.hpp")},
             "src/low/Komvos_K.hpp stands in core"),
            ({"src/low/Komvos_K.hpp": "#include <vector>\n"}, "low/Komvos_K.hpp is listed as a file with Kokkos"),
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

    def test_a_private_header_is_for_its_own_layer_unless_that_is_allowed(self):
        files = {"CMakeLists.txt": self.CMAKE.replace("high/impl)", "high/impl top)", 1),
                 "src/top/Komvos_D.cpp": '#include "Komvos_C.hpp"\n'}
        self.assertEqual(self.faults(files),
                         ["top/Komvos_D.cpp includes high/impl/Komvos_C.hpp, which belongs to layer high alone"])
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
