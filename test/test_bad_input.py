#!/usr/bin/env python3
"""Whole-program tests of `komvos solve` with wrong input: one line of error that names what is wrong.

test_bad_input.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import sys

from support.program_test import BAD, ProgramTest, main, run


class BadInput(ProgramTest):
    # What the one line of error must name.
    FILES = {
        "not_matrix_market.mtx": ["line 1"],
        "empty.mtx": ["empty"],
        "truncated_header.mtx": ["line 1"],
        "nonsquare.mtx": ["4 rows", "5 columns"],
        "complex.mtx": ["complex"],
        "pattern.mtx": ["pattern"],
        "nan_entry.mtx": ["line 10", "nan"],
        "inf_entry.mtx": ["line 6", "inf"],
        "zero_row.mtx": ["row 3"],
        "zero_diagonal_row.mtx": ["row 3", "zero"],
        "index_out_of_range.mtx": ["line 15", "column 6"],
        "negative_index.mtx": ["line 7", "row -2"],
        "too_few_entries.mtx": ["13", "10"],
        "index_past_2_31.mtx": ["3000000000"],
    }

    def test_each_bad_file_is_named_by_one_line(self):
        present = {path.name for path in BAD.glob("*.mtx")} - {"small_good.mtx", "rhs_wrong_length.mtx"}
        self.assertEqual(present, set(self.FILES))
        cases = [(["solve", BAD / name], [name, *words]) for name, words in self.FILES.items()]
        for turn, ranks in enumerate((1, 2, 4)):
            self.check_refusals(cases[turn::3], ranks=(ranks,))
        self.check_refusals([(["solve", BAD / "zero_row.mtx"], ["row 3"])], ranks=(1, 4))

    def test_bad_files_written_here(self):
        banner = "%%MatrixMarket matrix coordinate real general\n"
        texts = {
            "cancelled": (banner + "2 2 4\n1 1 1\n2 1 1\n2 2 1\n2 2 -1\n", ["diagonal", "row 2"]),
            "more": (banner + "1 1 1\n1 1 1\n1 1 1\n", ["line 4", "more"]),
            "huge": (banner + "1000000000000 1000000000000 1000000000000\n1 1 1\n", ["1000000000000"]),
            "index": (banner + "1 1 1\n99999999999999999999 1 1\n", ["64 bits"]),
            "large value": (banner + "1 1 1\n1 1 1e999\n", ["1e999"]),
            "words": (banner + "1 1 1\n1 one 1\n", ["one"]),
            "short line": (banner + "1 1 1\n1 1\n", ["line 3"]),
            "no size": (banner, ["rows"]),
            "column": (banner + "2 2 2\n1 1 1\n2 1 1\n", ["column 2"]),
            "cut": (banner + "1 1 1\n1 1 1.2", ["line 3", "cut off"]),
            "halves": (banner.replace("general", "symmetric") + "2 2 4\n1 1 1\n2 1 1\n1 2 1\n2 2 1\n",
                       ["line 5", "above and below", "symmetric"]),
            "diagonal": (banner.replace("general", "skew-symmetric") + "2 2 2\n2 1 1\n2 2 1\n",
                         ["line 4", "skew-symmetric"]),
            "windows": (banner.replace("\n", "\r\n") + "1 1 1\r\n1 1 1\r\n", ["line 1", "CR LF"]),
        }
        for name, (text, _) in texts.items():
            (self.folder / name).write_bytes(text.encode())
        self.check_refusals([(["solve", self.folder / name], words) for name, (_, words) in texts.items()])

    def test_bad_right_hand_sides(self):
        nan = self.folder / "nan.mtx"
        nan.write_text("%%MatrixMarket matrix array real general\n5 1\n0\n0\nnan\n0\n6\n")
        short = self.folder / "short.mtx"
        short.write_text("%%MatrixMarket matrix array real general\n5 1\n0\n")
        cut, large, small = (self.folder / f"{name}.mtx" for name in ("cut", "large", "small"))
        cut.write_text("%%MatrixMarket matrix array real general\n5 1\n1\n1\n1\n1\n-0.")
        large.write_text("%%MatrixMarket matrix array real general\n5 1\n1\n1\n1\n1\n1e200\n")
        small.write_text("%%MatrixMarket matrix array real general\n5 1\n0\n0\n0\n0\n1e-200\n")
        cases = ((BAD / "rhs_wrong_length.mtx", ["4 x 1", "5 x 1"]), (nan, ["line 5", "nan"]), (short, ["after 1"]),
                 (cut, ["line 7", "cut off"]), (large, ["1e+200", "overflows"]), (small, ["1e-200", "norm is 0"]),
                 (self.folder / "none", ["no such file"]), (BAD / "small_good.mtx", ["coordinate"]))
        self.check_refusals([(["solve", BAD / "small_good.mtx", "--rhs", rhs], words) for rhs, words in cases])

    def test_bad_options(self):
        good = BAD / "small_good.mtx"
        xml = self.folder / "broken.xml"
        xml.write_text("<ParameterList>")
        other = self.folder / "other.xml"
        other.write_text('<ParameterList name="x"><ParameterList name="Ifpack"/></ParameterList>')
        unknown = self.folder / "unknown.xml"
        unknown.write_text('<ParameterList name="x"><ParameterList name="MueLu">'
                           '<Parameter name="no such thing" type="int" value="1"/></ParameterList></ParameterList>')
        variant = self.folder / "variant.xml"
        variant.write_text('<ParameterList name="x"><ParameterList name="Belos">'
                           '<Parameter name="Variant" type="string" value="hasty"/></ParameterList></ParameterList>')
        readonly = "/proc/x.mtx"
        # Every rank reads the same command line.
        self.check_refusals([
            ([], []),
            (["solve"], ["solve: needs a Matrix Market file or --problem"]),
            (["solve", good, "--problem", "laplace3d", "--n", 4], ["both"]),
            (["solve", "--problem", "laplace3d"], ["--n"]),
            (["solve", "--problem", "nonsense", "--n", 4], ["nonsense"]),
            (["solve", "--problem", "laplace3d", "--n", 0], ["--n"]),
            (["solve", "--problem", "laplace3d", "--n", "4,4"], ["--n"]),
            (["solve", "--problem", "laplace3d", "--n", "4,x,4"], ["4,x,4"]),
            (["solve", "--problem", "laplace3d", "--n", 4000000], ["too many"]),
            (["solve", "--problem", "elasticity3d", "--n", 1], ["2 points"]),
            (["solve", "--problem", "random", "--n", 60], ["--entries"]),
            (["solve", good, "--entries", 25], ["--entries"]),
            (["solve", good, "--tolerance", -1], ["--tolerance"]),
            (["solve", good, "--tolerance", "nan"], ["--tolerance"]),
            (["solve", good, "--tolerance", "x"], ["--tolerance"]),
            (["solve", good, "--max-iterations", 0], ["--max-iterations"]),
            (["solve", good, "--max-iterations", 99999999999], ["--max-iterations"]),
            (["solve", good, "--solver", "nonsense"], ["nonsense", "CG"]),
            (["solve", good, "--prec", "ilu"], ["ilu"]),
            (["solve", good, "--route", "fast"], ["fast", "three-step"]),
            (["solve", good, "--route", "axis:1,1"], ["axis:1,1"]),
            (["solve", good, "--route", "split:0"], ["split:0"]),
            (["solve", good, "--on-node", "pigeons"], ["--on-node", "pigeons", "shared-memory"]),
            (["solve", good, "--partition", "x"], ["--partition"]),
        ], ranks=(1,))
        self.check_refusals([
            (["frobnicate"], ["frobnicate"]),
            (["solve", self.folder / "missing.mtx"], ["no such file"]),
            (["solve", self.folder], ["directory"]),
            (["solve", good, "--no-such-option"], ["--no-such-option"]),
            (["solve", good, "--tolerance", 0], ["--tolerance"]),
            (["solve", good, "--machine", "green-waters"], ["green-waters", "blue-waters"]),
            (["solve", good, "--machine", xml], ["broken.xml"]),
            (["solve", good, "--tuning-cache", self.folder / "none.json"], ["cannot read tuning cache", "none.json"]),
            (["solve", good, "--tuning-cache", self.folder], ["cannot read tuning cache", self.folder]),
            (["solve", good, "--save-tuning-cache", self.folder], ["directory"]),
            (["solve", good, "--save-tuning-cache", self.folder / "no" / "d.json"], ["d.json"]),
            (["solve", good, "--ranks-per-node", "x"], ["x"]),
            (["solve", good, "--ranks-per-node", 0], ["0"]),
            (["solve", good, "--ranks-per-node", "7,1"], ["7"]),
            (["solve", good, "--ranks-per-node", "@/none"], ["/none"]),
            (["solve", good, "--xml", self.folder / "none.xml"], ["none.xml"]),
            (["solve", good, "--xml", xml], ["broken.xml"]),
            (["solve", good, "--xml", other], ["Ifpack"]),
            (["solve", good, "--xml", unknown], ["no such thing"]),
            (["solve", good, "--output", readonly], [readonly]),
            (["solve", good, "--convergence-plot", "-"], ["--convergence-plot"]),
            (["solve", good, "--solver", "pipelined-bicgstab", "--xml", variant], ["Variant", "hasty", "merged"]),
            (["solve", good, "--output", self.folder], ["directory"]),
            (["solve", good, "--json", self.folder / "no" / "x.json"], ["x.json"]),
        ])
        for ranks in (1, 4):
            grid = (["solve", good, "--route", "axis:7,1,1,1"], ["axis:7,1,1,1", f"product {ranks}"])
            self.check_refusals([grid], ranks=(ranks,))
        self.check_refusals([(["solve", good, "--route", "standard", "--tuning-cache", xml], [xml, "damaged"])])
        belos = self.folder / "belos.xml"
        belos.write_text('<ParameterList name="x"><ParameterList name="Belos"><Parameter name="Convergence Tolerence" '
                         'type="double" value="1e-3"/></ParameterList></ParameterList>')
        needed = "--require-tuning-cache needs --tuning-cache"
        self.check_refusals([(["solve", good, "--require-tuning-cache"], [needed]),
                             (["solve", good, "--ranks-per-socket", 0], ["--ranks-per-socket", "not in range"]),
                             (["solve", good, "--solver", "cg", "--xml", belos], ["'Convergence Tolerence' is no", "CG"]),
                             (["solve", good, "--solver", "superlu"], ["'superlu' is not known", "superlu-dist"])])
        sockets = (["solve", good, "--ranks-per-node", 2, "--route", "sockets"], ["route sockets", "socket"])
        self.check_refusals([sockets], ranks=(4,))

    def test_bad_environment(self):
        for name, value, word in (("KOMVOS_ROUT", "auto", "KOMVOS_ROUT "), ("KOMVOS_ROUTE", "fast", "KOMVOS_ROUTE: route 'fast'"),
                                  ("KOMVOS_RANKS_PER_NODE", "x", "x"), ("KOMVOS_GPU_AWARE_MPI", "perhaps", "perhaps"),
                                  ("KOMVOS_OVERLAP", "much", "KOMVOS_OVERLAP: 'much' is not one of none, interior, by-node, auto"),
                                  ("KOMVOS_ON_NODE", "pigeons", "KOMVOS_ON_NODE: 'pigeons' is not one of messages"),
                                  ("KOMVOS_TUNING", "never", "KOMVOS_TUNING: 'never' is not one of online, exhaustive, off"),
                                  ("KOMVOS_MACHINE", "none", "none"),
                                  ("KOMVOS_CALIBRATE", "maybe", "KOMVOS_CALIBRATE=maybe: must be 0 or 1"),
                                  ("KOMVOS_TUNING_CACHE", "/none", "/none")):
            self.check_refusal(run(2, "solve", BAD / "small_good.mtx", environment={name: value}), [word])


if __name__ == "__main__":
    sys.exit(main())
