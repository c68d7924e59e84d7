"""English text to measure tokenizers with, out of unpacked documentation packages: text.py FOLDER OUTPUT

The HTML and plain-text files of FOLDER in the order of their names, without markup, 20 MB of them; a blank line ends each.
"""
import html.parser
import pathlib
import sys

SIZE = 20_000_000
BLOCKS = {"p", "div", "pre", "li", "h1", "h2", "h3", "h4", "tr", "dt", "dd"}
SILENT = {"head", "script", "style"}


class Text(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.parts, self.silent = [], 0

    def handle_starttag(self, tag, attrs):
        self.silent += tag in SILENT

    def handle_endtag(self, tag):
        self.silent -= tag in SILENT
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data):
        if not self.silent:
            self.parts.append(data)


def text_of(path):
    content = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".html":
        parser = Text()
        parser.feed(content)
        content = "".join(parser.parts)
    lines = (line.rstrip() for line in content.splitlines())
    return "\n".join(line for line in lines if line) + "\n\n"


def main():
    folder, output = map(pathlib.Path, sys.argv[1:])
    data = bytearray()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".txt") and path.is_file():
            data += text_of(path).encode()
            if len(data) >= SIZE:
                break
    output.write_bytes(bytes(data[:SIZE]).decode(errors="ignore").encode())


main()
