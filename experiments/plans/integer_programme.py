#!/usr/bin/python3
"""Solves the plan of a spec or graph file within a budget as an integer programme, and says what that proves.

    experiments/plans/integer_programme.py 60% SPEC.yaml [KEY=VALUE...]
    experiments/plans/integer_programme.py 6GB --graph FILE.yaml

The formulation is that of Jain et al., "Checkmate: breaking the memory wall with optimal tensor rematerialization", 2020, over
the events of a step as `rematch plan --ops --json` lists them: which values and saved tensors are kept after each event, and
which nodes are recomputed before it. Without rows for each recomputation, its least time bounds that of every schedule. With
them ("ordered") it has the schedules that recompute a node at most once between two events, in the order of the nodes. The
solver is HiGHS (PyPI: highspy) or, where that is not installed, the program cbc (Debian: coinor-cbc). What it finds is written
as a schedule, planned and judged by Rematch; its proof is as good as the solver. Networks of some 25 nodes are settled within a
minute, larger ones bracketed. Relus keep what the network has them keep; the batch is undivided.
"""
import math
import os
import shutil
import subprocess
import sys
import tempfile

from chain import ask, written

FLOOR = 1e5  # the step's least time, in units of the objective
NOISE = 1e-9
TRIES = 4    # where a schedule's placement takes more than its live peak, one for fewer bytes is searched


def solver():
    """"highs", "cbc" or None."""
    try:
        import highspy  # noqa: F401
        return "highs"
    except ImportError:
        return "cbc" if shutil.which("cbc") else None


