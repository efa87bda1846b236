"""docs/performance.md, docs/evidence/performance.md, their figures and a table for users of R.

All from what was measured: the first is a summary, the second has all of it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks._models import example
from benchmarks.parts import PARTS

markdown, save = example("_markdown"), example("_figures").save

DOCS = Path(__file__).parents[1] / "docs"
TEMPLATE = Path(__file__).parent / "page.md"
SUMMARY = Path(__file__).parent / "summary.md"
BEFORE = Path(__file__).parent / "first_draws_before.json"
"""First draws of an earlier commit, measured once."""
TITLES = {
    "randomised_response": "example 1, randomised response",
    "admissions": "example 2, table of counts",
    "regression": "example 3, regression",
    "poisson": "Poisson counts",
    "logistic_regression": "logistic regression",
    "covariance": "covariance, LKJ prior",
    "ordered_logit": "ordered logit",
    "group_means": "group means",
    "latent_classes": "latent classes",
}
EXAMPLES, USERS = list(TITLES)[:3], list(TITLES)[5:]
WAYS = {
    "pymc_dapper": "#1b5fa6",
    "by hand": "#595959",
    "PyMC's defaults": "#c1500a",
    "nutpie, centred": "#3a8a4d",
    "nutpie, non-centred": "#8cc49a",
    "R's dapper": "#a0569a",
}
R_EARLIER = {
    "randomised_response": 1.1,
    "admissions": 4.3,
    "admissions_plain": 77,
    "regression": 0.9,
}
"""R's dapper if it wasn't run: effective draws a second, measured earlier on such a machine."""

PLAIN = "admissions_plain"
"""The script of R's example 2 that writes the noise's density out."""

R_NOTE = "R's dapper: measured earlier on this kind of machine, not in this run"


class Results:
    """Measurements, looked up by what was asked for."""

    def __init__(self, found):
        self.found = found

    def all(self, task, **wanted):
        """Pairs of job and result that weren't skipped."""
        return [
            (entry["job"], entry["result"])
            for entry in self.found["measurements"]
            if entry["job"]["task"] == task
            and all(entry["job"].get(key) == value for key, value in wanted.items())
            and "skipped" not in entry["result"]
        ]

    def one(self, task, **wanted):
        """The first that fits; None if there is none."""
        fitting = self.all(task, **wanted)
        return fitting[0][1] if fitting else None

    def rate(self, workload, n, way):
        """Effective draws a second; None if not measured."""
        result = self.one("sampling", workload=workload, n=n, way=way)
        return None if result is None else result["ess_per_second"]

    def of_r(self, script):
        """Effective draws a second of R's dapper, and whether they come from this run."""
        result = self.one("sampling", script=script)
        return (R_EARLIER[script], False) if result is None else (result["ess_per_second"], True)

    def sizes(self, workload):
        """Numbers of records that were sampled; None where the data say it."""
        return [job["n"] for job, _ in self.all("sampling", workload=workload, way="pymc_dapper")]


# Tables -------------------------------------------------------------------------------------------


def table(header, rows, words=1):
    """A Markdown table; the first columns hold words, the others numbers."""
    lines = [header, ["---"] * words + ["---:"] * (len(header) - words), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def number(x, digits=2):
    """With so many significant digits, without powers of ten."""
    if x is None:
        return ""
    if x == 0:
        return "0"
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(x)))))
    rounded = round(x, digits - 1 - int(np.floor(np.log10(abs(x)))))
    return f"{rounded:,.{decimals}f}"


def label(workload, n):
    return TITLES[workload] + ("" if n is None else f", n = {n:,}")


def way_of(job):
    return job.get("way", job["task"]) + (
        ", plain density" if "plain" in job.get("script", "") else ""
    )


def sweeps(results):
    rows = []
    for job, result in results.all("sweep"):
        n = job["n"] or 400 if job["workload"] == "randomised_response" else job["n"] or 1_000
        ours, by_hand = result["ours"], result["by hand"]
        rows.append(
            [
                label(job["workload"], n),
                number(1e6 * ours, 3),
                number(1e6 * by_hand, 3),
                number(1e9 * ours / n, 3),
                number(ours / by_hand),
            ]
        )
    header = ["sweep", "DapperStep, us", "by hand, us", "DapperStep, ns per record", "ratio"]
    return table(header, rows)


