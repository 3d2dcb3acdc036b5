"""Results written by hand, and a reader of pages, for the tests of leaderboards."""

import dataclasses
import itertools
from html.parser import HTMLParser

from orbits.runs import page
from orbits.runs.result import Case, Metric, Result
from symreg import leaderboard
from symreg.leaderboard import sections

NUMBER = itertools.count()
FORMULA = "39.5*m1*m2/r**2"


def result(kind, model="gpt", metrics=None, details=None, arm="pretrained", labels=300, seed=0,
           law="newton", protocol="fixed", status="ok", error=None, **setting):  # fmt: skip
    case = Case("newton", kind, model, arm, seed, law, protocol, {"labels": labels, **setting})
    measured = {name: Metric.of(x) for name, x in (metrics or {}).items() if x is not None}
    cell = f"{next(NUMBER):016x}"
    return Result(case, status, error, measured, details or {}, cell=cell, cpu_s=2.0)


def forces(model="gpt", r=-2.0, width=0.1, alike=(), metrics=(), details=(), **more):
    bins = {"centre": [1.0, 2.0], "median": [0.0, 0.1], "low": [-0.1, 0.0], "high": [0.1, 0.2]}
    measured = {
        "r2_log": 0.99,
        "dropped": 0.02,
        "exponent_r": (r, r - width, r + width),
        "exponent_m1": (0.5, 0.4, 0.6),
        "exponent_m2": (1.0, 0.9, 1.1),
        "constant": (39.0, 38.0, 40.0),
        "law_exponent_r": -2.0,
        "law_exponent_m1": 1.0,
        "law_exponent_m2": 1.0,
    }
    said = {"residuals": {"r": bins, "m1": bins, "m2": bins}, "alike": list(alike)}
    return result("forces", model, measured | dict(metrics), said | dict(details), **more)


def search(verdict="law", model="gpt", r2_log=0.99, symbolic="no", metrics=(), details=(), **more):
    is_law = verdict == "law"
    measured = {"constant": 39.5 if is_law else None, "r2_log": r2_log, "complexity": 9}
    front = [
        {"complexity": 1, "loss": 1.0, "expression": "1"},
        {"complexity": 9, "loss": 0.0, "expression": FORMULA},
    ]
    said = {
        "verdict": verdict,
        "shape": "C*m1*m2/r**2" if is_law else "C*r",
        "law_nooff": verdict in ("law", "law up to an offset"),
        "symbolic": symbolic,
        "expression": FORMULA,
        "front": front,
    }
    named = {"engine": "operon@0.6.2", "search": 0, **more}
    return result("search", model, measured | dict(metrics), said | dict(details), **named)


def failed(of, error="ValueError: no such orbit"):
    return dataclasses.replace(of, status="failed", error=error, metrics={}, details={})


def table(results, law="newton"):
    return leaderboard.rows(results, law)


def views(results, tmp_path, drawn=False):
    """Return the report as a terminal shows it, in Markdown and as a page."""
    report, failures = sections.report(results, drawn=drawn), page.failures(results)
    path = page.write(report, results, {"config": {}}, tmp_path)
    return report.to_text(failures), report.to_markdown(failures), path.read_text()


class Page(HTMLParser):
    """What a browser would see: tags with their attributes, and the text of every table cell."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.tables, self.scripts = [], [], []
        self.cell = self.script = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.script = tag == "script"
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = True
            self.tables[-1][-1].append("")

    def handle_data(self, data):
        if self.script:
            self.scripts.append(data)
        elif self.cell:
            self.tables[-1][-1][-1] += data

    def handle_endtag(self, tag):
        self.script = False
        if tag in ("td", "th"):
            self.cell = False
