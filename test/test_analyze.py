#!/usr/bin/env python3
"""Whole-program tests of `komvos analyze`, with the standard library only.

test_analyze.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import collections
import csv
import json
import os
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from support.program_test import BAD, MATRICES, OPTIONS, ProgramTest, main, run

# One vector layer of 16 points between neighbours; two layers on each of 4 ranks, two ranks on a node.
SLABS = ("--problem", "laplace3d", "--n", "4,4,8", "--ranks", 4, "--ranks-per-node", 2)


class AnalyzeTest(ProgramTest):
    def analyze(self, *arguments, code=0):
        file = self.folder / "analysis.json"
        result = run(1, "analyze", *arguments, "--json", file)
        self.assertEqual(result.code, code, f"{arguments}\n{result.out}{result.err}")
        self.text = result.out
        return json.loads(file.read_text())

    def route(self, report, name, operator=0):
        return next(r for r in report["operators"][operator]["routes"] if r["route"] == name)


class Drawing:
    """What gnuplot drew: all texts, the colours of the key, and the bars of each panel by colour."""
    Bar = collections.namedtuple("Bar", "colour left height")

    def __init__(self, path):
        svg = "{http://www.w3.org/2000/svg}"
        root = xml.etree.ElementTree.parse(path).getroot()
        self.words = ["".join(node.itertext()).strip() for node in root.iter(svg + "text")]
        self.colours = []
        self.panels = [[], []]
        for plot in (node for node in root.iter(svg + "g") if node.get("id", "").startswith("gnuplot_plot_")):
            shapes = [self.bar(node) for node in plot.iter(svg + "polygon")]
            panel = "ab".index(plot.get("id")[-1])
            if panel == 0:  # its key shows a sample of each colour
                self.colours.append(shapes.pop(0).colour)
            self.panels[panel] += shapes

    @classmethod
    def bar(cls, polygon):
        points = [tuple(map(float, point.split(","))) for point in polygon.get("points").split()]
        rows = [y for _, y in points]
        return cls.Bar(polygon.get("fill"), min(x for x, _ in points), max(rows) - min(rows))


class AnalyzeCounts(AnalyzeTest):
    def test_slabs_by_hand(self):
        report = self.analyze(*SLABS, "--routes", "three-step")
        self.assertEqual((report["ranks"], report["nodes"], len(report["operators"])), (4, 2, 1))
        operator = report["operators"][0]
        self.assertEqual((operator["rows"], operator["needs"], operator["ranks_with_rows"]), (128, 96, 4))
        standard = self.route(report, "standard")
        self.assertEqual(standard["neighbours_max"], 2)
        self.assertEqual(standard["sent"]["inter_node"],
                         {"messages_max": 1, "messages_total": 2, "bytes_max": 128, "bytes_total": 256})
        self.assertEqual(standard["sent"]["on_node"],
                         {"messages_max": 1, "messages_total": 4, "bytes_max": 128, "bytes_total": 512})
        self.assertEqual(standard["received"], standard["sent"])
        # Rank 1 hands what node 1 needs to rank 0, together with what rank 0 needs; rank 3 hands it to rank 2. What
        # node 0 needs is where it has to leave from, and arrives where it is needed.
        three_step = self.route(report, "three-step")
        self.assertEqual(three_step["sent"]["inter_node"],
                         {"messages_max": 1, "messages_total": 2, "bytes_max": 128, "bytes_total": 256})
        self.assertEqual(three_step["sent"]["on_node"],
                         {"messages_max": 2, "messages_total": 5, "bytes_max": 256, "bytes_total": 768})

    def test_the_modelled_time_of_slabs_by_hand(self):
        report = self.analyze(*SLABS)
        # Tables 3 and 4 of the paper, 128 bytes: one message on the node and one off it, of one sender.
        expected = 1.3e-6 + 128 / 4.2e8 + 4.0e-6 + 128 / 6.3e8
        self.assertAlmostEqual(self.route(report, "standard")["modelled_seconds"], expected, delta=1e-12)
        self.assertEqual(report["standard_seconds"], self.route(report, "standard")["modelled_seconds"])
        self.assertTrue(report["conclusion"].startswith("No: "), report["conclusion"])
        self.assertIn(report["conclusion"], self.text)

    def test_set_up_as_perf_set_up_counts_it_with_mpi(self):
        # perf/SET_UP.md: 27 points, 27 nodes a rank, on a grid of 4 x 2 x 2 ranks. Axis depends on the grid that it takes.
        report = self.analyze("--problem", "elasticity3d", "--n", "12,6,6", "--ranks", 16, "--ranks-per-node", 4,
                              "--partition", "blocks", "--set-up")
        counts = {route["route"]: route["set_up"] for route in report["operators"][0]["routes"]}
        for name, most, messages in (("standard", 0, 0), ("three-step", 13, 116), ("two-step", 8, 120), ("split", 13, 116)):
            self.assertEqual((counts[name]["messages_max"], counts[name]["messages"]), (most, messages), name)
        self.assertEqual(counts["standard"]["modelled_seconds"], 0)
        for name in ("three-step", "two-step", "split"):
            # More than one message within a node takes, 1.3 us by the model.
            self.assertGreater(counts[name]["modelled_seconds"], 13 / 8 * 1e-6, name)
            self.assertGreater(counts[name]["bytes"], 4 * counts[name]["messages"], name)
            self.assertGreaterEqual(counts[name]["rounds"], 2, name)
        self.assertIn("set_up_messages_max", self.text)
        self.assertNotIn("set_up", json.dumps(self.analyze(*SLABS)))

    def test_a_strided_chain(self):
        report = self.analyze("--problem", "laplace3d", "--n", "8,1,1", "--ranks", 4, "--ranks-per-node", 4,
                              "--partition", "strided")
        self.assertEqual(report["operators"][0]["needs"], 14)
        standard = self.route(report, "standard")
        self.assertEqual((standard["neighbours_max"], standard["sent"]["on_node"]["bytes_total"]), (2, 14 * 8))
        self.assertEqual(standard["sent"]["inter_node"]["messages_total"], 0)

    def test_blocks_of_a_cube(self):
        report = self.analyze("--problem", "laplace3d", "--n", 8, "--ranks", 8, "--ranks-per-node", 4, "--partition",
                              "blocks", "--routes", "standard")
        standard = self.route(report, "standard")
        self.assertEqual(report["operators"][0]["needs"], 8 * 3 * 16)
        self.assertEqual(standard["neighbours_max"], 3)
        self.assertEqual(standard["sent"]["inter_node"],
                         {"messages_max": 1, "messages_total": 8, "bytes_max": 128, "bytes_total": 1024})

    def test_a_matrix_of_the_real_world_strided_gains(self):
        report = self.analyze(MATRICES / "dcpf_case13659pegase.mtx", "--ranks", 512, "--ranks-per-node", 16,
                              "--partition", "strided")
        self.assertTrue(report["conclusion"].startswith("Yes: "), report["conclusion"])
        self.assertLess(report["fastest_seconds"], report["standard_seconds"] / 2)
        pairs = self.route(report, "three-step")["sent"]["inter_node"]
        self.assertLessEqual(pairs["messages_total"], 32 * 31)
        self.assertLessEqual(pairs["messages_max"], 2)  # 31 other nodes dealt out to 16 ranks

    def test_a_hierarchy(self):
        report = self.analyze("--problem", "elasticity3d", "--n", 10, "--hierarchy", "--ranks", 60, "--ranks-per-node",
                              8, "--ranks-per-socket", 4, "--partition", "blocks")
        names = [(op["level"], op["operator"]) for op in report["operators"]]
        self.assertEqual(names[:4], [(0, "A"), (1, "A"), (1, "P"), (1, "R")])
        for p, r in ((i, i + 1) for i, (_, name) in enumerate(names) if name == "P"):
            # R is the transpose of P: the same pairs of ranks, the other way round.
            prolong, restrict = self.route(report, "standard", p), self.route(report, "standard", r)
            self.assertEqual(prolong["sent"]["inter_node"]["messages_max"],
                             restrict["received"]["inter_node"]["messages_max"])
            self.assertEqual(prolong["sent"]["inter_node"]["messages_total"],
                             restrict["sent"]["inter_node"]["messages_total"])
        coarsest = names[-1][0]
        self.assertEqual(names[-2:], [(coarsest, "G"), (coarsest, "S")])
        gather, scatter = report["operators"][-2:]
        rows = next(op["rows"] for op in report["operators"] if (op["level"], op["operator"]) == (coarsest, "A"))
        self.assertEqual((gather["rows"], gather["entries"], gather["ranks_with_rows"]), (rows, 8 * rows, 8))
        self.assertLess(gather["needs"], 8 * rows)  # solvers have some of them
        self.assertGreater(gather["needs"], 7 * rows)
        self.assertEqual(scatter["entries"], rows)
        self.assertEqual(scatter["routes"][0]["sent"]["inter_node"]["messages_total"], 0)  # each node has a solver
        for operator in report["operators"]:
            self.assertEqual([r["route"] for r in operator["routes"]],
                             ["standard", "two-step", "three-step", "split", "axis:4,5,3,1", "sockets"])
            standard = operator["routes"][0]["sent"]["inter_node"]
            for route in operator["routes"][1:4]:
                self.assertLessEqual(route["sent"]["inter_node"]["bytes_total"], standard["bytes_total"])

    def test_a_few_solvers_of_the_coarsest_level(self):
        file = self.folder / "few.xml"
        file.write_text('<ParameterList><ParameterList name="MueLu">'
                        '<Parameter name="node-aware: coarse solvers" type="int" value="3"/>'
                        '</ParameterList></ParameterList>')
        gather, scatter = self.analyze("--problem", "elasticity3d", "--n", 10, "--hierarchy", "--ranks", 60,
                                       "--ranks-per-node", 8, "--partition", "blocks", "--xml", file, "--routes",
                                       "standard")["operators"][-2:]
        self.assertEqual(gather["entries"], 3 * scatter["entries"])
        # Of nodes 0 and 1, of 2 to 4, and of 5 to 7 one solves; the others hear from it once.
        self.assertEqual(scatter["routes"][0]["received"]["inter_node"]["messages_max"], 1)
        self.assertGreater(scatter["routes"][0]["sent"]["inter_node"]["messages_total"], 4)


class AnalyzeOutput(AnalyzeTest):
    def test_table_and_csv_say_the_same(self):
        table = self.folder / "table.csv"
        report = self.analyze(*SLABS, "--routes", "standard,axis:2,1,2,1", "--csv", table)
        with open(table, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["route"] for row in rows], ["standard", "axis:2,1,2,1"])
        for row, route in zip(rows, report["operators"][0]["routes"]):
            self.assertEqual(int(row["inter_bytes_total"]), route["sent"]["inter_node"]["bytes_total"])
            self.assertAlmostEqual(float(row["modelled_s"]), route["modelled_seconds"], delta=1e-8)
            self.assertIn(row["route"], self.text)

    @unittest.skipUnless(shutil.which("gnuplot") or os.environ.get("CI"), "gnuplot is not installed")
    def test_a_plot_has_a_bar_for_each_value(self):
        plot = self.folder / "plot.svg"
        report = self.analyze("--problem", "elasticity3d", "--n", 8, "--hierarchy", "--partition", "blocks",
                              "--ranks", 32, "--ranks-per-node", 8, "--ranks-per-socket", 4, "--plot", plot)
        operators = report["operators"]
        routes = [route["route"] for route in operators[0]["routes"]]
        self.assertEqual(len(routes), 6)
        drawing = Drawing(plot)
        for route in routes:
            self.assertEqual(drawing.words.count(route), 1)
        for operator in operators:
            self.assertEqual(drawing.words.count(f"{operator['level']} {operator['operator']}"), 2)
        self.assertIn("microseconds", drawing.words)
        self.assertIn("Halo exchange of elasticity3d 8 x 8 x 8 on 32 ranks, 4 nodes", drawing.words)

        # Each route has a colour of its own, and a bar for every value but zero.
        values = [lambda r: r["sent"]["inter_node"]["messages_max"], lambda r: r["modelled_seconds"]]
        for bars, value in zip(drawing.panels, values):
            for position, colour in enumerate(drawing.colours):
                drawn = sum(value(operator["routes"][position]) > 0 for operator in operators)
                self.assertEqual(len([bar for bar in bars if bar.colour == colour]), drawn)
        self.assertEqual(len(set(drawing.colours)), len(routes))

        # Routes that cost the same stand side by side, each as high as the other.
        times, heights = ([], [])
        for name in ("three-step", "split"):
            position = routes.index(name)
            times.append([operator["routes"][position]["modelled_seconds"] for operator in operators])
            heights.append([bar.height for bar in drawing.panels[1] if bar.colour == drawing.colours[position]])
        self.assertEqual(times[0], times[1])
        self.assertEqual(heights[0], heights[1])
        lefts = [bar.left for bar in drawing.panels[1]]
        self.assertEqual(len(set(lefts)), len(lefts))

    @unittest.skipUnless(shutil.which("gnuplot") or os.environ.get("CI"), "gnuplot is not installed")
    def test_plots_are_reproducible_and_colours_stay(self):
        first, second, other = (self.folder / name for name in ("1.svg", "2.svg", "3.svg"))
        self.analyze(*SLABS, "--plot", first)
        self.analyze(*SLABS, "--plot", second)
        self.assertEqual(first.read_text(), second.read_text())
        self.analyze(*SLABS, "--routes", "split,split:8", "--plot", other)
        split = Drawing(first).colours[3]
        self.assertEqual(Drawing(other).colours[1], split)
        self.assertNotEqual(Drawing(other).colours[2], split)

    @unittest.skipUnless(shutil.which("gnuplot") or os.environ.get("CI"), "gnuplot is not installed")
    def test_a_plot_of_nothing(self):
        plot = self.folder / "plot.svg"
        self.analyze("--problem", "laplace3d", "--n", 4, "--ranks", 1, "--ranks-per-node", 1, "--plot", plot)
        self.assertEqual(Drawing(plot).panels, [[], []])

    def test_a_plot_without_gnuplot_is_refused_before_the_work(self):
        (self.folder / "ssh").symlink_to("/bin/true")  # Open MPI wants one in the PATH
        command = [OPTIONS.program, "analyze", BAD / "missing.mtx", "--ranks", 4, "--ranks-per-node", 2, "--plot",
                   self.folder / "plot.svg"]
        result = run(1, command=list(map(str, command)), environment={"PATH": str(self.folder)})
        self.check_refusal(result, ["--plot needs gnuplot, which is not installed (Debian: gnuplot-nox)"])

    def test_a_gnuplot_that_fails_leaves_no_file(self):
        (self.folder / "gnuplot").write_text("#!/bin/sh\necho out of ink >&2\nexit 1\n")
        (self.folder / "gnuplot").chmod(0o755)
        command = [OPTIONS.program, "analyze", *map(str, SLABS), "--plot", str(self.folder / "plot.svg")]
        result = run(1, command=command, environment={"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual((result.code, len(result.errors)), (3, 1), result.err)
        self.assertIn("out of ink", result.errors[0])
        self.assertEqual(os.listdir(self.folder), ["gnuplot"])

    def test_json_on_stdout(self):
        result = run(1, "analyze", *SLABS, "--json", "-")
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(json.loads(result.out)["ranks"], 4)
        self.assertIn("modelled", result.err)
        self.assertEqual(run(1, "analyze", *SLABS, "--quiet").out, "")
        loud = self.folder / "loud.xml"
        loud.write_text('<ParameterList><ParameterList name="MueLu"><Parameter name="verbosity" type="string" '
                        'value="low"/></ParameterList></ParameterList>')
        result = run(1, "analyze", "--problem", "laplace3d", "--n", 12, "--ranks", 4, "--ranks-per-node", 2,
                     "--hierarchy", "--xml", loud, "--quiet", "--json", "-")
        self.assertEqual(json.loads(result.out)["ranks"], 4, "what MueLu prints is elsewhere")

    def test_csv_on_stdout(self):
        file = self.folder / "table.csv"
        self.assertEqual(run(1, "analyze", *SLABS, "--csv", file).code, 0)
        self.assertEqual(run(1, "analyze", *SLABS, "--csv", "-").out, file.read_text())
        self.check_refusal(run(1, "analyze", *SLABS, "--csv", "-", "--json", "-"), ["both"])
        self.check_refusal(run(1, "analyze", *SLABS, "--csv", file, "--json", file), ["two outputs", file])
        self.check_refusal(run(1, "analyze", *SLABS, "--plot", "-"), ["name of a file"])

    def test_a_pipe_as_output(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
            self.addCleanup(reader.kill)
            try:
                self.assertEqual(run(1, "analyze", *SLABS, "--json", pipe).code, 0)
                self.assertEqual(json.loads(reader.communicate(timeout=10)[0])["ranks"], 4)
            finally:
                reader.kill()

    def test_a_full_device_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.check_refusal(run(1, "analyze", *SLABS, "--json", "-", "--quiet", stdout=full), ["standard output"])

    def test_traces(self):
        self.analyze("--problem", "laplace3d", "--n", "2,1,1", "--ranks", 2, "--ranks-per-node", 1, "--routes",
                     "standard", "--trace", self.folder / "traces")
        folder = self.folder / "traces" / "level-0-A-standard-torus"
        self.assertEqual((folder / "actions").read_text(),
                         "0 init\n0 irecv 1 0 8\n0 isend 1 0 8\n0 wait 0 1 0\n0 wait 1 0 0\n0 compute 3502\n0 finalize\n"
                         "1 init\n1 irecv 0 0 8\n1 isend 0 0 8\n1 wait 1 0 0\n1 wait 0 1 0\n1 compute 3502\n1 finalize\n")
        self.assertEqual((folder / "hosts").read_text(), "n0\nn1\n")
        self.assertIn("fat-tree", " ".join(os.listdir(folder.parent)))
        self.assertIn("Trace for SimGrid: torus", self.text)
        self.assertNotIn("\nSimGrid: ", self.text)

    def test_a_simulator_that_fails_is_no_wrong_input(self):
        (self.folder / "smpirun").write_text("#!/bin/sh\npwd\nexit 1\n")
        (self.folder / "smpirun").chmod(0o755)
        result = run(1, "analyze", *SLABS, "--simgrid", "torus", "--trace", self.folder / "it's here",
                     environment={"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual((result.code, len(result.errors)), (3, 1), result.err)
        self.assertIn("SimGrid reported no simulated time", result.errors[0])
        self.assertIn(f"{self.folder}/it's here/", result.errors[0])

    @unittest.skipUnless(shutil.which("smpirun") or os.environ.get("CI"), "SimGrid is not installed")
    def test_simulated_times(self):
        report = self.analyze("--problem", "laplace3d", "--n", "2,1,1", "--ranks", 2, "--ranks-per-node", 1,
                              "--routes", "standard", "--simgrid", "torus", "--simgrid", "fat-tree")
        times = self.route(report, "standard")["simulated_seconds"]
        # A send of 350 ns, one hop of 500 ns or two of 250 ns, and a receive of 350 ns.
        for kind in ("torus", "fat-tree"):
            self.assertAlmostEqual(times[kind], 1200e-9, delta=20e-9)
        self.assertIn("500 ns a hop", report["networks"][0])
        self.assertRegex(report["conclusion"], r" SimGrid, with the same routes: from \S+ to \S+ ms \(a factor of 1\.00\) "
                                               r"on its fat-tree; from \S+ to \S+ ms \(a factor of 1\.00\) on its "
                                               r"torus\.$")

    def test_bad_input_is_refused_on_one_line(self):
        def cluster(ranks=4, per_node=2):
            return ["--ranks", ranks, "--ranks-per-node", per_node]

        problem = ["--problem", "laplace3d", "--n", 4]
        self.check_refusals([
            (["analyze"], ["analyze: needs a Matrix Market file or --problem"]),
            (["analyze", *problem], ["--ranks"]),
            (["analyze", *problem, *cluster(0)], ["--ranks", "0"]),
            (["analyze", *problem, *cluster(65)], ["more ranks than rows", "65", "64"]),
            (["analyze", *problem, *cluster(4, 0)], ["0"]),
            (["analyze", *problem, *cluster(4, "2,1")], ["4", "3"]),
            (["analyze", *problem, *cluster(), "--routes", "four-step"], ["four-step"]),
            (["analyze", *problem, *cluster(), "--routes", "axis:2,2,2,2"], ["2,2,2,2"]),
            (["analyze", *problem, *cluster(), "--routes", "sockets"], ["sockets"]),
            (["analyze", *problem, *cluster(), "--machine", "nowhere.json"], ["nowhere.json"]),
            (["analyze", *problem, *cluster(), "--simgrid", "hypercube"], ["hypercube"]),
            (["analyze", *problem, *cluster(), "--xml", "m.xml"], ["--hierarchy"]),
            (["analyze", *problem, *cluster(), "--plot", self.folder], [self.folder]),
            (["analyze", BAD / "small_good.mtx", *cluster(), "--partition", "blocks"], ["coordinates"]),
            (["analyze", BAD / "missing.mtx", *cluster()], ["missing.mtx"]),
        ], ranks=(1,))
        self.check_refusals([(["analyze", *problem, *cluster()], ["one process"])], ranks=(2,))


if __name__ == "__main__":
    sys.exit(main())
