"""Self-contained HTML pages: style, little scripts, and how numbers are written.

Pages open from disk and ask no server for anything.
"""

import html
import math

from . import svg


def text(value: object) -> str:
    """Escaped for HTML, quotes included."""
    return html.escape(str(value), quote=True)


def breakable(value: str) -> str:
    """Escaped, with places where a line of parameters may be broken."""
    return text(value).replace("(", "<wbr>(").replace(",", ",<wbr>")


def whole(value: float | None) -> str:
    """A count; a dash where there is none."""
    return "–" if value is None else f"{value:,.0f}"


def number(value: float | None, digits: int = 3) -> str:
    """A short form of a number; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if value == int(value) and abs(value) < 1e15 and abs(value) >= 1000:
        return f"{int(value):,}"
    return plain(value, digits).replace("-", "−")


def plain(value: float, digits: int = 3) -> str:
    """The same with a hyphen for minus, as programs like it."""
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{digits}g}"


def page(title: str, body: str, script: str = "") -> str:
    """A whole page.

    Args:
      title: of the window.
      body: HTML.
      script: JavaScript, run at the end.
    """
    light, dark = (svg.variables(p) for p in (svg.PALETTE_LIGHT, svg.PALETTE_DARK))
    style = _STYLE.replace("/*light*/", light).replace("/*dark*/", dark)
    code = f"<script>{script}</script>" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # Otherwise browsers ask for /favicon.ico.
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n{code}\n</body>\n</html>\n"
    )


_STYLE = """
:root{color-scheme:light dark;--ink:#1f2933;--soft:#5b6773;--back:#ffffff;
--panel:#f5f7f9;--rule:#d9dfe5;--accent:#0b5cad;--ours:#e7f0fb;--warn:#9a3412;/*light*/}
@media (prefers-color-scheme:dark){:root{--ink:#e4e9ee;--soft:#a3afbb;--back:#14181d;
--panel:#1d232a;--rule:#343d47;--accent:#6cb2ff;--ours:#182a3f;--warn:#ff9f5a;/*dark*/}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--back);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main,header,footer{max-width:1240px;margin:0 auto;padding:0 24px}
header{padding-top:28px}footer{padding-bottom:48px;color:var(--soft)}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .3em}
h2{font-size:1.3rem;line-height:1.3;margin:2.2em 0 .5em;padding-top:.8em;
border-top:1px solid var(--rule);overflow-wrap:anywhere}
h3{font-size:1.02rem;margin:1.6em 0 .4em}
p,ul,dl{margin:.5em 0;max-width:76ch}
a{color:var(--accent)}
code,pre,kbd{font:.88em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--panel);border:1px solid var(--rule);border-radius:8px;
padding:12px 14px;white-space:pre-wrap;overflow-wrap:anywhere;max-width:none}
.lead{color:var(--soft)}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:4px 18px}
.figures{display:grid;grid-template-columns:1fr 1fr;gap:20px;margin:16px 0 4px}
figure{margin:0;background:var(--panel);border:1px solid var(--rule);
border-radius:10px;padding:12px 10px 6px;min-width:0}
figcaption{font-weight:600;font-size:.92rem;padding:0 6px 4px}
.chart{display:block;width:100%;height:auto}.chart.small{display:none}
.chart text{font:12px system-ui,sans-serif;fill:var(--ink)}
.chart .axislabel{font-weight:600;fill:var(--soft)}
.grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--soft);fill:none}
.line{fill:none;stroke-width:2.4;stroke-linejoin:round}
.line.thin{stroke-width:1.3;stroke-dasharray:5 3}
.band{opacity:.15}.series{transition:opacity .12s}
.hot .series:not(.on){opacity:.12}.series.off{display:none}
.legend{list-style:none;padding:0;margin:8px 0 0;max-width:none;display:grid;
grid-template-columns:repeat(auto-fill,minmax(288px,1fr));gap:1px 12px}
.legend label{display:flex;align-items:center;gap:7px;font-size:.84rem;
padding:2px 4px;border-radius:5px;cursor:pointer;min-width:0;}
.legend label:hover{background:var(--panel)}.legend input{margin:0;flex:none}
.legend span{min-width:0}.key{flex:none;overflow:visible}
.tools{display:flex;gap:8px;flex-wrap:wrap;margin:10px 0 0}
button{font:inherit;font-size:.84rem;color:var(--ink);background:var(--panel);
border:1px solid var(--rule);border-radius:6px;padding:3px 11px;cursor:pointer}
button:hover{border-color:var(--accent)}
.scroll{overflow-x:auto;margin:10px 0;border:1px solid var(--rule);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:.88rem;
font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:8px 10px;font-size:.86rem}
th,td{padding:5px 10px;text-align:right;border-top:1px solid var(--rule);
white-space:nowrap}
thead th{border-top:0;color:var(--soft);font-weight:600;vertical-align:bottom}
tbody th,thead th:first-child{text-align:left;font-weight:500}
tbody th{position:sticky;left:0;background:var(--back);white-space:normal;
min-width:230px;overflow-wrap:break-word}
tr.ours th,tr.ours td{background:var(--ours)}
td.words,th.words{text-align:left;white-space:normal;min-width:220px}
.range{color:var(--soft);font-size:.92em}.warn{color:var(--warn)}
dt{font-weight:600;margin-top:.5em}dd{margin:0 0 .3em}
details{margin:.5em 0}summary{cursor:pointer}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;max-width:none}
.facts dt{margin:0;font-weight:500;color:var(--soft)}
.facts dd{margin:0;overflow-wrap:anywhere;min-width:0}
@media (max-width:700px){main,header,footer{padding:0 14px}header{padding-top:18px}
.figures{grid-template-columns:1fr;gap:12px}figure{padding:8px 4px 4px}
.chart.large{display:none}.chart.small{display:block}
h1{font-size:1.4rem}h2{font-size:1.12rem}
.facts{grid-template-columns:1fr}.facts dd{margin-bottom:.5em}
.legend{grid-template-columns:1fr}.legend label{padding:4px}
th,td{padding:5px 7px}tbody th{min-width:136px;max-width:150px;font-size:.82rem}
td.words{min-width:180px}}
@media print{.tools,.legend input{display:none}}
"""
