"""Writes AMG_BICGSTAB.md: the exchanges of a preconditioned BiCGSTAB iteration at scale, beside those of a paper."""
import common

# Of table 2 of the paper, 3,072 cores: seconds of all iterations with axis communication and without, iterations; and of
# table 3: most neighbours on levels and between them.
PAPER = {"poisson3d": ((3.4, 18.5), 12, (136, 3007)), "groundwater3d": ((1.1, 4.2), 20, (364, 1485))}
# How often a cycle exchanges along each operator of a level that is not the coarsest. Chebyshev of degree 2 multiplies
# once from a zero guess and twice afterwards; the residual is one more.
IN_A_CYCLE = {"A": 4, "P": 1, "R": 1, "G": 1, "S": 1}
CYCLES, PRODUCTS = 2, 2  # of an iteration of BiCGSTAB

HEAD = """# AMG-BiCGSTAB at scale

Made by `perf/reproduce_papers.py`; raw results in `perf/results/simulated`. The problems are those of A. Fujii, O. Marques,
*Axis communication method for algebraic multigrid solver*: Poisson, and ground-water flow with conductivities from 1e-5 to
1e5, on 200^3 points, at the end 300^3. All ranks are simulated, 16 on a node: messages are counted exactly, and times are
modelled with the parameters of Blue Waters, or simulated by SimGrid on a torus. They are those of exchanges alone.
Hierarchies are MueLu's; for the second problem weak connections are dropped (`hierarchies/groundwater.xml`), which on 50^3
points takes 18 iterations, the paper's solver 17 to 20. Rows are dealt out in boxes. An iteration has
two products and two V-cycles; a cycle exchanges along A four times on each level but the coarsest (Chebyshev of degree 2
before and after, and the residual), along P and R once, and gathers and scatters once for the coarse solve. Up to 64 nodes
one rank of each node solves the coarsest level, on more nodes one rank.

"Best axis" takes the fastest of the standard route and axis topologies on each halo, as the paper does; "best route" also
three-step, two-step and split.

{table}
## Beside the paper

{beside}
The paper's times are measured on an FX10, and contain the work; ours are exchanges alone, on a machine with other latencies.
In the paper's first problem up to 3,007 processes send to the one that solves the coarsest level; MueLu's coarsest level has
fewer rows than that, so fewer ranks send.

## Set-up

The paper tries every topology on every halo in set-up, which took it 0.1 to 0.5 s. Komvos plans only what the model lets
win, while the solve goes on. Set-up plans the standard route, in two reductions for all halos of the hierarchy, and another
one only where a large gain is predicted.
{set_up}[SET_UP.md](SET_UP.md) counts and times what planning takes with MPI.

## Level by level, {ranks:,} ranks

Milliseconds of one exchange, standard and the best axis topology, and the best route; neighbours of the busiest rank.
{levels}"""


def route_time(operator, chosen, key):
    times = [key(route) for route in operator["routes"] if chosen(route["route"])]
    return min((time for time in times if time is not None), default=0)  # SimGrid has nothing to do without a message


def is_standard(name):
    return name == "standard"


def is_axis(name):
    return name == "standard" or name.startswith("axis")


def is_any(_):
    return True


def modelled(route):
    return route["modelled_seconds"]


def on_torus(route):
    return route.get("simulated_seconds", {}).get("torus")


def times_of(operator, coarsest):
    """How often an iteration exchanges along it."""
    level, name = operator["level"], operator["operator"]
    if name == "A":
        return (CYCLES * IN_A_CYCLE[name] if level < coarsest else 0) + (PRODUCTS if level == 0 else 0)
    return CYCLES * IN_A_CYCLE[name]


def iteration(report, chosen, key):
    """Seconds of the exchanges of one iteration."""
    coarsest = max(operator["level"] for operator in report["operators"])
    return sum(times_of(operator, coarsest) * route_time(operator, chosen, key) for operator in report["operators"]
               if times_of(operator, coarsest) > 0)


def most_neighbours(operator):
    """That a rank sends to or receives from by the standard route, whichever are more."""
    standard = operator["routes"][0]
    return max(standard["neighbours_max"], standard["sources_max"])


def neighbours(report, names):
    return max(most_neighbours(operator) for operator in report["operators"] if operator["operator"] in names)


def is_simulated(report):
    return any(on_torus(route) is not None for route in report["operators"][0]["routes"])


def rows_of(reports):
    for report in reports:
        kinds = [("model", modelled)] + ([("SimGrid, torus", on_torus)] if is_simulated(report) else [])
        for how, key in kinds:
            standard, axis, best = (iteration(report, chosen, key) for chosen in (is_standard, is_axis, is_any))
            yield [report["problem"], f"{report['ranks']:,}",
                   str(1 + max(operator["level"] for operator in report["operators"])),
                   f"{neighbours(report, 'A')}/{neighbours(report, 'PRGS')}", how, f"{1e3 * standard:.2f}",
                   f"{1e3 * axis:.2f}", f"{1e3 * best:.2f}", f"{standard / axis:.1f}", f"{standard / best:.1f}"]


