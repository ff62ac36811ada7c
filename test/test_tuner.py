#!/usr/bin/env python3
"""Whole-program tests of the choice of a route by `komvos solve`, and of saved decisions.

test_tuner.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import json
import sys

from support.program_test import ProgramTest, main, run


EXHAUSTIVE = ("--tuning", "exhaustive")


class Tuner(ProgramTest):
    PROBLEM = ("--problem", "random", "--n", 1200)  # everybody needs values of everybody

    def test_every_route_is_obeyed(self):
        iterations = set()
        routes = {"standard": "standard", "two-step": "two-step", "three-step": "three-step", "split": "split",
                  "split:2": "split:2", "axis": "axis:2,2,1,1", "axis:1,2,2,1": "axis:1,2,2,1",
                  "axis:1,1,4,1": "axis:1,1,4,1"}
        for asked, name in routes.items():
            report = self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--route", asked)
            iterations.add(report["iterations"])
            self.assertEqual((report["route"], report["halos"][0]["route"]), (asked, name))
            chosen = [one for one in report["halos"][0]["candidates"] if not one["not_chosen_because"]]
            self.assertEqual([one["route"] for one in chosen], [asked])
        report = self.solve(4, *self.PROBLEM, "--route", "sockets")  # as detected
        self.assertEqual(report["halos"][0]["route"], "sockets")
        self.assertEqual(len(iterations), 1, "the route must not change the numbers")

    def test_messages_and_shared_memory_on_the_node_are_obeyed(self):
        for on_node in ("messages", "shared-memory", "auto"):
            report = self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--on-node", on_node, *EXHAUSTIVE)
            halo = report["halos"][0]
            self.assertEqual(report["on_node"], on_node)
            self.assertIn(halo["on_node"], ("messages", "shared-memory") if on_node == "auto" else (on_node,))
            measured = {one["on_node"] for one in halo["candidates"] if one["measured_seconds"] is not None}
            self.assertEqual(measured, {"messages", "shared-memory"} if on_node == "auto" else {on_node})
        report = self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, environment={"KOMVOS_ON_NODE": "shared-memory"})
        self.assertEqual(report["on_node"], "shared-memory")
        report = self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--on-node", "auto", *EXHAUSTIVE,
                            environment={"KOMVOS_ON_NODE": "messages"})
        measured = {one["on_node"] for one in report["halos"][0]["candidates"] if one["measured_seconds"] is not None}
        self.assertEqual(measured, {"messages", "shared-memory"}, "the option goes first, auto too")

    def test_routes_are_tried_in_the_iterations_and_the_numbers_stay_the_same(self):
        solves = {tuning: self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--tuning", tuning, "--tolerance", 1e-12)
                  for tuning in ("online", "off", "exhaustive")}
        for tuning, report in solves.items():
            self.assertEqual(report["tuning"], tuning)
            self.assertEqual(report["iterations"], solves["off"]["iterations"])
            self.assertEqual(report["true_residual"], solves["off"]["true_residual"], "the same bits")
        self.assertEqual(self.solve(4, *self.PROBLEM, "--ranks-per-node", 2)["tuning"], "online", "the default")
        online, off = solves["online"]["halos"][0], solves["off"]["halos"][0]
        self.assertGreaterEqual(online["uses"], solves["online"]["iterations"])
        self.assertEqual((off["route"], off["trials"], off["uses"]), ("standard", [], 0))
        for one in online["trials"]:
            self.assertLess(one["first_use"], one["last_use"])
            if one["outcome"] != "broken off":
                self.assertGreater(one["seconds"], 0)
        if not online["trials"]:
            self.skipTest("all but trials: nothing was tried, which depends on measured times")

    def test_a_machine_gives_every_candidate_a_modelled_time(self):
        halo = self.solve(6, *self.PROBLEM, "--ranks-per-node", 3, "--machine", "blue-waters", *EXHAUSTIVE)["halos"][0]
        least = min(one["modelled_seconds"] for one in halo["candidates"])
        for one in halo["candidates"]:
            if one["not_chosen_because"].startswith("the model says"):
                self.assertGreater(one["modelled_seconds"], 4 * least)
                self.assertIsNone(one["measured_seconds"])
        halo = self.solve(6, *self.PROBLEM, "--ranks-per-node", 3, *EXHAUSTIVE)["halos"][0]
        self.assertEqual({one["modelled_seconds"] for one in halo["candidates"]}, {None})

    def test_a_saved_decision_is_taken_and_nothing_is_measured(self):
        file = self.folder / "decisions.json"
        # Online tuning leaves a first guess after so few iterations: what is saved here was measured, or asked for.
        asked = ("--route", "three-step", "--on-node", "shared-memory")
        for decided, option, environment in ((EXHAUSTIVE, ("--tuning-cache", file), {}),
                                             (asked, (), {"KOMVOS_TUNING_CACHE": str(file)})):
            first = self.solve(6, *self.PROBLEM, "--ranks-per-node", 3, *decided, "--save-tuning-cache", file)
            book = json.loads(file.read_text())
            self.assertEqual((book["format"], book["version"]), ("komvos-tuning-cache", 3))
            second = self.solve(6, *self.PROBLEM, "--ranks-per-node", 3, *option, environment=environment)
            self.assertEqual(second["iterations"], first["iterations"])
            self.assertEqual(len(second["halos"]), len(first["halos"]))
            for before, after in zip(first["halos"], second["halos"]):
                for key in ("name", "route", "on_node", "chosen"):
                    self.assertEqual(after[key], before[key])
                self.assertTrue(after["from_tuning_cache"])
                self.assertIsNone(after["chosen_seconds"])
                self.assertEqual({one["measured_seconds"] for one in after["candidates"]}, {None})

    def test_a_tuning_cache_is_ignored_where_something_else_says_how_halos_are_exchanged(self):
        file = self.folder / "decisions.json"
        on_pairs = (*self.PROBLEM, "--ranks-per-node", 2)
        self.solve(4, *on_pairs, "--route", "two-step", "--on-node", "messages", "--save-tuning-cache", file)
        cases = [
            (("--tuning-cache", file), {"KOMVOS_ROUTE": "standard", "KOMVOS_TUNING_CACHE": "/none"}, "two-step"),
            (("--tuning-cache", file, "--route", "standard"), {}, "standard"),
            (("--route", "standard"), {"KOMVOS_TUNING_CACHE": "/none"}, "standard"),
            ((), {"KOMVOS_ROUTE": "standard", "KOMVOS_TUNING_CACHE": "/none"}, "standard"),
        ]
        for options, environment, route in cases:
            report = self.solve(4, *on_pairs, *options, environment=environment)
            self.assertEqual(report["halos"][0]["route"], route, (options, environment))
        for option in (("--route", "auto"), ("--pairing", "by-volume"), ("--on-node", "auto")):
            halo = self.solve(4, *on_pairs, "--tuning-cache", file, *option, *EXHAUSTIVE)["halos"][0]
            self.assertTrue(any(one["measured_seconds"] is not None for one in halo["candidates"]), option)

    def test_decisions_are_taken_for_every_halo_that_is_exchanged(self):
        file = self.folder / "decisions.json"
        arguments = ("--problem", "laplace3d", "--n", 20, "--ranks-per-node", 2)
        first = self.solve(4, *arguments, *EXHAUSTIVE, "--save-tuning-cache", file)
        second = self.solve(4, *arguments, "--tuning-cache", file)
        self.assertEqual(second["iterations"], first["iterations"])
        self.assertEqual([halo["route"] for halo in second["halos"]], [halo["route"] for halo in first["halos"]])
        self.assertEqual([halo["name"] for halo in first["halos"]], ["A", "level 1 P", "level 1 R"])
        self.assertTrue(all(halo["used"] for halo in first["halos"]))
        self.assertTrue(all(halo["from_tuning_cache"] for halo in second["halos"]))

    def test_a_run_that_is_too_short_to_decide_leaves_a_first_guess(self):
        file = self.folder / "decisions.json"
        on_pairs = (*self.PROBLEM, "--ranks-per-node", 2)
        result = run(4, "solve", *on_pairs, "--max-iterations", 1, "--save-tuning-cache", file)
        self.assertRegex(result.out, r"tuning cache +1 of 1 decisions rest on too few uses")
        self.assertEqual([one["settled"] for one in json.loads(file.read_text())["decisions"]], [False])
        halo = self.solve(4, *on_pairs, "--tuning-cache", file)["halos"][0]
        self.assertEqual((halo["from_tuning_cache"], halo["began_as_similar"]), (False, True))
        self.assertGreater(halo["uses"], 0, "it goes on tuning")
        self.assertIn("too short to decide", halo["tuning_cache_note"])
        halo = self.solve(4, *on_pairs, "--tuning-cache", file, "--require-tuning-cache")["halos"][0]
        self.assertTrue(halo["from_tuning_cache"], "as asked for")

    def test_a_cache_that_is_saved_keeps_what_was_read_for_other_halos(self):
        file = self.folder / "decisions.json"
        on_pairs = (*self.PROBLEM, "--ranks-per-node", 2)
        other = (*on_pairs, "--entries", 7)
        self.solve(4, *on_pairs, *EXHAUSTIVE, "--save-tuning-cache", file)
        self.solve(4, *other, *EXHAUSTIVE, "--tuning-cache", file, "--save-tuning-cache", file)
        self.assertEqual(len(json.loads(file.read_text())["decisions"]), 2)
        for problem in (on_pairs, other):
            self.assertTrue(self.solve(4, *problem, "--tuning-cache", file)["halos"][0]["from_tuning_cache"])
        self.check_refusals([((*("solve", *on_pairs), "--tuning-cache", file, "--output", file), [file, "is read"])],
                            ranks=(4,))

    def test_without_tuning_a_guess_is_no_decision(self):
        file = self.folder / "decisions.json"
        on_pairs = (*self.PROBLEM, "--ranks-per-node", 2)
        self.solve(4, *on_pairs, "--tuning", "off", "--save-tuning-cache", file)
        self.assertEqual([one["settled"] for one in json.loads(file.read_text())["decisions"]], [False])

    def test_the_report_says_why_a_halo_keeps_the_standard_route(self):
        file = self.folder / "decisions.json"
        on_pairs = (*self.PROBLEM, "--ranks-per-node", 2, "--on-node", "messages")
        result = run(4, "solve", *on_pairs, "--route", "standard", "--save-tuning-cache", file)
        self.assertIn("A: the standard route, by messages on nodes, as asked for.", result.out)
        result = run(4, "solve", *self.PROBLEM, "--ranks-per-node", 2, "--tuning-cache", file)
        self.assertIn("A: the standard route, by messages on nodes, as in the tuning cache.", result.out)
        result = run(4, "solve", *on_pairs, *EXHAUSTIVE)
        self.assertRegex(result.out, r"A: (the standard route, by messages on nodes, none of \d+ others that were "
                                     r"measured is clearly faster\.|[a-z-]+ sends \d+ instead of \d+ messages).* One "
                                     r"exchange took \d+ us")

    def test_decisions_that_do_not_fit_are_a_note_or_an_error_if_they_are_required(self):
        file, other = self.folder / "decisions.json", self.folder / "other.json"
        self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--route", "three-step", "--save-tuning-cache", file)
        text = file.read_text()
        machine = json.loads(text)["decisions"][0]["machine"]
        other.write_text(text.replace(machine, "a computer of 1950"))
        cases = [
            (("--ranks-per-node", "1,3", "--tuning-cache", file), (str(file), "made for other nodes: 4 ranks")),
            (("--ranks-per-node", 2, "--entries", 7, "--tuning-cache", file), (str(file), "for this pattern")),
            (("--ranks-per-node", 2, "--tuning-cache", other),
             (str(other), "made on another machine: a computer of 1950; here: " + machine)),
        ]
        for options, reasons in cases:
            result = run(4, "solve", *self.PROBLEM, *options)
            self.assertEqual(result.code, 0, result.err)
            notes = [line for line in result.out.splitlines() if line.startswith("note  ")]
            self.assertEqual(len(notes), 1, result.out)
            for reason in ("tuned in this run: 1 of 1 halos in use", *reasons):
                self.assertIn(reason, notes[0])
            halo = self.solve(4, *self.PROBLEM, *options)["halos"][0]
            self.assertFalse(halo["from_tuning_cache"])
            self.assertIn(reasons[1], halo["tuning_cache_note"])
        self.check_refusals([(("solve", *self.PROBLEM, *options, "--require-tuning-cache"), list(reasons))
                             for options, reasons in cases], ranks=(4,))
        code = {"KOMVOS_REQUIRE_TUNING_CACHE": "1"}
        result = run(4, "solve", *self.PROBLEM, *cases[1][0], environment=code)
        self.assertNotEqual(result.code, 0)
        self.assertIn("for this pattern", result.err)

    def test_a_similar_halo_begins_as_decided_before(self):
        file = self.folder / "decisions.json"
        self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--route", "two-step", "--on-node", "messages",
                   "--save-tuning-cache", file)
        bigger = ("--problem", "random", "--n", 1300, "--ranks-per-node", 2, "--tuning-cache", file, "--tuning", "off")
        halo = self.solve(4, *bigger)["halos"][0]
        self.assertEqual((halo["route"], halo["began_as_similar"]), ("two-step", True))
        much_bigger = (*bigger[:3], 4000, *bigger[4:])
        halo = self.solve(4, *much_bigger)["halos"][0]
        self.assertEqual((halo["route"], halo["began_as_similar"]), ("standard", False))

    def test_damaged_decisions_are_refused(self):
        file = self.folder / "decisions.json"
        self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, *EXHAUSTIVE, "--save-tuning-cache", file)
        text = file.read_text()
        cut, typo, grid = (self.folder / f"{name}.json" for name in ("cut", "typo", "grid"))
        route = json.loads(text)["decisions"][0]["route"]
        grid.write_text(text.replace(f'"route": "{route}"', '"route": "axis:3,1,1,1"'))
        cut.write_text(text[:len(text) // 2])
        typo.write_text(text.replace('"on_node"', '"an_node"'))
        solve = ("solve", *self.PROBLEM)
        self.check_refusals([
            ((*solve, "--ranks-per-node", 2, "--tuning-cache", cut), [cut, "damaged"]),
            ((*solve, "--ranks-per-node", 2, "--tuning-cache", typo), [typo, "on_node"]),
            ((*solve, "--ranks-per-node", 2, "--tuning-cache", grid), [grid, "axis:3,1,1,1", "product 4"]),
        ], ranks=(4,))


if __name__ == "__main__":
    sys.exit(main())