class Programme:
    """The programme of a step for limit live bytes; .fits: False where an event alone takes more."""

    def __init__(self, step, limit, ordered):
        self.nodes, self.events, self.floor = step["nodes"], step["events"], step["floor"]
        self.limit, self.rows, self.columns = limit, [], 0
        self.unit = max([1] + [node["value_bytes"] for node in self.nodes])
        self.bytes = [size for node in self.nodes for size in (node["value_bytes"], node["saved_bytes"])]
        self.number_columns()
        self.binaries, self.fits = self.columns, True
        for event in range(len(self.events)):
            self.add_needs(event)
            self.fits &= self.add_bytes(event)
            if ordered:
                self.add_order(event)

    def reads(self, event, thing):
        """A thing is a node's value (2 * node) or its saved tensors (2 * node + 1)."""
        return thing // 2 in self.events[event]["reads_saved" if thing % 2 else "reads"] and bool(self.bytes[thing])

    def column(self):
        self.columns += 1
        return self.columns - 1

    def number_columns(self):
        count = len(self.nodes)
        last = [max((e for e in range(len(self.events)) if self.reads(e, thing)), default=0) for thing in range(2 * count)]
        for n in reversed(range(count)):  # what is made of an input is read at least as late
            for x in self.nodes[n]["inputs"]:
                last[2 * x] = max(last[2 * x], last[2 * n], last[2 * n + 1])
        self.keeps, self.makes = {}, {}
        for e in range(len(self.events)):
            for n in range(min(count, e)):
                for thing in (2 * n, 2 * n + 1):
                    if last[thing] and e <= last[thing]:
                        self.keeps[e, thing] = self.column()
                if e <= max(last[2 * n], last[2 * n + 1]):
                    self.makes[e, n] = self.column()

    def row(self, terms, relation, value):
        terms = [(factor, column) for factor, column in terms if column is not None]
        if terms:
            self.rows.append((terms, relation, value))

    def add_needs(self, e):
        """What the event reads is there, and so are the inputs of what is recomputed before it."""
        for n, node in enumerate(self.nodes):
            make = self.makes.get((e, n))
            for x in node["inputs"] if make is not None else ():
                self.row([(1, self.keeps.get((e, 2 * x))), (1, self.makes.get((e, x))), (-1, make)], ">=", 0)
            for thing in (2 * n, 2 * n + 1):
                read, later = self.reads(e, thing), self.keeps.get((e + 1, thing))
                if read or (e != n and later is not None):
                    self.row([(1, self.keeps.get((e, thing))), (1, make), (-1, None if read else later)], ">=", int(read))

    def add_bytes(self, e):
        """The bytes that are live while the event runs."""
        event = self.events[e]
        forward = event["kind"] == "forward"
        over = 2 * self.nodes[event["node"]]["inputs"][0] if forward and self.nodes[event["node"]]["over"] else None
        has = {thing for thing in range(len(self.bytes)) if thing != over and
               (self.reads(e, thing) or (forward and thing == 2 * event["node"]))}
        live = event["during_bytes"] + sum(self.bytes[thing] for thing in has)
        unsaved = self.nodes[event["node"]]["unsaved_bytes"] if forward else 0
        if unsaved:  # its saved tensors are written whether they are kept or not
            has.add(2 * event["node"] + 1)
            live += unsaved
        kept = [(self.bytes[thing] / self.unit, self.keeps.get((e + 1, thing)), thing) for thing in range(len(self.bytes))
                if self.bytes[thing] and (e + 1, thing) in self.keeps]
        for beside, room in (([term for term in kept if term[2] not in has], self.limit - live),
                             (kept, self.limit - event["after_bytes"])):
            if room < 0:
                return False
            step = math.gcd(*(self.bytes[thing] for _, _, thing in beside)) or 1
            self.row([(factor, column) for factor, column, _ in beside], "<=", room // step * step / self.unit)
        return True

    def drop(self, e, n, thing):
        """A column for dropping the thing once node n is recomputed before the event: nothing else reads it from there on."""
        if self.reads(e, thing) or not self.bytes[thing]:
            return None
        column = self.column()
        self.row([(1, column), (-1, self.makes[e, n])], "<=", 0)
        if (e + 1, thing) in self.keeps:
            self.row([(1, column), (1, self.keeps[e + 1, thing])], "<=", 1)
        for reader in range(n + 1, len(self.nodes)) if thing % 2 == 0 else ():
            if thing // 2 in self.nodes[reader]["inputs"] and (e, reader) in self.makes:
                self.row([(1, column), (1, self.makes[e, reader])], "<=", 1)
        return column

    def add_order(self, e):
        """The bytes that are live at each recomputation before the event, a column being those that are held after it."""
        held = None
        for n, node in enumerate(self.nodes):
            if (e, n) not in self.makes:
                continue
            inputs = list(dict.fromkeys(node["inputs"]))
            drops = [(thing, self.drop(e, n, thing)) for thing in [*(2 * x for x in inputs), 2 * n, 2 * n + 1]]
            first = [(1, held)] if held is not None else [(self.bytes[thing] / self.unit, self.keeps.get((e, thing)))
                                                          for thing in range(len(self.bytes))]
            made = self.bytes[2 * n] + self.bytes[2 * n + 1]
            over = 2 * inputs[0] if node["over"] and inputs else None
            peak = first + [((made + node["scratch_bytes"]) / self.unit, self.makes[e, n])]
            freed = {over: self.bytes[over]} if over is not None else {}
            freed[2 * n + 1] = self.bytes[2 * n + 1] - node["unsaved_bytes"]
            peak += [(-freed[thing] / self.unit, drop) for thing, drop in drops if freed.get(thing)]
            self.row(peak, "<=", (self.limit - self.events[e]["before_bytes"]) / self.unit)
            after = first + [(made / self.unit, self.makes[e, n])]
            after += [(-self.bytes[thing] / self.unit, drop) for thing, drop in drops]
            held = self.column()
            self.row(after + [(-1, held)], "=", 0)

    def write(self, path):
        def line(terms):
            return "".join(f" {factor:+.12g} x{column}\n" for factor, column in terms)
        with open(path, "w") as out:
            out.write("Minimize\nobj: 0 x0\n")
            out.write(line((self.nodes[n]["time"] / self.floor * FLOOR, column) for (_, n), column in self.makes.items()))
            out.write("Subject To\n")
            for i, (terms, relation, value) in enumerate(self.rows):
                out.write(f"r{i}:\n{line(terms)} {relation} {value:.12g}\n")
            out.write("Binaries\n" + "".join(f"x{i}\n" for i in range(self.binaries)) + "End\n")

    def schedule(self, ones):
        """The schedule of a solution, the set of columns that are 1."""
        steps = []
        for e, event in enumerate(self.events):
            steps += [f"F[{n},{n + 1})" for n in range(len(self.nodes)) if self.makes.get((e, n)) in ones]
            kind = {"forward": "F", "half": "P", "backward": "B"}[event["kind"]]
            steps.append(f"{kind}[{event['node']},{event['node'] + 1})")
        return " ".join(steps)


def run_highs(path, seconds):
    import highspy
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("time_limit", float(seconds))
    model.setOptionValue("mip_rel_gap", 0.0)
    model.readModel(path)
    model.run()
    status, info = model.getModelStatus(), model.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return math.inf, True, None
    names = [model.getColName(i)[1] for i in range(model.getNumCol())]
    values = model.getSolution().col_value
    found = info.primal_solution_status == 2
    ones = {int(name[1:]) for name, value in zip(names, values) if value > 0.5} if found else None
    return info.mip_dual_bound, status == highspy.HighsModelStatus.kOptimal, ones


def run_cbc(path, seconds):
    solution = path + ".txt"
    done = subprocess.run(["cbc", path, "sec", str(seconds), "ratio", "0", "solve", "solu", solution], stdout=subprocess.PIPE,
                          text=True)
    lines = open(solution).read().splitlines() if os.path.exists(solution) else [""]
    if "nfeasible" in lines[0]:
        return math.inf, True, None
    bound = [float(line.split(":")[1]) for line in done.stdout.splitlines() if line.startswith("Lower bound:")]
    value = [float(line.split(":")[1]) for line in done.stdout.splitlines() if line.startswith("Objective value:")]
    optimal = lines[0].startswith("Optimal")
    ones = {int(words[1][1:]) for words in map(str.split, lines[1:]) if len(words) > 2 and float(words[2]) > 0.5}
    return (value if optimal and value else bound or [0.0])[0], optimal, ones if len(lines) > 1 else None


def run(programme, seconds):
    """The bound of the objective, whether it is settled, and the columns that are 1 (None: no solution was found)."""
    if not programme.fits:
        return math.inf, True, None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.lp")
        programme.write(path)
        return (run_highs if solver() == "highs" else run_cbc)(path, seconds)


def solve(budget, *arguments, seconds=60):
    """The best plan found within a budget and a dict of what is proven: bound, a slowdown that no schedule is below (infinite: no
    schedule keeps the budget), and settled. The plan is None where none was found."""
    stored = ask(*arguments, "policy=store_all", "--ops")
    step, spare = stored["step"], stored["static_bytes"]
    share = budget.endswith("%")
    limit = int(stored["live_peak_bytes"] * float(budget[:-1]) / 100) if share else int(budget.removesuffix("B")) - spare
    proven, best = {"bound": 1.0, "settled": False}, None
    least = limit
    for attempt in range(1 + TRIES):
        bound, settled, ones = run(programme := Programme(step, least, attempt > 0), seconds)
        if attempt == 0:
            proven = {"bound": 1 + max(bound, 0) / FLOOR, "settled": settled}
            if math.isinf(bound):
                return None, proven
        if ones is None:
            continue
        with written(programme.schedule(ones) + "\n", ".schedule") as path:
            plan = ask(*arguments, f"policy={{name: manual, schedule: {path}}}", "--alone")
        if plan["arena_bytes"] <= limit:
            best = plan
            break
        least -= plan["arena_bytes"] - limit if attempt else 0
    return best, proven


def text(best, proven):
    found = f"x{best['slowdown']:.4f}" if best else "no schedule"
    if math.isinf(proven["bound"]):
        return "no schedule keeps the budget"
    if best and best["slowdown"] <= proven["bound"] * (1 + NOISE):
        return f"{found}, proven the fastest of any class"
    return f"{found}; no schedule of any class has a slowdown below {proven['bound']:.4f}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if not solver():
        print("skipped: neither highspy (PyPI) nor cbc (Debian's coinor-cbc) is installed")
        return 77
    best, proven = solve(sys.argv[1], *sys.argv[2:])
    print(text(best, proven))
    return 0 if best else 1


if __name__ == "__main__":
    sys.exit(main())