def beside_the_paper(reports):
    for report in reports:
        name = report["problem"].split()[0]
        if report["ranks"] == 3072:
            (with_axis, without), iterations, (on_levels, between) = PAPER[name]
            standard, axis = (iteration(report, chosen, modelled) for chosen in (is_standard, is_axis))
            yield [name, f"{on_levels}/{between}", f"{neighbours(report, 'A')}/{neighbours(report, 'PRGS')}",
                   f"{1e3 * without / iterations:.0f}", f"{1e3 * with_axis / iterations:.0f}",
                   f"{without / with_axis:.1f}", f"{1e3 * standard:.2f}", f"{1e3 * axis:.2f}",
                   f"{standard / axis:.1f}"]


SET_UP = """
What planning one route for all halos of an iteration sends, counted and modelled with all ranks simulated (`komvos analyze
--set-up`): messages of the rank that is busiest on each halo, summed over halos, and of all ranks; agreements are reductions
and barriers, which are not in the time, counted as if each halo were planned by itself. "best" plans on each halo the route that is fastest by the model. It is paid back
after so many iterations, by the model.

{table}
"""


def family(name):
    return "axis" if name.startswith("axis") else name


def planned(report):
    """By what is planned on all halos: the routes that are, one for each operator."""
    used = [operator for operator in report["operators"]
            if times_of(operator, max(one["level"] for one in report["operators"])) > 0]
    for name in dict.fromkeys(family(route["route"]) for route in used[0]["routes"]):
        # Of several grids of ranks, the fastest.
        yield name, [min((route for route in operator["routes"] if family(route["route"]) == name), key=modelled)
                     for operator in used]
    yield "best", [min(operator["routes"], key=modelled) for operator in used]


def set_up(reports):
    rows = []
    for report in reports:
        if "set_up" not in report["operators"][0]["routes"][0]:
            continue
        coarsest = max(operator["level"] for operator in report["operators"])
        used = [operator for operator in report["operators"] if times_of(operator, coarsest) > 0]
        standard = iteration(report, is_standard, modelled)
        for name, routes in planned(report):
            counts = [route["set_up"] for route in routes]
            time = sum(times_of(operator, coarsest) * modelled(route) for operator, route in zip(used, routes))
            seconds = sum(one["modelled_seconds"] for one in counts)
            pays = f"{seconds / (standard - time):.1f}" if seconds > 0 and time < standard else "-"
            rows.append([f"{report['problem']}, {report['ranks']:,} ranks", name, str(len(routes)),
                         *(f"{sum(one[what] for one in counts):,}" for what in ("agreements", "messages_max", "messages")),
                         f"{1e3 * seconds:.2f}", f"{1e3 * time:.2f}", pays])
    if not rows:
        return ""
    head = ["problem", "planned", "halos", "agreements", "messages of a rank", "messages", "set-up, ms",
            "exchanges of an iteration, ms", "paid back after"]
    return SET_UP.format(table=common.markdown_table(head, rows, ["---", "---", *["--:"] * 7]))


def levels(report):
    rows = []
    for operator in report["operators"]:
        fastest = min(operator["routes"], key=modelled)
        rows.append([f"{operator['level']} {operator['operator']}", f"{operator['rows']:,}",
                     str(most_neighbours(operator)),
                     *(f"{1e3 * route_time(operator, chosen, modelled):.3f}" for chosen in (is_standard, is_axis)),
                     f"{1e3 * fastest['modelled_seconds']:.3f}", fastest["route"]])
    head = ["operator", "rows", "neighbours", "standard", "best axis", "best", "route"]
    return f"\n{report['problem']}:\n\n" + common.markdown_table(head, rows, ["---", *["--:"] * 5, "---"])


def page(reports):
    table = common.markdown_table(
        ["problem", "ranks", "levels", "neighbours on levels/between", "time", "standard, ms", "best axis", "best route",
         "gain by axis", "gain"], rows_of(reports), ["---", *["--:"] * 3, "---", *["--:"] * 5])
    beside = common.markdown_table(
        ["problem, 3,072 ranks", "neighbours: paper", "ours", "paper, ms an iteration without axis", "with", "gain",
         "our exchanges without, ms", "with", "gain"], beside_the_paper(reports), ["---", *["--:"] * 8])
    most = max(report["ranks"] for report in reports)
    return HEAD.format(table=table, beside=beside, ranks=most, set_up=set_up(reports),
                       levels="".join(levels(report) for report in reports if report["ranks"] == most))
