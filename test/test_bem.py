#!/usr/bin/env python3
"""Whole-program tests of `komvos bem`, with the standard library only.

test_bem.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import json
import math
import os
import shutil
import sys
import unittest
import xml.etree.ElementTree

from support.program_test import ProgramTest, main, run

EPSILON_0 = 8.8541878128e-12
SPHERE = ("--geometry", "sphere", "--triangles", 1500)
SMALL = ("--geometry", "sphere", "--triangles", 400, "--products", 2)
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


class BemTest(ProgramTest):
    def bem(self, ranks, *arguments, code=0, **how):
        """Runs `komvos bem` and returns its JSON report."""
        file = self.folder / "report.json"
        result = run(ranks, "bem", *arguments, "--json", file, **how)
        self.assertEqual(result.code, code, f"{arguments}\n{result.out}{result.err}")
        report = json.loads(file.read_text())
        if code == 0 and report["solve"]:
            self.assertTrue(report["solve"]["converged"])
            self.assertLessEqual(report["solve"]["true_residual"], 1.001 * report["solve"]["tolerance"])
            self.assertEqual(result.errors, [])
        return report

    def known(self, report, name):
        return next(one for one in report["result"]["known"] if one["name"] == name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


def images(radius, distance):
    """Coefficients of capacitance of two equal spheres by the method of images, one charge after the other."""
    own, other = 0.0, 0.0
    charge, place, at_first = 1.0, 0.0, True  # at 4 pi epsilon_0 R for 1 V, from the centre of its sphere
    while abs(charge) > 1e-16:
        own, other = (own + charge, other) if at_first else (own, other + charge)
        away = distance - place
        charge, place, at_first = -charge * radius / away, radius * radius / away, not at_first
    scale = 4 * math.pi * EPSILON_0 * radius
    return scale * own, scale * other


class BemPhysics(BemTest):
    def test_the_capacitance_of_a_sphere_on_any_number_of_ranks(self):
        charges = []
        for ranks in (1, 2, 5):
            report = self.bem(ranks, *SPHERE, "--radius", 2, "--tolerance", "1e-9", "--accuracy", "1e-6")
            known = self.known(report, "capacitance")
            self.assertAlmostEqual(known["expected"] / (4 * math.pi * EPSILON_0 * 2), 1, delta=1e-12)
            self.assertLess(known["relative_error"], 0.01)
            body = report["result"]["bodies"][0]
            self.assertEqual((body["potential"], known["value"]), (1, body["charge"]))
            self.assertAlmostEqual(report["result"]["energy"] / (body["charge"] / 2), 1, delta=1e-12)
            charges.append(body["charge"])
        for charge in charges[1:]:
            self.assertAlmostEqual(charge / charges[0], 1, delta=1e-8)

    def test_finer_meshes_come_nearer_to_the_capacitance(self):
        errors = [self.known(self.bem(1, "--geometry", "sphere", "--triangles", n), "capacitance")["relative_error"]
                  for n in (200, 800, 3200)]
        self.assertGreater(errors[0], 2.5 * errors[1])
        self.assertGreater(errors[1], 2.5 * errors[2])

    def test_two_spheres(self):
        for radius, distance in ((0.25, 1), (0.3, 0.8)):
            own, mutual = images(radius, distance)
            shape = ("--geometry", "two-spheres", "--triangles", 3000, "--radius", radius, "--distance", distance)
            report = self.bem(3, *shape, "--ranks-per-node", 2)
            known = self.known(report, "charge of body 0")
            self.assertAlmostEqual(known["expected"] / (own - mutual), 1, delta=1e-9)
            self.assertLess(known["relative_error"], 0.01)
            first, second = report["result"]["bodies"]
            self.assertEqual((first["potential"], second["potential"]), (1, -1))
            self.assertAlmostEqual(first["charge"] / -second["charge"], 1, delta=1e-4)
            matrix = self.bem(2, *shape, "--capacitance-matrix", "--potentials", "3,0.5", "--preconditioner",
                              "diagonal")
            self.assertEqual(matrix["solve"]["right_hand_sides"], 2)
            c = matrix["result"]["capacitance_matrix"]
            self.assertAlmostEqual(c[0][0] / own, 1, delta=0.01)
            self.assertAlmostEqual(c[1][0] / mutual, 1, delta=0.02)
            for i, body in enumerate(matrix["result"]["bodies"]):
                self.assertAlmostEqual(body["charge"] / (3 * c[i][0] + 0.5 * c[i][1]), 1, delta=1e-9)
            self.assertAlmostEqual(self.known(matrix, "C(0, 1)")["expected"] / mutual, 1, delta=1e-9)

    def test_a_sphere_in_a_uniform_field(self):
        report = self.bem(2, *SPHERE, "--problem", "uniform-field", "--field", "1,-2,3", "--radius", 0.5)
        self.assertLess(self.known(report, "dipole moment")["relative_error"], 0.01)
        body = report["result"]["bodies"][0]
        scale = 4 * math.pi * EPSILON_0 * 0.5 ** 3
        self.assertLess(abs(body["charge"]), 1e-12 * scale)
        self.assertLess(abs(body["potential"]), 1e-4)
        for moment, field in zip(body["dipole_moment"], (1, -2, 3)):
            self.assertAlmostEqual(moment / (scale * field), 1, delta=0.02)

    def test_a_flat_plate_in_a_field_across_it_bears_no_charge(self):
        n = 6
        points = [f"{i / n} {j / n} 0" for i in range(n + 1) for j in range(n + 1)]
        corner = lambda i, j: i * (n + 1) + j
        triangles = [f"3 {corner(i, j)} {corner(i + 1, j)} {corner(i + k, j + 1)}" if k else
                     f"3 {corner(i, j)} {corner(i + 1, j + 1)} {corner(i, j + 1)}"
                     for i in range(n) for j in range(n) for k in (0, 1)]
        plate = self.write("plate.off", f"OFF\n{len(points)} {len(triangles)} 0\n" + "\n".join(points + triangles) + "\n")
        for solver in ((), ("--solver", "bicgstab")):
            report = self.bem(2, plate, "--problem", "uniform-field", *solver)
            self.assertEqual(report["solve"]["right_hand_sides"], 2)
            self.assertEqual([one["charge"] for one in report["result"]["bodies"]], [0])

    def test_spheres_in_a_uniform_field_float(self):
        report = self.bem(2, "--geometry", "sphere-array", "--per-side", 3, "--triangles", 27 * 40, "--problem",
                          "uniform-field")
        self.assertEqual((report["geometry"]["bodies"], report["solve"]["right_hand_sides"]), (27, 28))
        self.assertEqual(report["solve"]["groups"], 2)
        one_by_one = self.bem(1, "--geometry", "sphere-array", "--per-side", 2, "--triangles", 8 * 40, "--problem",
                              "uniform-field", "--solver", "bicgstab", "--products", 0)
        self.assertEqual(one_by_one["solve"]["groups"], 9)
        bodies = report["result"]["bodies"]
        largest = max(abs(body["dipole_moment"][2]) for body in bodies)
        for body in bodies:
            self.assertLess(abs(body["charge"]), 1e-9 * largest)
            self.assertGreater(body["dipole_moment"][2], 0)
        potentials = sorted(body["potential"] for body in bodies)  # of layers at z = 2, 1 and 0, -z if they were alone
        for one, other in zip(potentials, reversed(potentials)):
            self.assertAlmostEqual(one + other, -2, delta=1e-3)
        self.assertAlmostEqual(potentials[13], -1, delta=1e-3)
        self.assertGreater(potentials[0], -1.99)
        self.assertLess(potentials[8], -1.9)

    def test_a_cylinder(self):
        report = self.bem(2, "--geometry", "cylinder", "--triangles", 3000, "--height", 3, "--cluster-split",
                          "principal-axis", "--approximation", "aca+")
        self.assertLess(self.known(report, "capacitance")["relative_error"], 0.02)
        self.assertEqual([report["matrix"][key] for key in ("approximation", "cluster_split")],
                         ["aca+", "principal-axis"])

    def test_yukawa(self):
        report = self.bem(2, *SPHERE, "--kernel", "yukawa", "--kappa", 1.5)
        self.assertLess(self.known(report, "charge")["relative_error"], 0.01)
        laplace, nearly = (self.bem(1, *SMALL, *kernel)["result"]["bodies"][0]["charge"]
                           for kernel in ((), ("--kernel", "yukawa", "--kappa", 1e-9)))
        self.assertAlmostEqual(nearly / laplace, 1, delta=1e-4)

    def test_the_double_layer_gives_the_potential_inside(self):
        for shape, value, most in ((SPHERE, "z", 0.02), (("--geometry", "cylinder", "--triangles", 3000), "xy", 0.02),
                                   (("--geometry", "two-spheres", "--triangles", 2000), "x2-z2", 0.04)):
            with self.subTest(shape):
                report = self.bem(2, *shape, "--kernel", "laplace-double-layer", "--boundary-value", value)
                self.assertEqual(report["problem"], "interior")
                self.assertGreater(report["result"]["points"], 10)
                self.assertLess(report["result"]["error"], most)
        report = self.bem(1, *SMALL, "--kernel", "laplace-double-layer", "--boundary-value", "1", "--tolerance", "1e-9",
                          "--accuracy", "1e-8")
        self.assertLess(report["result"]["error"], 1e-6)  # its density is -1, without any error of the mesh

    def test_kernels_without_physics(self):
        report = self.bem(3, *SMALL, "--kernel", "one-over-r")
        self.assertEqual((report["solve"], report["result"], report["problem"]), (None, None, None))
        self.assertEqual(report["product"]["count"], 2)
        report = self.bem(2, *SMALL, "--kernel", "one-over-r", "--solver", "gmres", "--tolerance", "1e-10")
        self.assertLess(report["result"]["error"], 1e-6)
        reports = [self.bem(ranks, *SMALL, "--kernel", "helmholtz", "--wavenumber", 3) for ranks in (1, 3)]
        for report in reports:
            self.assertTrue(report["matrix"]["complex"])
            self.assertLess(report["matrix"]["error"], 1e-4)
        one, three = (report["matrix"] for report in reports)
        self.assertEqual(one["bytes"], three["bytes"])
        self.assertAlmostEqual(one["error"] / three["error"], 1, delta=1e-6)
        self.assertGreater(min(three["bytes_of_mpi_rank"]), 0)
        result = run(1, "bem", *SMALL, "--kernel", "helmholtz", "--wavenumber", 3)
        self.assertIn("this matrix is complex", result.out)


class BemProgram(BemTest):
    def test_the_report_counts_every_block(self):
        reports = [self.bem(ranks, *SPHERE, "--products", 3) for ranks in (1, 4)]
        for report in reports:
            matrix = report["matrix"]
            self.assertEqual(matrix["unknowns"], 1500)
            self.assertEqual(sum(matrix["blocks_of_rank"]), matrix["low_rank_blocks"])
            self.assertEqual(len(matrix["blocks_of_rank"]), matrix["largest_rank"] + 1)
            self.assertAlmostEqual(matrix["part_of_dense_matrix"], matrix["bytes"] / 8 / 1500 ** 2, delta=1e-12)
            self.assertEqual(sum(matrix["bytes_of_mpi_rank"]), matrix["bytes"])
            self.assertGreater(matrix["error"], 0)
            self.assertLess(matrix["error"], matrix["accuracy"])
            self.assertGreater(report["product"]["read_bytes_per_second"], 0)
        one, four = reports
        for key in ("low_rank_blocks", "dense_blocks", "blocks_of_rank", "bytes"):
            self.assertEqual(one["matrix"][key], four["matrix"][key])
        self.assertAlmostEqual(one["matrix"]["error"] / four["matrix"]["error"], 1, delta=1e-6)
        self.assertEqual(one["matrix"]["gathered_values_of_mpi_rank"], [0])
        self.assertEqual(len(four["matrix"]["gathered_values_of_mpi_rank"]), 4)
        self.assertEqual(one["matrix"]["sent_back_values_of_mpi_rank"], [0])
        self.assertGreater(sum(four["matrix"]["sent_back_values_of_mpi_rank"]), 0)

    def test_the_accuracy_is_kept_also_with_reduced_storage(self):
        for accuracy in ("1e-3", "1e-6", "1e-9"):
            whole, reduced = (self.bem(1, *SPHERE, "--accuracy", accuracy, "--solver", "none", "--products", 0,
                                       "--storage", storage)["matrix"] for storage in ("whole", "reduced"))
            self.assertLess(whole["error"], float(accuracy))
            self.assertLess(reduced["error"], float(accuracy))
            self.assertLess(reduced["bytes"], whole["bytes"])

    def test_the_text(self):
        result = run(4, "bem", *SPHERE, "--ranks-per-node", 2)
        self.assertEqual(result.code, 0, result.err)
        for words in ("4 ranks on 2 nodes", "1500 triangles", "of low rank", "of a full all-gather", "GB/s",
                      "converged", "capacitance", "4 pi epsilon_0 R"):
            self.assertIn(words, result.out)
        self.assertNotIn("\r", result.out)
        self.assertNotIn("\033", result.out)
        self.assertLessEqual(max(map(len, result.out.splitlines())), 130)

    def test_help_is_printed_once(self):
        result = run(2, "bem", "--help")
        self.assertEqual((result.code, result.out.count("Usage:")), (0, 1))
        for word in ("--geometry", "--capacitance-matrix", "--ranks-per-node", "Exit status"):
            self.assertIn(word, result.out)

    def test_quiet_and_json_on_stdout(self):
        result = run(2, "bem", *SMALL, "--quiet")
        self.assertEqual((result.code, result.out, result.err), (0, "", ""))
        result = run(2, "bem", *SMALL, "--json", "-")
        self.assertEqual(json.loads(result.out)["geometry"]["triangles"], 400)
        self.assertIn("iterations", result.err)

    def test_solvers_and_preconditioners(self):
        charges = []
        for solver in ("auto", "bicgstab", "gmres", "tfqmr", "pipelined-bicgstab"):
            report = self.bem(3, *SMALL, "--solver", solver, "--tolerance", "1e-8")
            expected = solver.upper().replace("-", " ") if solver != "auto" else "PIPELINED BICGSTAB"
            self.assertEqual(report["solve"]["solver"], expected)
            charges.append(report["result"]["bodies"][0]["charge"])
        iterations = {}
        for preconditioner in ("none", "diagonal", "block-jacobi", "overlapping", "hodlr"):
            report = self.bem(3, *SMALL, "--preconditioner", preconditioner, "--tolerance", "1e-8")
            self.assertEqual(report["solve"]["preconditioner"]["kind"], preconditioner)
            iterations[preconditioner] = report["solve"]["iterations"]
            charges.append(report["result"]["bodies"][0]["charge"])
            seconds = report["solve"]["seconds_of"]
            self.assertAlmostEqual(sum(seconds.values()) / report["solve"]["seconds"], 1, delta=1e-6)
            self.assertEqual(seconds["preconditioner"] > 0, preconditioner != "none")
        for variant in ("merged", "pipelined", "replicated", "replicated-pipelined"):
            report = self.bem(3, *SMALL, "--variant", variant, "--tolerance", "1e-8")
            self.assertEqual(report["solve"]["variant"], variant)
            self.assertGreater(report["solve"]["seconds_of"]["products"], 0)
            charges.append(report["result"]["bodies"][0]["charge"])
        for charge in charges[1:]:
            self.assertAlmostEqual(charge / charges[0], 1, delta=1e-6)
        self.assertLessEqual(iterations["overlapping"], iterations["none"])

    def test_not_converged_is_status_2_with_a_report(self):
        report = self.bem(2, *SMALL, "--max-iterations", 1, "--tolerance", "1e-13", code=2)
        self.assertFalse(report["solve"]["converged"])
        result = run(1, "bem", *SMALL, "--max-iterations", 1, "--tolerance", "1e-13")
        self.assertEqual(result.code, 2)
        self.assertEqual(len(result.errors), 1)
        self.assertIn("not converged", result.errors[0])

    def test_the_block_plot(self):
        for ranks in (1, 3):
            plot = self.folder / "blocks.svg"
            matrix = self.bem(ranks, *SPHERE, "--solver", "none", "--block-plot", plot)["matrix"]
            text = plot.read_text()
            xml.etree.ElementTree.fromstring(text)
            self.assertEqual(text.count("z") - text.count("size"), matrix["low_rank_blocks"] + matrix["dense_blocks"])
            self.assertIn(f"{matrix['low_rank_blocks']} blocks of low rank", text)
        self.bem(2, "--geometry", "sphere", "--triangles", 8000, "--leaf-size", 8, "--solver", "none", "--accuracy",
                 "1e-2", "--products", 0, "--block-plot", plot)
        self.assertLess(plot.stat().st_size, 2_000_000)
        self.assertRegex(plot.read_text(), r"Grey, not drawn: \d+ blocks of up to \d+ entries")

    def test_the_density_for_paraview(self):
        output = self.folder / "density.vtu"
        self.bem(3, *SMALL, "--output", output)
        text = output.read_text(errors="replace")
        self.assertIn("UnstructuredGrid", text)
        self.assertIn('Name="density"', text)

    @unittest.skipUnless(shutil.which("gnuplot") or os.environ.get("CI"), "needs gnuplot")
    def test_the_convergence_plot(self):
        plot = self.folder / "convergence.svg"
        report = self.bem(2, *SMALL, "--solver", "pipelined-bicgstab", "--preconditioner", "diagonal",
                          "--convergence-plot", plot)
        self.assertEqual(len(report["solve"]["residuals"]["computed"]), report["solve"]["iterations"] + 1)
        self.assertIn("estimated by the recurrence", plot.read_text())

    def test_meshes_from_files(self):
        report = self.bem(2, self.write("good.obj", TETRAHEDRON), "--products", 1)
        self.assertEqual([report["geometry"][key] for key in ("triangles", "vertices", "bodies", "warnings")],
                         [4, 4, 1, []])
        self.assertAlmostEqual(report["geometry"]["area"], 1.5 + math.sqrt(3) / 2, delta=1e-12)
        two = self.write("two.obj", "o first\n" + TETRAHEDRON + "o second\n" + "v 5 0 0\nv 6 0 0\nv 5 1 0\nv 5 0 1\n"
                         "f 5 7 6\nf 5 6 8\nf 5 8 7\nf 6 7 8\n")
        for group, bodies in (((), 2), (("--mesh-group", "second"), 1)):
            report = self.bem(2, two, *group, "--products", 1)
            self.assertEqual(report["geometry"]["bodies"], bodies)
        opened = self.write("open.off", "OFF\n4 3 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 0 3 2\n")
        report = self.bem(2, opened, "--products", 1)
        self.assertEqual(len(report["geometry"]["warnings"]), 1)
        result = run(1, "bem", opened, "--products", 1)
        self.assertIn("warning ", result.out)


class BemBadInput(BemTest):
    def test_bad_options(self):
        self.check_refusals([
            (["bem"], ["bem: needs the file of a mesh or --geometry"]),
            (["bem", "x.obj", *SMALL], ["both", "x.obj"]),
            (["bem", "--geometry", "sphere"], ["--triangles"]),
            (["bem", "--geometry", "cube", "--triangles", 100], ["cube"]),
            (["bem", "--geometry", "sphere", "--triangles", 7], ["7"]),
            (["bem", *SMALL, "--radius", -1], ["--radius", "-1"]),
            (["bem", *SMALL, "--height", 2], ["--height", "cylinder"]),
            (["bem", *SMALL, "--distance", 2], ["--distance", "two-spheres"]),
            (["bem", *SMALL, "--per-side", 2], ["--per-side", "sphere-array"]),
            (["bem", "--geometry", "two-spheres", "--triangles", 400, "--radius", 0.5, "--distance", 0.9], ["0.9"]),
            (["bem", *SMALL, "--kernel", "gauss"], ["gauss"]),
            (["bem", *SMALL, "--kernel", "yukawa"], ["--kappa"]),
            (["bem", *SMALL, "--kernel", "yukawa", "--kappa", -2], ["--kappa -2"]),
            (["bem", *SMALL, "--kappa", 2], ["--kappa", "yukawa"]),
            (["bem", *SMALL, "--kernel", "helmholtz"], ["--wavenumber"]),
            (["bem", *SMALL, "--kernel", "helmholtz", "--wavenumber", 1, "--solver", "gmres"], ["complex"]),
            (["bem", *SMALL, "--kernel", "yukawa", "--kappa", 1, "--problem", "uniform-field"],
             ["uniform-field", "yukawa"]),
            (["bem", *SMALL, "--potentials", "1,2"], ["2 values", "1 body"]),
            (["bem", *SMALL, "--potentials", "0"], ["--potentials", "zero"]),
            (["bem", *SMALL, "--potentials", "nan"], ["--potentials", "nan"]),
            (["bem", *SMALL, "--field", "0,0,1"], ["--field", "uniform-field"]),
            (["bem", *SMALL, "--problem", "uniform-field", "--field", "0,0"], ["--field"]),
            (["bem", *SMALL, "--problem", "uniform-field", "--field", "0,0,0"], ["--field", "zero"]),
            (["bem", *SMALL, "--boundary-value", "x"], ["--boundary-value"]),
            (["bem", *SMALL, "--accuracy", 0], ["--accuracy 0"]),
            (["bem", *SMALL, "--accuracy", 1], ["--accuracy 1"]),
            (["bem", *SMALL, "--eta", "inf"], ["--eta inf"]),
            (["bem", *SMALL, "--leaf-size", 0], ["--leaf-size 0"]),
            (["bem", *SMALL, "--approximation", "svd"], ["svd"]),
            (["bem", *SMALL, "--cluster-split", "x"], ["--cluster-split"]),
            (["bem", *SMALL, "--solver", "nonsense"], ["nonsense", "BICGSTAB"]),
            (["bem", *SMALL, "--preconditioner", "ilu"], ["ilu"]),
            (["bem", *SMALL, "--variant", "hasty"], ["hasty", "replicated"]),
            (["bem", *SMALL, "--variant", "merged", "--solver", "gmres"], ["--variant merged", "GMRES"]),
            (["bem", *SMALL, "--variant", "merged", "--solver", "none"], ["--variant", "a solver"]),
            (["bem", *SMALL, "--tolerance", "nan"], ["--tolerance nan"]),
            (["bem", *SMALL, "--max-iterations", 0], ["--max-iterations 0"]),
            (["bem", *SMALL[:4], "--products", -1], ["--products -1"]),
            (["bem", *SMALL, "--solver", "none", "--output", "x.vtu"], ["--output", "a solver"]),
            (["bem", *SMALL, "--output", "-"], ["--output"]),
            (["bem", *SMALL, "--block-plot", "-"], ["--block-plot"]),
        ], ranks=(1,))
        self.check_refusals([
            (["bem", *SMALL, "--route", "fast"], ["fast"]),
            (["bem", *SMALL, "--block-plot", "/none/x.svg"], ["/none/x.svg"]),
            (["bem", *SMALL, "--output", "/proc/x.vtu"], ["/proc/x.vtu"]),
            (["bem", *SMALL, "--solver", "gmres", "--convergence-plot", self.folder / "x.svg"], ["GMRES"]),
            (["bem", self.folder / "missing.obj"], ["missing.obj"]),
        ])

    def test_bad_meshes(self):
        flat = self.write("flat.obj", TETRAHEDRON + "v 2 0 0\nf 1 2 5\nf 1 2 4\n")
        opened = self.write("open.obj", TETRAHEDRON.rsplit("f", 1)[0])
        turned = self.write("turned.obj", TETRAHEDRON.replace("f 1 3 2", "f 1 2 3"))
        inward = self.write("inward.obj", TETRAHEDRON.replace("f 1 3 2", "f 1 2 3").replace("f 1 2 4", "f 1 4 2")
                            .replace("f 1 4 3", "f 1 3 4").replace("f 2 3 4", "f 2 4 3"))
        double = ("--kernel", "laplace-double-layer")
        self.check_refusals([
            (["bem", flat], ["flat.obj", "no area", "same"]),
            (["bem", opened, *double], ["open.obj", "double layer"]),
            (["bem", turned, *double], ["turned.obj", "double layer"]),
            (["bem", inward, *double], ["inward.obj", "double layer"]),
            (["bem", self.write("empty.obj", "")], ["empty.obj"]),
            (["bem", self.write("x.mesh", TETRAHEDRON)], ["x.mesh"]),
        ])


if __name__ == "__main__":
    sys.exit(main())
