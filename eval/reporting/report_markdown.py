"""A report as Markdown, with pictures beside it."""

from collections.abc import Sequence

from .document import Block, Command, Document, Paragraph, Picture, Table, Terms


def report_markdown(document: Document) -> tuple[str, dict[str, str]]:
    """The text, and its pictures: SVG files by name."""
    blocks = [f"# {document.title}", document.lead]
    pictures: dict[str, str] = {}
    for number, section in enumerate(document.sections, 1):
        blocks.append(f"## {section.title}")
        for block in section.blocks:
            if isinstance(block, Picture):
                name = f"report-{number}.svg"
                pictures[name] = block.svg
                blocks.append(f"![{block.words}]({name})")
            else:
                blocks.append(_block(block))
    return "\n\n".join(blocks) + "\n", pictures


def _block(block: Block) -> str:
    match block:
        case Paragraph(sentences):
            return sentences
        case Command(title, line):
            return f"### {title}\n\n```\n{line}\n```"
        case Table(caption, heads, rows):
            ruler = ["---", *("---:" for _ in heads[1:])]
            lines = "\n".join(map(_line, (heads, ruler, *rows)))
            return f"{caption}\n\n{lines}"
        case Terms(title, pairs):
            lines = "\n".join(f"- {term}: {said}" for term, said in pairs)
            return f"### {title}\n\n{lines}"
    raise AssertionError(block)


def _line(entries: Sequence[str]) -> str:
    """Of a table."""
    escaped = (entry.replace("|", "\\|") for entry in entries)
    return f"| {' | '.join(escaped)} |"