def separable(results):
    rows = [
        [
            f"{name}, n = {row['n']:,}",
            number(1e6 * row["ours"], 3),
            number(1e6 * row["by NumPy"], 3),
            number(row["ours"] / row["by NumPy"]),
        ]
        for name, row in (results.one("separable") or {}).items()
    ]
    return table(["records of", "DapperStep, us", "NumPy, us", "ratio"], rows)


def overheads(results):
    rows = [[k, number(1e6 * v, 3)] for k, v in (results.one("overhead") or {}).items()]
    return table(["step", "us"], rows)


def protocols(results):
    rows = []
    for job, result in results.all("protocol"):
        parts = [result[key] for key in ("by hand", "pm.sample", "pmd.sample")]
        ratio = parts[2] / (parts[0] + parts[1])
        shown = [number(1e6 * x, 3) for x in parts]
        rows.append([label(job["workload"], job.get("n")), *shown, number(ratio)])
    header = ["us per draw", "loop by hand", "`pm.sample`, idle steps", "`pmd.sample`", "ratio"]
    return table(header, rows)


def samplings(results):
    rows = []
    for job, result in results.all("sampling"):
        moves = result.get("moves")
        rows.append(
            [
                label(job["workload"], job.get("n")),
                way_of(job),
                f"{result['draws']:,}",
                number(1e6 * result["seconds_per_draw"], 3),
                number(result["ess"] / result["draws"]),
                number(result["ess_per_second"]),
                "" if moves is None else moves,
                number(result.get("peak_memory"), 3),
            ]
        )
    header = ["", "way", "draws", "us per draw", "effective draws per draw"]
    header += ["effective draws per second", "interweaving moves", "memory, MB"]
    return table(header, rows, words=2)


def skipped(results):
    """Why what isn't in the tables isn't."""
    notes = {}
    for entry in results.found["measurements"]:
        if "skipped" in entry["result"]:
            job = entry["job"]
            what = f"{way_of(job)} ({label(job['workload'], job.get('n'))})"
            notes.setdefault(entry["result"]["skipped"], []).append(what)
    return "".join(f"- Not run, because {why}: {', '.join(what)}.\n" for why, what in notes.items())


CACHES = {
    "cold": "empty cache",
    "of others": "a new model, after the others",
    "warm": "the same model again",
}
"""What is in the cache before a first draw, and how the page calls that."""

OURS, PYMC = "pymc_dapper", "PyMC's defaults"


def first_draw(results, workload, caches, way=OURS):
    """What was measured of a model; None if it wasn't."""
    return results.one("first_draw", workload=workload, way=way, caches=caches)


def first_draws(results):
    """Seconds by the clock, beside PyMC alone."""
    columns = [(caches, way) for caches in CACHES for way in (OURS, PYMC)]
    rows = []
    for workload in TITLES:
        found = [first_draw(results, workload, *column) for column in columns]
        if any(found):
            cells = ["" if x is None else number(x["seconds"]) for x in found]
            rows.append([TITLES[workload], *cells])
    ways = {OURS: "`pmd.sample`", PYMC: "PyMC alone"}
    header = ["seconds", *(f"{CACHES[caches]}, {ways[way]}" for caches, way in columns)]
    return table(header, rows)


def first_draws_since(before, results):
    """CPU seconds, and functions that numba compiles, before and now."""
    rows = []
    for workload in TITLES:
        cells = []
        for key, caches in (*(("cpu_seconds", x) for x in CACHES), ("compilations", "cold")):
            for found in (before, results):
                result = first_draw(found, workload, caches)
                cells.append("" if result is None else number(float(result[key])))
        if any(cells):
            rows.append([TITLES[workload], *cells])
    columns = [*CACHES.values(), "numba's compilations, empty cache"]
    header = [f"{column}, {when}" for column in columns for when in ("before", "now")]
    return table(["CPU seconds of `pmd.sample`", *header], rows)


def busy(results):
    """How much of the time to first draws the processor worked on them, in percent."""
    timed = [result for _, result in results.all("first_draw")]
    shares = [result["cpu_seconds"] / result["seconds"] for result in timed]
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f}"


def median(results, what, **wanted):
    """The middle of all first draws of models that are run again; None if there are none."""
    timed = [result for _, result in results.all("first_draw", caches="warm", **wanted)]
    values = [result[what] for result in timed if what in result]
    return float(np.median(values)) if values else None


