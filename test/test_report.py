#!/usr/bin/env python3
"""Whole-program tests of the JSON report of `komvos solve`.

test_report.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import sys

from support.program_test import ProgramTest, main


class Report(ProgramTest):
    TRAFFIC = {side: {f"{what}_{over}": int for what in ("messages", "bytes") for over in ("max", "total")}
               for side in ("inter_node", "on_node")}
    SECONDS = (float, int, type(None))
    SCHEMA = {
        "komvos_version": str, "problem": str, "rows": int, "entries": int, "symmetric": bool,
        "ranks": int, "nodes": int,
        "ranks_per_node": list, "topology_source": str, "partition": str, "route": str, "pairing": str, "on_node": str,
        "tuning": str,
        "solver": str, "preconditioner": str, "tolerance": float, "max_iterations": int, "iterations": int, "restarts": int,
        "true_residual": float, "belos_residual": float, "belos_converged": bool, "converged": bool,
        "relative_error": SECONDS, "read_seconds": float, "setup_seconds": float, "solve_seconds": float,
        "kept_by_muelu": list, "halos": list,
    }
    HALO = {"name": str, "used": bool, "route": str, "pairing": str, "neighbours_max": int, "standard": TRAFFIC,
            "chosen": TRAFFIC, "standard_seconds": SECONDS, "chosen_seconds": SECONDS, "setup_seconds": float, "on_node": str,
            "from_tuning_cache": bool, "tuning_cache_note": (str, type(None)), "decision_reused": bool,
            "began_as_similar": bool, "began_as_forecast": bool, "uses": int, "settled_at_use": (int, type(None)),
            "tuning_seconds": float, "trials": list, "candidates": list}
    CANDIDATE = {"route": str, "on_node": str, "modelled_seconds": SECONDS, "measured_seconds": SECONDS,
                 "traffic": TRAFFIC, "not_chosen_because": str}

    TRIAL = {"route": str, "on_node": str, "columns_at_least": int, "first_use": int, "last_use": int, "seconds": float,
             "seconds_in_use": float, "outcome": str}

    def check(self, value, schema, where):
        if not isinstance(schema, dict):
            self.assertIsInstance(value, schema, where)
            return
        self.assertEqual(set(value), set(schema), where)
        for key, inner in schema.items():
            self.check(value[key], inner, f"{where}.{key}")

    def test_the_json_report_has_these_keys(self):
        for route in ("standard", "three-step", "auto"):
            report = self.solve(4, "--problem", "elasticity3d", "--n", 10, "--ranks-per-node", 2, "--route", route,
                                "--partition", "strided", "--tuning", "exhaustive")
            self.check(report, self.SCHEMA, "report")
            self.assertEqual((report["route"], report["nodes"], report["ranks"]), (route, 2, 4))
            names = [halo["name"] for halo in report["halos"] if halo["used"]]
            self.assertEqual((names[0], len(names)), ("A", len(report["halos"])))
            self.assertLessEqual({"level 1 P", "level 1 R"}, set(names))
            self.assertEqual(report["kept_by_muelu"], [])
            for halo in report["halos"]:
                self.check(halo, self.HALO, "halo")
                self.check_candidates(halo)
            halo = report["halos"][0]
            measured = {one["route"] for one in halo["candidates"] if one["measured_seconds"] is not None}
            self.assertEqual(halo["standard_seconds"] is not None, "standard" in measured)
            if route == "auto":
                self.assertIn("standard", measured)
            else:  # by messages and by shared memory
                self.assertEqual((halo["route"], measured), (route, {route}))

    def write_rebalanced(self, more=""):
        parameters = self.folder / "rebalanced.xml"
        parameters.write_text(f"""<ParameterList><ParameterList name="MueLu">
            <Parameter name="coarse: max size" type="int" value="30"/>
            <Parameter name="repartition: enable" type="bool" value="true"/>
            <Parameter name="repartition: partitioner" type="string" value="zoltan2"/>
            <Parameter name="repartition: start level" type="int" value="1"/>
            <Parameter name="repartition: min rows per proc" type="int" value="100"/>
            {more}</ParameterList></ParameterList>""")
        return parameters

    def test_what_muelu_keeps_on_levels_without_rank_0_is_there(self):
        parameters = self.write_rebalanced("""<ParameterList name="level 1">
            <Parameter name="smoother: type" type="string" value="SCHWARZ"/>
            <ParameterList name="smoother: params">
            <Parameter name="schwarz: overlap level" type="int" value="1"/>
            <Parameter name="subdomain solver name" type="string" value="RILUK"/>
            </ParameterList></ParameterList>""")
        # Which ranks have level 1 is up to MueLu: on 6 ranks these lack rank 0.
        for ranks, (n, partition) in {4: (16, "contiguous"), 5: (14, "strided"), 6: (14, "graph")}.items():
            report = self.solve(ranks, "--problem", "laplace3d", "--n", n, "--ranks-per-node", 2, "--partition",
                                partition, "--solver", "gmres", "--xml", parameters)
            self.assertRegex("\n".join(report["kept_by_muelu"]), "^level 1, PreSmoother: .*AdditiveSchwarz.* overlaps$")

    def test_halos_of_levels_without_rank_0_are_there(self):
        parameters = self.write_rebalanced()
        # Which ranks have a coarse level is up to MueLu: on 5 and 6 ranks these lack rank 0. Level 1 is on several.
        for ranks, (n, partition) in {4: (16, "contiguous"), 5: (14, "strided"), 6: (14, "graph")}.items():
            report = self.solve(ranks, "--problem", "laplace3d", "--n", n, "--ranks-per-node", 2, "--partition",
                                partition, "--xml", parameters)
            levels = int(report["preconditioner"].split()[1])
            self.assertGreater(levels, 2)
            names = [halo["name"] for halo in report["halos"]]
            self.assertEqual(len(names), len(set(names)))
            places = [(int((name + " 0").split()[1]), "A P R Importer".split().index(name.split()[-1]))
                      for name in names]
            self.assertEqual(places, sorted(places), "level by level")
            for level in range(1, levels):
                self.assertLessEqual({f"level {level} P", f"level {level} R"}, set(names))
            for halo in report["halos"]:
                self.check(halo, self.HALO, "halo")

    def test_trials_of_online_tuning_have_these_keys(self):
        for _ in range(6):  # what is tried depends on measured times
            report = self.solve(4, "--problem", "random", "--n", 20000, "--ranks-per-node", 2, "--prec", "none",
                                "--solver", "gmres", "--tolerance", 1e-14)
            halo = report["halos"][0]
            if halo["trials"]:
                break
        self.check(report, self.SCHEMA, "report")
        self.check(halo, self.HALO, "halo")
        self.assertEqual([one["not_chosen_because"] for one in halo["candidates"]].count(""), 1)
        for trial in halo["trials"]:
            self.check(trial, self.TRIAL, "trial")
        if not halo["trials"]:
            self.skipTest("all but trials: nothing was tried in six runs, which depends on measured times")

    def check_candidates(self, halo):
        for one in halo["candidates"]:
            self.check(one, self.CANDIDATE, "candidate")
        chosen = [one for one in halo["candidates"] if one["not_chosen_because"] == ""]
        self.assertEqual(len(chosen), 1, halo["candidates"])
        self.assertEqual(chosen[0]["route"].partition(":")[0], halo["route"].partition(":")[0])
        self.assertEqual((chosen[0]["on_node"], chosen[0]["traffic"], chosen[0]["measured_seconds"]),
                         (halo["on_node"], halo["chosen"], halo["chosen_seconds"]))
        standard = halo["candidates"][0]
        self.assertEqual((standard["route"], standard["on_node"]), ("standard", "messages"))
        self.assertEqual((standard["traffic"], standard["measured_seconds"]),
                         (halo["standard"], halo["standard_seconds"]))


if __name__ == "__main__":
    sys.exit(main())
