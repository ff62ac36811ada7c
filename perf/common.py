"""What the scripts of perf/ share: where things are, what was measured on which machine, how results are written."""
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

PERF = Path(__file__).resolve().parent
ROOT = PERF.parent
BUILD = ROOT / "build" / "default"
RESULTS = PERF / "results"
SIMULATED = RESULTS / "simulated"
# The machine whose results pages and pictures show, unless they are told otherwise: by kind of results, and that of all
# others. All numbers of a page are of one machine.
SHOWN = {}
SHOWN_OTHERWISE = "amd-epyc-2-cores"
ONE_LINE = 110  # a flat object or list up to this length stands on one line
ONE_LINE_ELEMENTS = ("variants", "routes")  # lists with one line an element, whatever its length

sys.path.insert(0, str(ROOT / "test" / "support"))
import open_mpi  # noqa: E402
from mpi_environment import mpi_environment  # noqa: E402


# --- the machine and the program ---

def processor():
    """As the system names it, like Impl::processorName() in Komvos_SystemInfo.cpp."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ", 1)[1]
    return "unknown processor"


def cores():
    return len(os.sched_getaffinity(0))


def slug(name, count):
    """The folder's name for a processor: "AMD EPYC 7763 64-Core Processor", 2 cores -> amd-epyc-7763-2-cores."""
    name = re.sub(r"\((R|TM)\)|@.*|\b(CPU|Processor|\d+-Core)\b", " ", name)
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "-".join([*words, str(count), "core" if count == 1 else "cores"])


def results_folder():
    """Where results measured on this machine go."""
    folder = RESULTS / slug(processor(), cores())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def commit():
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def today():
    return datetime.date.today().isoformat()


def build(folder, *targets):
    """Brings programs up to date, which write the commit that they were built from."""
    subprocess.run(["cmake", "--build", str(folder), "--target", *targets], check=True, stdout=subprocess.DEVNULL)


# --- running ---

def environment(ranks):
    """That of this process, with what Open MPI needs for this many ranks on this machine."""
    return {**os.environ, **mpi_environment(ranks)}


def shared_memory_transport():
    """The name of Open MPI's transport between ranks of a host."""
    return open_mpi.shared_memory(open_mpi.major_version() or 4)


def virtual_cluster(hosts, ranks_per_host, timeout, *options):
    """The command that runs what follows it on hosts that are network namespaces of this machine."""
    return [ROOT / "test" / "cluster" / "virtual_cluster.py", "--hosts", hosts, "--ranks-per-host", ranks_per_host,
            "--timeout", timeout, *options, "--"]


def run(command, env=None):
    try:
        subprocess.run([str(word) for word in command], env=env, check=True)
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed with {error.returncode}: {' '.join(map(str, command))}")


# --- results ---

def is_nested(value):
    return isinstance(value, (dict, list))


def format_value(value, indent):
    """JSON text, with a line for each small flat object or list, and for each element of ONE_LINE_ELEMENTS."""
    text = json.dumps(value, ensure_ascii=False)
    if not is_nested(value) or not value:
        return text
    elements = value.values() if isinstance(value, dict) else value
    if not any(map(is_nested, elements)) and len(text) <= ONE_LINE:
        return text
    inner = "\n" + " " * (indent + 1)
    if isinstance(value, list):
        lines = [format_value(one, indent + 1) for one in value]
        return "[" + inner + ("," + inner).join(lines) + "\n" + " " * indent + "]"
    lines = []
    for key, one in value.items():
        if key in ONE_LINE_ELEMENTS and isinstance(one, list) and one:
            deeper = inner + " "
            text = "[" + deeper + ("," + deeper).join(json.dumps(e, ensure_ascii=False) for e in one) + inner + "]"
        else:
            text = format_value(one, indent + 1)
        lines.append(f"{json.dumps(key)}: {text}")
    return "{" + inner + ("," + inner).join(lines) + "\n" + " " * indent + "}"


def format_results(report):
    return format_value(report, 0) + "\n"


def read_results(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def newest(paths):
    """By the date in the name; None if there are none."""
    paths = sorted(paths, key=lambda path: path.name)
    if len(paths) > 1 and paths[-1].name[:10] == paths[-2].name[:10]:
        sys.exit(f"{paths[-2].name} and {paths[-1].name} are of the same day: keep one of them")
    return paths[-1] if paths else None


def shown(kind):
    """The folder of the results of a kind that are shown."""
    return RESULTS / SHOWN.get(kind, SHOWN_OTHERWISE)


def newest_of_each(kind):
    """The newest <date>-<commit>-<kind>-<case>.json of each case, of the machine whose results are shown."""
    found = sorted(shown(kind).glob(f"*-{kind}-*.json"))
    cases = sorted({path.name.split(f"-{kind}-")[1] for path in found})
    return [newest(path for path in found if path.name.endswith(f"-{kind}-{case}")) for case in cases]


def commits_of(reports):
    return ", ".join(dict.fromkeys(report["commit"] for report in reports))


def write(path, text):
    """Replaces a file at once: whoever reads it sees the old text or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def write_results(path, report):
    write(path, format_results(report))


# --- pages ---

def write_page(name, text, check, command):
    """Writes perf/<name>; with `check` it changes nothing, and ends the program if the page says anything else, naming
    the command that makes it."""
    path = PERF / name
    if not check:
        write(path, text)
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        sys.exit(f"perf/{name} does not show the stored results: run perf/{command}")


def markdown_table(head, rows, alignment=None):
    """alignment: one of "---" and "--:" for each column, left if there is none."""
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(alignment or ["---"] * len(head)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


# --- pictures ---

def pyplot():
    """matplotlib, set up so that the same numbers give the same SVG file, with text as text."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("pictures need matplotlib (Debian: python3-matplotlib, for /usr/bin/python3)")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "komvos", "svg.fonttype": "none", "font.family": "sans-serif",
                                "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"]})
    from matplotlib import pyplot
    return pyplot