def where_time_goes(results):
    """CPU seconds to the first draw by what they go to: the median over the models."""
    rows = []
    for part in PARTS:
        cells = []
        for caches in CACHES:
            found = [first_draw(results, workload, caches) for workload in TITLES]
            seconds = [x["parts"].get(part, 0.0) for x in found if x and "parts" in x]
            cells.append(number(float(np.median(seconds))) if seconds else "")
        if any(cells):
            rows.append([part, *cells])
    return table(["CPU seconds, median of the models", *CACHES.values()], rows)


def earlier():
    """First draws of an earlier commit, and which."""
    found = json.loads(BEFORE.read_text(encoding="utf-8"))
    return Results(found), found["commit"]


def memory(results):
    tables = ""
    for job, result in results.all("memory"):
        rows = [[phase, number(copies)] for phase, copies in result["copies"].items()]
        header = [label(job["workload"], job["n"]), "copies of the records"]
        tables += table(header, rows) + "\n"
    return tables.rstrip("\n") + "\n"


def beside_r(results):
    """Effective draws per second beside R's dapper, for docs/tutorials/from-dapper.md."""
    rows = []
    for workload, script in [(name, name) for name in EXAMPLES] + [("admissions", PLAIN)]:
        [n, *_] = results.sizes(workload)
        theirs, _ = results.of_r(script)
        ours = results.rate(workload, n, "pymc_dapper")
        what = TITLES[workload] + (", its density written out" if script == PLAIN else "")
        rows.append([what, *(number(x) for x in (theirs, ours, ours / theirs))])
    rows.sort(key=lambda row: row[0])
    return table(["", "R's dapper", "`pmd.sample`", "ratio"], rows)


def plain_density(results):
    """How many times as fast as R's dapper with a plain density example 2 is, here and at most."""
    [n, *_] = results.sizes("admissions")
    theirs, _ = results.of_r(PLAIN)
    return [number(results.rate("admissions", n, way) / theirs) for way in list(WAYS)[:2]]


# Targets ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """One line of the table: reached if the value is on the right side of the limit."""

    what: str
    value: float
    limit: float
    at_least: bool = False
    unit: str = ""

    @property
    def reached(self):
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def row(self):
        sign = "at least" if self.at_least else "at most"
        limit, value = f"{sign} {self.limit:,g} {self.unit}", f"{number(self.value)} {self.unit}"
        return [self.what, limit.strip(), value.strip(), "yes" if self.reached else "**no**"]


def targets(results):
    """All that could be measured."""
    return [
        *_against_peers(results),
        *_of_sweeps(results),
        *_of_steps(results),
        *_of_first_draws(results),
    ]


def _against_peers(results):
    for workload in EXAMPLES:
        for n in results.sizes(workload)[:1]:
            theirs, now = results.of_r(workload)
            note = "" if now else " (1)"
            what = f"effective draws per second, {TITLES[workload]}: times R's dapper{note}"
            ratio = results.rate(workload, n, "pymc_dapper") / theirs
            yield Target(what, ratio, 1000, at_least=True)
    for workload in TITLES:
        for n in results.sizes(workload):
            peers = {way: results.rate(workload, n, way) for way in list(WAYS)[2:5]}
            peers = {way: rate for way, rate in peers.items() if rate is not None}
            if peers:
                best = max(peers, key=peers.get)
                ratio = results.rate(workload, n, "pymc_dapper") / peers[best]
                what = f"effective draws per second, {label(workload, n)}: times the best other"
                yield Target(f"{what} in Python ({best})", ratio, 2, at_least=True)


def _of_sweeps(results):
    found = {job["n"]: result for job, result in results.all("sweep", workload="admissions")}
    for n in (min(found), max(found)):
        ratio = found[n]["ours"] / found[n]["by hand"]
        yield Target(f"sweep of example 2, n = {n:,}: times the loop by hand", ratio, 1.5)
    largest = max(found)
    large = [n for n in found if n >= 10_000] or list(found)
    times = [found[n]["ours"] for n in large]
    if len(large) > 1:
        slope = float(np.polyfit(np.log(large), np.log(times), 1)[0])
        yield Target("sweep of example 2: power of n that its time grows with", slope, 1.05)
    per_record = 1e9 * found[largest]["ours"] / largest
    yield Target(
        f"sweep of example 2, n = {largest:,}: time per record", per_record, 100, unit="ns"
    )
    for job, result in results.all("memory"):
        what = f"memory of {SWEEP}, {label(job['workload'], job['n'])}: copies of the records"
        yield Target(what, result["copies"][SWEEP], 4)
    for name, row in (results.one("separable") or {}).items():
        ratio = row["ours"] / row["by NumPy"]
        yield Target(f"separable factors, records of {name}: times one pass of NumPy", ratio, 1)


