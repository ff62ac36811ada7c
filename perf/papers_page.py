"""Writes PAPERS.md: what papers print about node-aware exchanges at scale, and what Komvos counts."""
from papers_tables import (COARSER_TOO, COMPARED, LONG, NETWORKS, crossover, crossover_table, gain_at_the_end, levels, ms,
                           neighbours, random_rows, route, simulated_levels, standard_and_aware)

INTRODUCTION = """# Numbers of the papers, and ours

Made by `perf/reproduce_papers.py`; raw results in `perf/results/simulated`. All ranks are simulated: messages and bytes are
counted exactly, one vector of doubles, the maximum over ranks of what a rank sends. "a / b" is standard / three-step
(node-aware). Modelled times are those of the max-rate model with the parameters of Blue Waters (Bienz, Gropp, Olson, tables
3 and 4), where a stage lasts as long as the rank that is busiest sending or receiving: computation, contention in the network
and idle time are not in them.

## A. Bienz, W. Gropp, L. Olson, Node aware sparse matrix-vector multiplication

"""


def hierarchies(reports):
    return f"""### Figures 8, 9 and 10: multigrid hierarchies on 32,768 ranks, 16 on a node

The paper shows these as plots without printed numbers, and does not print the sizes of its problems. What its text
claims, and what we find:

- "both the number and size of inter-node messages required on each level of the linear elasticity hierarchy are
  reduced", with "a large reduction in communication requirements for coarse levels": the same here, on every level.
- "the intra-node communication requirements increase greatly": the same.
- "a significant reduction in total time [...], particularly on coarser levels near the middle of each AMG hierarchy": so
  it is where levels fill in (the second and third table); smoothed aggregation as it comes keeps the pattern of the
  finest level, and gains about the same on every level.

Linear elasticity, {reports.elasticity['problem']}, MueLu's smoothed aggregation as it comes:

{levels(reports.elasticity)}
{reports.elasticity['conclusion']}

The same with aggregates of at most 6 nodes, so that levels shrink slowly and fill in, as those of classical multigrid do
(`perf/hierarchies/small-aggregates.xml`):

{levels(reports.dense)}
{reports.dense['conclusion']}

Rotated anisotropic diffusion, {reports.rotated['problem']}, weak connections dropped (`perf/hierarchies/drop-weak.xml`):

{levels(reports.rotated)}
{reports.rotated['conclusion']}

Where ours differs: the paper's elasticity problem is unstructured, ours is a bar of cubes cut into boxes. The paper does
not say how its hierarchies are coarsened; ours are smoothed aggregation, set up in one process, so that aggregates do not
end where ranks do. On another processor BLAS rounds otherwise, which adds or drops a few entries of P: sums then change by
some tenths of a percent, and maxima over ranks by a message or two. In the paper a rank that needs a value and also forwards it gets it twice; here once. On the finest
levels of the rotated problem three steps send more bytes at most from one rank, and are slower: each rank has 8 neighbours
and few values for each, and what its node sends to another then leaves from one rank.

{replayed_levels(reports.replayed)}
"""


def replayed_levels(report):
    if report is None:
        return ""
    return f"""Elasticity with small aggregates once more, {report['problem']} on {report['topology']}, replayed by SimGrid, microseconds:

{simulated_levels(report)}
{"; ".join(report["networks"])}.
"""


def random_matrices(reports):
    last = reports.weak[-1]
    return f"""### Figures 11 and 12: random matrices

1,000 rows a rank (weak scaling) and 4,096,000 rows (strong scaling), counted exactly at every size: the matrix is
generated on the fly, never stored ({last['rows'] * last['entries']:.1e} entries at the end). It has its constant number of entries in each column instead of each row, the transpose of the paper's.

Weak scaling:

{random_rows(reports.weak)}
Strong scaling:

{random_rows(reports.strong)}
Density, at 2,048 ranks; the paper finds "little difference in costs between each density":

{random_rows(reports.density)}
The paper: "improved performance over the reference implementation by up to two orders of magnitude" (measured, plots
only). The model gives {gain_at_the_end(reports.weak)}x and
{gain_at_the_end(reports.strong)}x at 32,768 ranks. What was measured beyond that would have
to come from what the model leaves out: queues at the receivers and contention, with
{route(last, 'standard')['inter_messages_max']:,} messages a rank at once.
"""


class Scaling:
    """The numbers in the text about simulated random matrices.
    exact:      for weak and strong, a report on three steps of COMPARED ranks, as exact as those of few
    coarser:    a report on three steps of COARSER_TOO ranks, weak scaling, as coarse as the last row
    most_exact: most ranks that SimGrid replays exactly
    """

    def __init__(self, reports):
        self.simulated = reports.simulated
        self.weak_change, self.strong_change = (changes(self.of(kind, COMPARED), reports.exact[kind])
                                                for kind in ("weak", "strong"))
        self.coarser_change = changes(reports.coarser, self.of("weak", COARSER_TOO))
        self.most_exact = reports.most_exact
        replayed = {kind: self.of(kind, self.most_exact) for kind in ("weak", "strong")}
        self.bounds = {kind: ms(route(report, "standard")["least_replay_seconds"]) for kind, report in replayed.items()}
        self.exact = {kind: " and ".join(ms(time) for time in seconds(report, "standard"))
                      for kind, report in replayed.items()}
        self.networks = "; ".join(replayed["weak"]["networks"])

    def of(self, kind, ranks):
        return next(report for report in self.simulated[kind] if report["ranks"] == ranks)

    def effort(self):
        """Of the replays that take hours, if there are any."""
        longest = [one for kind in self.simulated.values() for report in kind if report["ranks"] == LONG
                   for one in report["cpu_seconds"]]
        if not longest:
            return ""
        return (f" The last rows take a core for {min(longest) / 60:.0f} to {max(longest) / 60:.0f} minutes and 12 GB for "
                "each network.")


