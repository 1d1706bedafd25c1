"""HTML of the page: a single text with style and pictures, which loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

PAGE_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #22303a; background: #f6f7f8; margin: 0; }
main { max-width: 1040px; margin: 0 auto; padding: 2rem 1.2rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 0 0 .4rem; }
.lead { font-size: 1.1rem; margin: .2rem 0 1.4rem; }
section { background: #fff; border: 1px solid #e1e5e8; border-radius: 8px; padding: 1rem 1.2rem;
  margin: 0 0 1rem; }
.columns { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; }
figure { margin: .4rem 0 0; flex: 1 1 300px; max-width: 500px; }
svg { width: 100%; height: auto; font-family: system-ui, sans-serif; }
table { border-collapse: collapse; margin: .4rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #eef1f3;
  vertical-align: top; font-weight: normal; overflow-wrap: anywhere; }
@media (min-width: 40em) { tbody th { white-space: nowrap; } }
code { font-size: .92em; }
thead th { color: #5b6b76; } td.number { text-align: right; }
p { margin: .3rem 0; max-width: 46rem; } .note { color: #5b6b76; }
"""


@dataclass(frozen=True)
class Section:
    """Section of the page.

    Attributes
    ----------
    title : str
    text : list of str
        Paragraphs.
    tables : list of (head, rows)
        Texts of cells.
    pictures : list of str
        Inline SVG.
    """

    title: str
    text: list[str] = field(default_factory=list)
    tables: list[tuple[Sequence[str], Sequence[Sequence[str]]]] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)


def readable(value: float) -> str:
    """Format a number with about five digits, and commas for thousands: 54,311 and 0.78465."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.5g}"


def page(title: str, lead: str, sections: Iterable[Section], foot: str) -> str:
    """Return the HTML of the page; texts are escaped, pictures are not."""
    parts = "\n".join(_section(section_part) for section_part in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{PAGE_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
{parts}
<p class="note">{escape(foot)}</p>
</main>
</body>
</html>
"""


def _section(section: Section) -> str:
    lines = [f"<section>\n<h2>{escape(section.title)}</h2>"]
    lines += [f"<p>{_prose(text)}</p>" for text in section.text]
    beside = [_table(head, rows) for head, rows in section.tables]
    beside += [f"<figure>{svg}</figure>" for svg in section.pictures]
    if beside:
        lines.append('<div class="columns">' + "\n".join(beside) + "</div>")
    return "\n".join([*lines, "</section>"])


def _prose(text: str) -> str:
    """Return the HTML of a paragraph, with text between backticks as code."""
    # Escaped first: only the tags of code are HTML, never the text of a user.
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = ["".join(_cell(cell, i) for i, cell in enumerate(row)) for row in rows]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    above = f"<thead><tr>{top}</tr></thead>" if head else ""
    return f"<table>{above}<tbody>\n{body}\n</tbody></table>"


def _cell(text: str, place: int) -> str:
    return f"<th>{escape(text)}</th>" if place == 0 else f"<td>{escape(text)}</td>"