SWEEP = "a sweep of `DapperStep`"

TAKES_GENERATOR = ("`DapperStep`, Poisson record", "`CountStep`")
"""Steps whose draws come from a generator that crosses into compiled code, which takes time."""


def _of_steps(results):
    for step, seconds in (results.one("overhead") or {}).items():
        limit = 15 if step in TAKES_GENERATOR else 10
        yield Target(f"overhead of {step} per draw", 1e6 * seconds, limit, unit="us")


def _of_first_draws(results):
    for caches, others_limit, users_limit in (
        ("cold", 10, 15),
        ("of others", 5, 5),
        ("warm", 1, 1),
    ):
        for workload in TITLES:
            ours, pymc = (first_draw(results, workload, caches, way) for way in (OURS, PYMC))
            what = f"first draw, {CACHES[caches]}: {TITLES[workload]}"
            limit = users_limit if workload in USERS else others_limit
            if ours is not None:
                yield Target(what, ours["seconds"], limit, unit="s")
            if caches == "cold" and ours and pymc:
                yield Target(f"{what}, times PyMC alone", ours["seconds"] / pymc["seconds"], 1)
    seconds = median(results, "import_pymc_dapper")
    if seconds is not None:
        yield Target("import of `pymc_dapper`, after PyMC's", seconds, 0.3, unit="s")


# Figures ------------------------------------------------------------------------------------------


def draw_rates(results):
    """Bars of effective draws per second, by workload and way."""
    shown = [(w, n) for w in TITLES for n in results.sizes(w)[:1]]
    figure, axis = plt.subplots(figsize=(8, 6.5), layout="constrained")
    y, ticks, labels, named = 0.0, [], [], set()
    lowest, highest = np.inf, 0.0
    for workload, n in shown:
        rates = {way: results.rate(workload, n, way) for way in WAYS}
        measured_now = True
        if workload in R_EARLIER:
            rates["R's dapper"], measured_now = results.of_r(workload)
        rates = {way: rate for way, rate in rates.items() if rate is not None}
        ticks.append(y + (len(rates) - 1) / 2)
        labels.append(TITLES[workload].replace(", ", ",\n"))
        for way, rate in rates.items():
            name = None if way in named else way
            named.add(way)
            axis.barh(y, rate, color=WAYS[way], height=0.85, label=name)
            earlier = way == "R's dapper" and not measured_now
            text = number(rate) + (" (measured earlier)" if earlier else "")
            axis.annotate(text, (rate, y), (4, 0), textcoords="offset points", va="center")
            lowest, highest = min(lowest, rate), max(highest, rate)
            y += 1
        y += 1
    axis.set(xscale="log", xlabel="effective draws per second of the slowest parameter")
    axis.set_xlim(lowest / 3, highest * 5)
    axis.set_yticks(ticks, labels)
    axis.tick_params(axis="y", length=0)
    axis.invert_yaxis()
    axis.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def draw_sweeps(results):
    """Time per sweep against the number of records, ours and by hand."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
    for axis, workload in zip(axes, ("admissions", "regression"), strict=True):
        found = sorted(
            (job["n"], result) for job, result in results.all("sweep", workload=workload)
        )
        sizes = [n for n, _ in found]
        for key, way in (("ours", "pymc_dapper"), ("by hand", "by hand")):
            milliseconds = [1e3 * result[key] for _, result in found]
            name = "DapperStep" if key == "ours" else "loop by hand"
            axis.plot(sizes, milliseconds, "o-", color=WAYS[way], markersize=4, label=name)
        axis.set(xscale="log", yscale="log", xlabel="records", title=TITLES[workload])
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("ms per sweep")
    axes[0].legend(frameon=False)
    return figure


def draw_first_draws(results):
    """Seconds to the first draw with an empty cache, ours and PyMC's alone."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for way, name, shift in ((OURS, "pmd.sample", -0.2), (PYMC, "pm.sample alone", 0.2)):
        found = [first_draw(results, workload, "cold", way) for workload in TITLES]
        places = [place + shift for place, x in enumerate(found) if x]
        seconds = [x["seconds"] for x in found if x]
        bars = axis.barh(places, seconds, height=0.36, color=WAYS[way], label=name)
        axis.bar_label(bars, [number(x) for x in seconds], padding=3, fontsize=8)
    axis.set_yticks(range(len(TITLES)), TITLES.values())
    axis.set_xlabel("seconds from the call to the first draw, nothing compiled before")
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.legend(loc="lower right", frameon=False)
    return figure