def seconds(report, name):
    return [route(report, name)["simulated_seconds"][kind] for kind in NETWORKS]


def changes(after, before):
    pairs = zip(seconds(after, "three-step"), seconds(before, "three-step"))
    return " and ".join(f"{100 * (a / b - 1):+.0f}" for a, b in pairs)


def simulated_scaling(reports):
    if not reports.simulated:
        return ""
    scaling = Scaling(reports)
    weak, strong = reports.simulated["weak"], reports.simulated["strong"]
    last = weak[-1]
    standard, aware = standard_and_aware(last)
    return f"""
Simulated by SimGrid, 25 entries, ms. In weak scaling along the standard route a rank sends to nearly all others up to
{COARSER_TOO:,} ranks, and to {100 * standard['inter_messages_max'] / last['ranks']:.0f} % of them at the end,
{standard['inter_messages_total']:,} messages in all; SimGrid can follow that only up to a few hundred ranks. From
{COMPARED:,} ranks on "&ge;" is what the same replay takes at least: the processor of the busiest rank starts its sends
and takes up what it receives, 350 ns and 20 ps/B each, one after the other, on a network that costs nothing. On
{scaling.most_exact} ranks that bound is {scaling.bounds['weak']} ms where SimGrid's times are {scaling.exact['weak']} ms (weak), and
{scaling.bounds['strong']} ms where they are {scaling.exact['strong']} ms (strong): the true gains are larger. Three steps,
{aware['inter_messages_total']:,} messages between nodes at the end, are followed everywhere, from {COMPARED:,} ranks on
with what makes SimGrid faster: on {COMPARED:,} ranks that changes their times on the two networks by {scaling.weak_change} % (weak) and
{scaling.strong_change} % (strong). The last row of weak scaling takes events of 100 ns together, which on {COARSER_TOO:,} ranks changes
times by {scaling.coarser_change} %.{scaling.effort()}

Weak scaling:

{random_rows(weak)}
Strong scaling:

{random_rows(strong)}
On 32 ranks of strong scaling the model expects three steps to lose: one rank of each node hands what comes in to the 15
others, with values of its own {route(strong[0], 'three-step')['on_bytes_max'] / 1e6:.0f} MB. By the model these messages leave one after the
other; in SimGrid each has 8 GB/s of the node for itself.

Networks of {scaling.most_exact} ranks: {scaling.networks}. Of {strong[-1]['ranks']:,} ranks:
{"; ".join(strong[-1]['networks'])}. Fewer ranks have smaller networks of the same kind.
"""


def fujii_marques(reports):
    points = crossover(reports.poisson)
    slower = [n for n, gain in points if gain <= 1]
    above = [gain for n, gain in points if n > 44]
    return f"""
## A. Fujii, O. Marques, Axis communication method for algebraic multigrid solver

### Table 3: most neighbours of a process

The paper: Poisson on 200^3 points, ParMETIS. Ours: 100^3 points, boxes. "Levels" are products with A, "between" those with
P and R.

{neighbours(reports.poisson)}
Between levels the paper's numbers are those of its coarsest level, which one process solves: all that own rows of the
level above send to it, P - 1 or a little less. Ours are spread in the hierarchy itself, and gathered only in the coarse
solver; the second-to-last column counts what the paper's way would give: ranks that own rows of the second-to-last
level. On levels ours grow earlier and end lower: with an eighth of the rows, coarse levels have fewer rows than there are
ranks sooner. The paper's second problem, with coefficients that jump, would give the same numbers here: without dropping,
smoothed aggregation looks at the pattern of the matrix only.

### Figure 3: from how many neighbours on axis communication pays

The paper: measured on FX10, "when max neighboring processes are more than 44, axis communication is always faster". Ours:
{len(points)} halos of these five runs, each with the best of the topologies (C,X,Y,Z) of the paper's table 1, by the model:
axis is slower for some halo up to {max(slower, default=0)} neighbours and always faster above; of the {len(above)} halos
with more than 44 neighbours it is faster in {sum(gain > 1 for gain in above)}, by up to {max(above, default=1):.1f}x.

{crossover_table(points)}
The machine is another one, with its own latencies, and the times are modelled and not measured; the shape is the
paper's: nothing to win with few neighbours, more with every further one.
"""


def page(reports):
    return (INTRODUCTION + hierarchies(reports) + random_matrices(reports) + simulated_scaling(reports) +
            fujii_marques(reports))
