#!/usr/bin/env python3
"""Whole-program tests of the solutions of `komvos solve`, with the standard library only.

test_solve.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import os
import shutil
import sys
import unittest
from pathlib import Path

from support.matrix_files import norm, read_matrix, read_vector, residual
from support.program_test import BAD, MATRICES, ROOT, ProgramTest, main, run


COARSER = ROOT / "perf" / "hierarchies" / "small-aggregates.xml"


class RealMatrices(ProgramTest):
    EVERY_ROUTE = ("standard", "two-step", "three-step", "split", "axis", "auto")
    RUNS = {  # matrix: {ranks: routes}
        "dcpf_case_ACTIVSg2000": {4: EVERY_ROUTE},
        "dcpf_case8387pegase": {5: ("standard", "auto")},
        "body_heat": {1: ("auto",), 4: ("standard", "three-step", "auto"), 5: ("standard", "auto")},
    }

    def test_the_routes_give_the_same_numbers(self):
        # With threads MueLu's aggregates differ from run to run, and so does the number of iterations, unless they are
        # asked to be the same.
        parameters = self.folder / "deterministic.xml"
        parameters.write_text("""<ParameterList><ParameterList name="MueLu">
            <Parameter name="aggregation: deterministic" type="bool" value="true"/>
            </ParameterList></ParameterList>""")
        for name in self.RUNS:
            entries, rows = read_matrix(MATRICES / f"{name}.mtx")
            b = read_vector(MATRICES / f"{name}_rhs.mtx")
            for ranks, routes in self.RUNS[name].items():
                iterations = set()
                for route in routes:
                    with self.subTest(name, ranks=ranks, route=route):
                        output = self.folder / "x.mtx"
                        report = self.solve(ranks, MATRICES / f"{name}.mtx", "--rhs", MATRICES / f"{name}_rhs.mtx",
                                            "--xml", parameters, "--ranks-per-node", 2, "--route", route,
                                            "--output", output)
                        self.assertEqual((report["rows"], report["solver"], report["symmetric"]), (rows, "CG", True))
                        self.assertEqual(report["entries"], len(entries))
                        self.assertEqual(report["ranks_per_node"], [2] * (ranks // 2) + [1] * (ranks % 2))
                        iterations.add(report["iterations"])
                        true = residual(entries, read_vector(output), b)
                        self.assertLessEqual(true, 1.01e-8)
                        self.assertAlmostEqual(true / report["true_residual"], 1, delta=0.02 if true > 1e-12 else 1e9)
                # With threads, entries of a product of matrices may be summed in another order from run to run.
                threaded = int(os.environ.get("OMP_NUM_THREADS", "1")) > 1
                self.assertLessEqual(max(iterations) - min(iterations), 3 if threaded else 0,
                                     "the route must not change the numbers")

    def test_the_indefinite_one_is_solved_by_gmres(self):
        name = "dcpf_case13659pegase"
        report = self.solve(5, MATRICES / f"{name}.mtx", "--rhs", MATRICES / f"{name}_rhs.mtx", "--ranks-per-node", 2)
        self.assertEqual(report["solver"], "GMRES")

    def test_partitions_give_the_same_solution(self):
        solutions = {}
        for name in ("contiguous", "strided", "graph"):
            output = self.folder / f"{name}.mtx"
            report = self.solve(5, MATRICES / "body_heat.mtx", "--rhs", MATRICES / "body_heat_rhs.mtx",
                                "--ranks-per-node", 2,
                                "--partition", name, "--output", output, "--tolerance", "1e-11")
            self.assertEqual(report["partition"], name)
            solutions[name] = read_vector(output)
        reference = solutions["contiguous"]
        for name in ("strided", "graph"):
            difference = norm([x - y for x, y in zip(solutions[name], reference)]) / norm(reference)
            self.assertLess(difference, 1e-7)

    def test_three_step_sends_fewer_messages_between_nodes(self):
        report = self.solve(8, MATRICES / "dcpf_case_ACTIVSg2000.mtx", "--ranks-per-node", 4, "--route", "three-step")
        halo = report["halos"][0]
        self.assertEqual(halo["standard"]["inter_node"]["messages_total"], 26)
        self.assertEqual(halo["chosen"]["inter_node"]["messages_total"], 2)
        self.assertLess(halo["chosen"]["inter_node"]["bytes_total"], halo["standard"]["inter_node"]["bytes_total"])


class SmallSystems(ProgramTest):
    def test_the_known_solution_also_with_more_ranks_than_rows(self):
        rhs = self.folder / "b.mtx"
        rhs.write_text("%%MatrixMarket matrix array integer general\r\n% six\r\n5 1\r\n0\r\n0\r\n0\r\n0\r\n6\r\n")
        for ranks, partition in {1: "contiguous", 3: "strided", 8: "contiguous"}.items():
            for preconditioner in ("muelu", "jacobi", "none"):
                output = self.folder / "x.mtx"
                self.solve(ranks, BAD / "small_good.mtx", "--rhs", rhs, "--output", output, "--partition", partition,
                           "--prec", preconditioner, "--ranks-per-node", 3, "--tolerance", "1e-12")
                for value, expected in zip(read_vector(output), (1, 2, 3, 4, 5)):
                    self.assertAlmostEqual(value, expected, delta=1e-10)

    def test_duplicates_are_summed_and_integers_and_comments_read(self):
        matrix = self.folder / "a.mtx"
        matrix.write_text("%%MatrixMarket Matrix Coordinate Integer General\n% comment\n\n"
                          "2 2 5\n1 1 1\n1 1 2\n% inside\n1 2 1\n2 1 1\n2 2 2\n")
        rhs = self.folder / "b.mtx"
        rhs.write_text("%%MatrixMarket matrix array real general\n2 1\n5\n5\n")
        output = self.folder / "x.mtx"
        for ranks in (1, 2):
            report = self.solve(ranks, matrix, "--rhs", rhs, "--output", output)
            self.assertEqual(report["entries"], 4)
            for value, expected in zip(read_vector(output), (1, 2)):
                self.assertAlmostEqual(value, expected, delta=1e-7)

    def test_a_zero_right_hand_side_has_the_zero_solution(self):
        rhs = self.folder / "b.mtx"
        rhs.write_text("%%MatrixMarket matrix array real general\n5 1\n0\n0\n0\n0\n0\n")
        output = self.folder / "x.mtx"
        report = self.solve(2, BAD / "small_good.mtx", "--rhs", rhs, "--output", output)
        self.assertEqual(report["iterations"], 0)
        self.assertEqual(read_vector(output), [0] * 5)

    def test_a_few_large_rows_do_not_make_a_matrix_symmetric(self):
        rows, penalty = 300, 1e30
        lines = []
        for i in range(1, rows + 1):
            boundary = i in (1, rows)
            lines += [(i, i, penalty if boundary else 3.0)]
            lines += [(i, i - 1, -1.5)] if i > 1 else []
            lines += [(i, i + 1, -0.5)] if i < rows else []
        matrix, rhs, output = self.folder / "a.mtx", self.folder / "b.mtx", self.folder / "x.mtx"
        matrix.write_text(f"%%MatrixMarket matrix coordinate real general\n{rows} {rows} {len(lines)}\n"
                          + "".join(f"{i} {j} {value}\n" for i, j, value in lines))
        b = [2 * penalty if i in (0, rows - 1) else 1.0 for i in range(rows)]
        rhs.write_text(f"%%MatrixMarket matrix array real general\n{rows} 1\n" + "".join(f"{v}\n" for v in b))
        entries, _ = read_matrix(matrix)
        inner = [one for one in entries if one[0] not in (0, rows - 1)]
        for solver in ("mumps", "superlu-dist"):
            report = self.solve(3, matrix, "--rhs", rhs, "--solver", solver, "--output", output)
            self.assertFalse(report["symmetric"])
            x = read_vector(output)
            self.assertLess(residual(inner, x, [0 if i in (0, rows - 1) else v for i, v in enumerate(b)]), 1e-10)
        self.assertNotEqual(self.solve(3, matrix, "--rhs", rhs, "--prec", "none")["solver"], "CG")

    def test_outputs_replace_neither_each_other_nor_an_input(self):
        mine, one = self.folder / "mine.mtx", self.folder / "one"
        shutil.copy(BAD / "small_good.mtx", mine)
        before = mine.read_bytes()
        self.check_refusals([
            (["solve", mine, "--output", mine], ["would replace", mine]),
            (["solve", mine, "--output", one, "--json", one], ["two outputs", one]),
            (["bench", "halo", mine, "--json", mine], ["would replace", mine]),
        ])
        analyze = ["analyze", mine, "--ranks", 4, "--ranks-per-node", 2]
        self.check_refusals([([*analyze, "--csv", mine], ["would replace", mine])], ranks=(1,))
        self.assertEqual(mine.read_bytes(), before)
        result = run(2, "solve", "--problem", "laplace3d", "--n", 10, "--prec", "none", "--max-iterations", 2, "--output",
                     one)
        self.assertEqual(result.code, 2, result.err)
        self.assertIn("NOT converged", one.read_text()[:200])

    def test_output_files_are_whole_or_not_there(self):
        self.solve(2, BAD / "small_good.mtx", "--output", self.folder / "x.mtx")
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"x.mtx", "report.json"})
        target, link = self.folder / "target.mtx", self.folder / "link.mtx"
        target.write_text("old")
        link.symlink_to(target)
        self.solve(2, BAD / "small_good.mtx", "--output", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(len(read_vector(target)), 5)
        self.solve(2, BAD / "small_good.mtx", "--output", "/dev/null")
        self.assertTrue(Path("/dev/null").is_char_device())

    def test_a_topology_from_a_file_and_from_the_environment(self):
        placement = self.folder / "nodes"
        placement.write_text("0 1 0 1\n")
        report = self.solve(4, BAD / "small_good.mtx", "--ranks-per-node", f"@{placement}")
        self.assertEqual((report["nodes"], report["ranks_per_node"], report["topology_source"]), (2, [2, 2], "given"))
        report = self.solve(4, BAD / "small_good.mtx", environment={"KOMVOS_RANKS_PER_NODE": "1,3",
                                                                    "KOMVOS_ROUTE": "standard"})
        self.assertEqual((report["ranks_per_node"], report["route"]), ([1, 3], "standard"))
        report = self.solve(4, BAD / "small_good.mtx", "--ranks-per-node", 4,
                            environment={"KOMVOS_RANKS_PER_NODE": "1,3"})
        self.assertEqual(report["ranks_per_node"], [4])
        report = self.solve(2, BAD / "small_good.mtx")
        self.assertEqual(report["topology_source"], "detected")

    def test_parameters_from_xml(self):
        sample = ROOT / "src" / "examples" / "parameters.xml"
        report = self.solve(4, "--problem", "laplace3d", "--n", 12, "--xml", sample)
        self.assertEqual((report["tolerance"], report["max_iterations"]), (1e-10, 500))
        report = self.solve(4, "--problem", "laplace3d", "--n", 12, "--xml", sample, "--tolerance", "1e-4")
        self.assertEqual(report["tolerance"], 1e-4)

    def test_the_command_line_decides_about_routes_of_all_levels(self):
        xml = self.folder / "route.xml"
        xml.write_text('<ParameterList name="x"><ParameterList name="MueLu"><Parameter name="node-aware: route" '
                       'type="string" value="three-step"/></ParameterList></ParameterList>')
        for options, expected in (((), "three-step"), (("--route", "two-step"), "two-step")):
            report = self.solve(4, "--problem", "laplace3d", "--n", 20, "--ranks-per-node", 2, "--xml", xml, *options)
            coarse = {halo["route"] for halo in report["halos"] if halo["used"] and halo["name"] != "A"}
            self.assertEqual(coarse, {expected})


class Generators(ProgramTest):
    PROBLEMS = (  # arguments, rows, entries, most iterations
        (("laplace3d", "--n", 16), 4096, 27136, 15),
        (("elasticity3d", "--n", 10), 3000, 197568, 20),
        (("elasticity3d", "--n", "20,5,4"), 1200, None, 20),
        (("rotated-anisotropic2d", "--n", 80), 6400, 56644, 60),
        (("random", "--n", 1200, "--entries", 25), 1200, 30000, 20),
    )

    def test_the_problem_does_not_depend_on_the_number_of_ranks(self):
        for problem, rows, entries, _ in self.PROBLEMS:
            solutions = []
            for ranks in (1, 5):
                with self.subTest(problem, ranks=ranks):
                    output = self.folder / "x.mtx"
                    report = self.solve(ranks, "--problem", *problem, "--ranks-per-node", 2, "--output", output,
                                        "--tolerance", "1e-11", "--partition", "graph" if ranks == 5 else "contiguous")
                    self.assertEqual(report["rows"], rows)
                    self.assertEqual(report["entries"], entries or report["entries"])
                    self.assertLess(report["relative_error"], 1e-7)
                    solutions.append(read_vector(output))
            for other in solutions[1:]:
                self.assertLess(norm([x - y for x, y in zip(other, solutions[0])]) / norm(solutions[0]), 1e-7)

    def test_iterations_stay_sensible(self):
        for problem, _, _, most in self.PROBLEMS:
            with self.subTest(problem):
                self.assertLessEqual(self.solve(4, "--problem", *problem)["iterations"], most)

    def test_groundwater_is_one_system_on_any_number_of_ranks(self):
        """Conductivities differ by 10 powers of ten: only what the residual says can be compared."""
        iterations = []
        for ranks in (1, 5):
            report = self.solve(ranks, "--problem", "groundwater3d", "--n", "16,12,14", "--solver", "bicgstab",
                                "--tolerance", "1e-8", "--ranks-per-node", 2)
            self.assertEqual((report["rows"], report["entries"]), (2688, 7 * 2688 - 2 * (12 * 14 + 16 * 14 + 16 * 12)))
            self.assertTrue(report["symmetric"])
            self.assertEqual(report["solver"], "BICGSTAB")
            iterations.append(report["iterations"])
        self.assertLessEqual(max(iterations), 40)

    def test_poisson3d_is_laplace3d(self):
        of_both = [self.solve(3, "--problem", name, "--n", 9) for name in ("poisson3d", "laplace3d")]
        self.assertEqual(*({key: report[key] for key in ("rows", "entries", "iterations", "true_residual")}
                           for report in of_both))

    def test_strided_and_graph_partitions_keep_nodes_together(self):
        for partition in ("strided", "graph"):
            report = self.solve(5, "--problem", "elasticity3d", "--n", "20,5,4", "--partition", partition,
                                "--ranks-per-node", 2)
            self.assertLessEqual(report["iterations"], 20)


class OneRank(ProgramTest):
    """What is solved on several ranks elsewhere: a class of its own, for it needs one core only."""

    def test_iterations_stay_sensible(self):
        for problem, _, _, most in Generators.PROBLEMS:
            with self.subTest(problem):
                self.assertLessEqual(self.solve(1, "--problem", *problem)["iterations"], most)

    def test_the_indefinite_one_is_solved_by_gmres(self):
        name = "dcpf_case13659pegase"
        report = self.solve(1, MATRICES / f"{name}.mtx", "--rhs", MATRICES / f"{name}_rhs.mtx", "--ranks-per-node", 2)
        self.assertEqual(report["solver"], "GMRES")


class Solvers(ProgramTest):
    def test_solvers_by_name(self):
        for solver in ("cg", "bicgstab", "gmres", "minres", "tfqmr", "block gmres", "Pseudoblock CG", "flexible gmres"):
            for preconditioner in ("muelu", "jacobi", "none") if solver in ("cg", "bicgstab", "gmres") else ("jacobi",):
                with self.subTest(solver, preconditioner=preconditioner):
                    report = self.solve(2, "--problem", "laplace3d", "--n", 8, "--solver", solver, "--prec",
                                        preconditioner)
                    self.assertEqual(report["solver"], solver.upper())

    def test_pipelined_bicgstab(self):
        problem = ("--problem", "convection3d", "--n", "12,10,8", "--tolerance", "1e-10")
        belos = self.solve(4, *problem, "--ranks-per-node", 2, "--solver", "bicgstab", "--prec", "jacobi")
        self.assertEqual((belos["symmetric"], belos["rows"]), (False, 960))
        xml = self.folder / "variant.xml"
        for ranks, variant in ((4, "pipelined"), (5, "pipelined"), (4, "auto"), (1, "pipelined"), (1, "auto")):
            with self.subTest(ranks=ranks, variant=variant):
                xml.write_text('<ParameterList name="x"><ParameterList name="Belos"><Parameter name="Variant" '
                               f'type="string" value="{variant}"/></ParameterList></ParameterList>')
                report = self.solve(ranks, *problem, "--ranks-per-node", 2, "--solver", "pipelined-bicgstab", "--prec",
                                    "jacobi", "--xml", xml)
                used = "merged" if variant == "auto" else variant  # all ranks share this machine
                self.assertEqual(report["solver"], f"PIPELINED BICGSTAB, {used}")
                self.assertLessEqual(report["true_residual"], 1e-10)
                self.assertLess(report["relative_error"], 1e-8)
                self.assertLessEqual(report["iterations"], 1.1 * belos["iterations"] + 1)
        for preconditioner in ("muelu", "none"):
            report = self.solve(3, *problem, "--solver", "pipelined-bicgstab", "--prec", preconditioner)
            self.assertLessEqual(report["true_residual"], 1e-10)

    def test_a_gnuplot_that_fails_is_no_wrong_input(self):
        (self.folder / "gnuplot").write_text("#!/bin/sh\necho out of ink >&2\nexit 1\n")
        (self.folder / "gnuplot").chmod(0o755)
        # Without mpirun, which puts its own folder first in PATH.
        result = run(1, "solve", "--problem", "convection3d", "--n", 4, "--prec", "none", "--quiet", "--solver",
                     "pipelined-bicgstab", "--convergence-plot", self.folder / "plot.svg",
                     environment={"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual((result.code, len(result.errors)), (3, 1), result.err)
        self.assertIn("out of ink", result.errors[0])
        self.assertEqual(os.listdir(self.folder), ["gnuplot"])

    @unittest.skipUnless(shutil.which("gnuplot") or os.environ.get("CI"), "needs gnuplot")
    def test_the_convergence_plot_shows_every_iteration(self):
        plot = self.folder / "convergence.svg"
        report = self.solve(3, "--problem", "convection3d", "--n", 8, "--prec", "none", "--ranks-per-node", 2, "--solver",
                            "pipelined-bicgstab", "--convergence-plot", plot)
        estimated, computed = (report["residuals"][name] for name in ("estimated", "computed"))
        self.assertEqual((len(estimated), len(computed)), (report["iterations"] + 1,) * 2)
        self.assertEqual(computed[0], 1)
        self.assertLessEqual(computed[-1], 1e-8)
        for one, other in zip(estimated, computed):
            self.assertAlmostEqual(one / other, 1, delta=1e-4)
        text = plot.read_text()
        self.assertIn("iteration", text)
        self.assertIn("estimated by the recurrence", text)
        self.check_refusal(run(2, "solve", "--problem", "laplace3d", "--n", 4, "--solver", "cg", "--convergence-plot",
                               plot), ("--convergence-plot", "pipelined-bicgstab", "CG"))
        self.check_refusal(run(2, "solve", "--problem", "laplace3d", "--n", 4, "--solver", "mumps",
                               "--convergence-plot", plot), ("--convergence-plot", "mumps"))
        self.check_refusal(run(2, "solve", self.folder / "no-matrix.mtx", "--solver", "gmres", "--convergence-plot", plot),
                           ("--convergence-plot", "pipelined-bicgstab", "GMRES"))
        self.check_refusal(run(2, "solve", "--problem", "laplace3d", "--n", 4, "--solver", "superlu-dist",
                               "--max-iterations", 10), ("--max-iterations", "superlu-dist"))
        self.assertEqual(plot.read_text(), text)  # as it was

    def test_the_default_solver_follows_the_matrix(self):
        self.assertEqual(self.solve(2, "--problem", "random", "--n", 400)["solver"], "BICGSTAB")
        self.assertEqual(self.solve(2, "--problem", "laplace3d", "--n", 6)["solver"], "CG")

    def test_direct_solvers_solve_in_one_go(self):
        body = (MATRICES / "body_heat.mtx", "--rhs", MATRICES / "body_heat_rhs.mtx")
        grid = (MATRICES / "dcpf_case13659pegase.mtx", "--rhs", MATRICES / "dcpf_case13659pegase_rhs.mtx")  # indefinite
        random = ("--problem", "random", "--n", 600, "--entries", 12)  # not symmetric
        for solver in ("mumps", "SuperLU-DIST"):
            for ranks, problem in ((1, body), (5, body), (4, grid), (3, random)):
                with self.subTest(solver, ranks=ranks, problem=problem):
                    report = self.solve(ranks, *problem, "--solver", solver, "--ranks-per-node", 2, "--tolerance", "1e-11")
                    self.assertEqual(report["solver"], solver.lower())
                    self.assertLessEqual(report["iterations"], 2)
                    self.assertGreater(report["factors"]["entries"], report["entries"] / 2)
                    self.assertEqual([halo["name"] for halo in report["halos"]],
                                     ["vectors"] if solver == "mumps" and ranks > 1 else [])
        result = run(2, "solve", *body, "--solver", "mumps", "--ranks-per-node", 1)
        self.assertEqual(result.code, 0)
        self.assertRegex(result.out, r"solver         MUMPS [0-9.]+\nfactors        [0-9]+ entries")

    def test_direct_solvers_refuse_what_they_cannot_factor(self):
        singular = self.folder / "singular.mtx"
        singular.write_text("%%MatrixMarket matrix coordinate real general\n3 3 7\n"
                            "1 1 1\n1 2 -1\n2 1 -1\n2 2 2\n2 3 -1\n3 2 -1\n3 3 1\n")
        for solver in ("mumps", "superlu-dist"):
            result = run(2, "solve", singular, "--solver", solver)
            self.check_refusal(result, ("3 rows", "singular"))
            result = run(2, "solve", "--problem", "laplace3d", "--n", 4, "--solver", solver, "--prec", "jacobi")
            self.check_refusal(result, ("--prec jacobi", solver))

    def test_cycles_are_timed_level_by_level(self):
        plot = self.folder / "cycle.svg"
        with_plot = ("--cycle-plot", plot) if shutil.which("gnuplot") else ("--cycle-times",)
        report = self.solve(4, "--problem", "elasticity3d", "--n", 8, "--xml", COARSER, "--ranks-per-node", 2, *with_plot)
        levels = report["cycle"]["levels"]
        self.assertEqual([one["level"] for one in levels], list(range(len(levels))))
        self.assertGreater(len(levels), 1)
        for one in levels:
            for when in ("", "_before"):
                self.assertGreater(one["work_seconds" + when], 0)
                self.assertGreater(one["exchange_seconds" + when], 0)
        if plot.exists():
            self.assertEqual(plot.read_text().count(">Komvos<"), len(levels))
        alone = self.solve(1, "--problem", "elasticity3d", "--n", 8, "--cycle-times")["cycle"]["levels"]
        self.assertLess(alone[0]["exchange_seconds"], alone[0]["work_seconds"])  # no message
        result = run(2, "solve", "--problem", "laplace3d", "--n", 4, "--prec", "jacobi", "--cycle-times")
        self.check_refusal(result, ("--cycle-times", "muelu"))

    def test_a_breakdown_is_reported(self):
        name = "dcpf_case13659pegase"
        result = run(2, "solve", MATRICES / f"{name}.mtx", "--rhs", MATRICES / f"{name}_rhs.mtx", "--solver", "cg",
                     "--prec", "jacobi")
        self.assertEqual(result.code, 2)
        self.assertEqual(len(result.errors), 1)


if __name__ == "__main__":
    sys.exit(main())