# The page -----------------------------------------------------------------------------------------


def text(found):
    """The page with all that was measured."""
    results = Results(found)
    before, commit = earlier()
    versions = ", ".join(f"{name} {number_}" for name, number_ in found["versions"].items())
    rows = [target.row for target in targets(results)]
    ours_to_plain, floor_to_plain = plain_density(results)
    return TEMPLATE.read_text(encoding="utf-8").format(
        minutes=number(found["seconds"] / 60),
        cores=found["cores"],
        python=found["python"],
        versions=versions,
        targets=table(["", "target", "measured", "reached"], rows, words=4),
        note=R_NOTE,
        ours_to_plain=ours_to_plain,
        floor_to_plain=floor_to_plain,
        rates=samplings(results),
        skipped=skipped(results),
        sweeps=sweeps(results),
        separable=separable(results),
        overheads=overheads(results),
        protocols=protocols(results),
        memory=memory(results),
        first_draws=first_draws(results),
        first_draws_since=first_draws_since(before, results),
        before=commit,
        busy=busy(results),
        where_time_goes=where_time_goes(results),
        import_pymc=number(median(results, "import_pymc")),
        import_pymc_dapper=number(median(results, "import_pymc_dapper")),
        writing=number(median(results, "writing", way=OURS)),
    )


def summary(found):
    """The page for users: ten rows of measurements."""
    results = Results(found)
    rows = [*_rates_in_short(results), *_costs_in_short(results)]
    header = ["what", "`pmd.sample`", "best other sampler in Python", "R's dapper"]
    return SUMMARY.read_text(encoding="utf-8").format(summary=table(header, rows), note=R_NOTE)


def _rates_in_short(results):
    for workload in list(TITLES)[:5]:
        [n, *_] = results.sizes(workload) or [None]
        if results.rate(workload, n, OURS) is None:
            continue
        peers = {way: results.rate(workload, n, way) for way in list(WAYS)[2:5]}
        peers = {way: rate for way, rate in peers.items() if rate is not None}
        best = max(peers, key=peers.get, default=None)
        other = "" if best is None else f"{number(peers[best])} ({best})"
        of_r = number(results.of_r(workload)[0]) if workload in R_EARLIER else ""
        what = f"effective draws per second: {label(workload, n)}"
        yield [what, number(results.rate(workload, n, OURS)), other, of_r]


def _costs_in_short(results):
    found = {job["n"]: result for job, result in results.all("sweep", workload="admissions")}
    if found:
        n = max(found)
        per_record = number(1e9 * found[n]["ours"] / n)
        yield [f"ns per record of a sweep, {label('admissions', n)}", per_record, "", ""]
    for step, seconds in list((results.one("overhead") or {}).items())[:1]:
        yield [f"us per draw of {step}, however few the records", number(1e6 * seconds), "", ""]
    for caches, name in CACHES.items():
        cells = []
        for way in (OURS, PYMC):
            timed = [first_draw(results, workload, caches, way) for workload in TITLES]
            seconds = [x["seconds"] for x in timed if x]
            cells.append(number(float(np.median(seconds))) if seconds else "")
        if any(cells):
            yield [f"seconds to the first draw, {name}: median of nine models", *cells, ""]


def write(found):
    """Write the page and its figures."""
    results = Results(found)
    save(draw_rates(results), DOCS / "figures" / "performance_rates.png")
    save(draw_sweeps(results), DOCS / "figures" / "performance_sweeps.png")
    save(draw_first_draws(results), DOCS / "figures" / "performance_first_draws.png")
    (DOCS / "performance.md").write_text(summary(found), encoding="utf-8")
    (DOCS / "evidence" / "performance.md").write_text(text(found), encoding="utf-8")
    tables = {"effective draws per second": beside_r(results).rstrip("\n")}
    markdown.fill_file(DOCS / "tutorials" / "from-dapper.md", tables)
