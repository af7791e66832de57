"""One self-contained HTML page: verdict, findings, what was not checked, pictures."""

from __future__ import annotations

import json
from html import escape

from trainlint.runtime.findings import Finding
from trainlint.runtime.places import short_path
from trainlint.runtime.report.figures import Figure, all_figures, depth_colour
from trainlint.runtime.report.memory import batch_that_fits, memory_parts, size
from trainlint.runtime.report.result import Report

_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1d2129; --dim: #667; --card: #f5f6f8;
  --fail: #c62828; --warn: #b26a00; --note: #00697a; --good: #2e7d32; }
@media (prefers-color-scheme: dark) { :root { --back: #15181d; --text: #e4e6ea; --dim: #9aa;
  --card: #20242b; --fail: #ff7b72; --warn: #f0b34c; --note: #5cc8d8; --good: #6fce74; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; background: var(--back);
  color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: .2rem 0; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .4rem; }
.dim, figcaption { color: var(--dim); font-size: .9rem; }
.card { background: var(--card); border-radius: .5rem; padding: .7rem 1rem; margin: .6rem 0;
  border-left: .3rem solid var(--note); overflow-wrap: anywhere; }
.fail { border-color: var(--fail); } .warn { border-color: var(--warn); }
.card b { display: block; } code { font-size: .88rem; }
figure { margin: 2rem 0; } .plot { width: 100%; height: 21rem; }
table { border-collapse: collapse; font-size: .9rem; } .wide { overflow-x: auto; }
td, th { padding: .15rem 1rem .15rem 0; text-align: left; vertical-align: top; }
th { color: var(--dim); font-weight: normal; } summary { cursor: pointer; color: var(--dim); }
.chip { display: inline-block; width: .7rem; height: .7rem; border-radius: .2rem;
  margin-right: .5rem; }
.where { display: block; margin: .25rem 0; color: var(--dim); }
.rule { font-weight: normal; color: var(--dim); font-size: .9rem; }
"""

_SCRIPT = """
const dark = matchMedia('(prefers-color-scheme: dark)');
function look() {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue('--text').trim();
  const grid = dark.matches ? '#39404a' : '#dde';
  const axis = {gridcolor: grid, zerolinecolor: grid, automargin: true};
  return {text, axis, narrow: innerWidth < 700};
}
function draw() {
  const {text, axis, narrow} = look();
  for (const figure of FIGURES) {
    const own = figure.layout;
    const layout = {...own, paper_bgcolor: 'transparent', plot_bgcolor: 'transparent',
      font: {color: text, size: 12}, margin: {l: 48, r: 12, t: 12, b: 44}, hovermode: 'closest',
      xaxis: {...axis, ...own.xaxis}, yaxis: {...axis, ...own.yaxis},
      legend: {orientation: 'h', y: 1.02, yanchor: 'bottom', font: {size: narrow ? 10 : 12}}};
    Plotly.react(figure.name, figure.data, layout, {responsive: true, displayModeBar: false});
  }
}
draw();
dark.addEventListener('change', draw);
"""


def render(report: Report) -> str:
    """The whole page as text."""
    figures = all_figures(report.evidence)
    headline = report.headline
    colour = {"ready to train": "good", "fix before training": "fail"}.get(headline, "warn")
    body = [
        f'<h1 style="color: var(--{colour})">{headline}</h1>',
        f'<p class="dim">{escape(_summary(report))}</p>',
        *([f'<div class="card fail">{escape(report.broken)}</div>'] if report.broken else []),
        *(_finding(f) for f in report.findings),
        _not_checked(report),
        *(_figure(f) for f in figures),
        _memory(report),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{headline}: {escape(report.evidence.script)}</title><style>{_STYLE}</style>"
        f"</head><body>{''.join(body)}{_scripts(figures)}</body></html>"
    )


def _summary(report: Report) -> str:
    evidence = report.evidence
    return (
        f"{short_path(evidence.script)}: {len(evidence.trace.steps)} steps observed, "
        f"{len(report.verdict.passed)} checks passed, {evidence.seconds:.1f} s"
    )


def _finding(finding: Finding) -> str:
    place = ""
    if finding.place is not None:
        where = f"{short_path(finding.place.file)}:{finding.place.line}"
        text = f"<code>{escape(finding.place.text)}</code>"
        place = f'<span class="where">{escape(where)} {text}</span>'
    return (
        f'<div class="card {finding.level.value}"><b>{finding.level.value.upper()} '
        f'{escape(finding.title)} <span class="rule">{finding.rule}</span></b>{place}'
        f"{escape(finding.evidence)}<br><i>Fix:</i> {escape(finding.fix)}</div>"
    )


def _not_checked(report: Report) -> str:
    rows = [(phase, reason) for phase, reason in report.evidence.skipped.items()]
    rows += [(n.rule, n.reason) for n in report.verdict.not_checked]
    cells = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in rows)
    summary = f"<summary>Not checked ({len(rows)})</summary>"
    return f"<details>{summary}<table>{cells}</table></details>"


def _figure(figure: Figure) -> str:
    return (
        f"<figure><h2>{escape(figure.title)}</h2>"
        f"<figcaption>{escape(figure.caption)}</figcaption>"
        f'<div class="plot" id="{figure.name}"></div>{_layers(figure)}</figure>'
    )


def _layers(figure: Figure) -> str:
    """What a legend would say and more, one row a curve."""
    if not figure.rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in figure.columns)
    rows = ""
    for position, row in enumerate(figure.rows):
        colour = depth_colour(position, len(figure.rows))
        first, *others = (escape(cell) for cell in row)
        chip = f'<span class="chip" style="background: {colour}"></span>'
        cells = "".join(f"<td>{cell}</td>" for cell in others)
        rows += f"<tr><td>{chip}{first}</td>{cells}</tr>"
    return (
        f"<details><summary>{len(figure.rows)} curves</summary>"
        f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div></details>'
    )


def _memory(report: Report) -> str:
    memory = report.evidence.trace.memory
    rows = {name: size(count) for name, count in memory_parts(memory).items()}
    rows["peak"] = size(memory.peak)
    if memory.batch:
        rows["measured at batch"] = str(memory.batch)
    fits = batch_that_fits(memory)
    if fits is not None:
        rows["would fit"] = f"about batch {fits:,} in {size(memory.capacity)}"
    cells = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows.items())
    return f"<h2>Memory ({escape(memory.device)})</h2><table>{cells}</table>"


def _scripts(figures: list[Figure]) -> str:
    """Plotly itself, the data, and the drawing; nothing when there is nothing to draw."""
    if not figures:
        return ""
    from plotly.offline import get_plotlyjs

    plain = [{"name": f.name, "data": f.data, "layout": f.layout} for f in figures]
    data = json.dumps(plain, allow_nan=False).replace("</", "<\\/")
    return (
        f"<script>{get_plotlyjs()}</script><script>const FIGURES = {data};</script>"
        f"<script>{_SCRIPT}</script>"
    )
