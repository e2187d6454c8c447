"""MkDocs hook: adds the pages from outside docs/, and checks the file names in all pages.

- README.md, ARCHITECTURE.md, CONTRIBUTING.md and CHANGELOG.md become pages of the site.
- The command line reference comes from the directory in $BACKSTORY_REFERENCE
  (`backstory man --markdown DIR`).
- A link from docs/ to one of these files, or from them into docs/, leads to the page on the site.
- A path of this repository in backticks must exist. A missing path is a warning, which fails a
  strict build.
- A list inside a list must be indented by four spaces, because MkDocs ignores it otherwise.
"""

import logging
import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
ASIDE = {"LICENSE-MIT": "MIT", "LICENSE-APACHE": "Apache-2.0"}
PATH = re.compile(r"`((?:crates|scripts|fixtures|fuzz|bench|docs|examples)/[\w./+-]+)`")
PLACEHOLDER = re.compile(r"[A-Z]{2,}(?!\w*\.md)")
NESTED = re.compile(r"^ {1,3}(?:[-*]|\d+\.) .*", re.M)
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
BUILT = ("bench/runs/", "docs/benchmark/index.html")
log = logging.getLogger("mkdocs.hooks.site")


def on_files(files, config):
    """Adds the pages from outside docs/."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=from_root(text)))
    plots = ROOT / "docs/benchmark/index.html"
    if plots.exists():
        files.append(File.generated(config, "benchmark/plots.html", abs_src_path=str(plots)))
    commands = []
    for source in sorted(Path(os.environ["BACKSTORY_REFERENCE"]).glob("*.md")):
        page = f"commands/{source.name}"
        files.append(File.generated(config, page, abs_src_path=str(source)))
        if source.stem != "index":
            commands.append({source.stem.replace("-", " "): page})
    reference = next(part["Reference"] for part in config.nav if "Reference" in part)
    reference[0]["Commands"] = ["commands/index.md", *commands]
    return files


def on_page_markdown(markdown, page, config, files):
    """Changes links out of docs/ to the added pages, and checks paths."""
    for path in PATH.findall(markdown):
        if path.startswith(BUILT) or PLACEHOLDER.search(path):
            continue
        if not (ROOT / path).exists():
            log.warning("%s names `%s`, which does not exist", page.file.src_uri, path)
    for line in NESTED.findall(FENCED.sub("", markdown)):
        log.warning("%s: indent a nested list by four spaces: %s", page.file.src_uri, line[:60])
    markdown = markdown.replace("`index.html` beside this file has", "[Another page](plots.html) has")
    up = "../" * page.file.src_uri.count("/")
    for name, target in PAGES.items():
        markdown = markdown.replace(f"]({up}../{name}", f"]({up}{target}")
    return markdown


def from_root(text):
    """Returns the text of a file in the root directory, with its links relative to docs/."""

    def link(found):
        target, _, anchor = found[1].partition("#")
        if target.startswith("docs/"):
            target = target.removeprefix("docs/")
        elif target in PAGES:
            target = PAGES[target]
        elif target in ASIDE:
            return f"](https://spdx.org/licenses/{ASIDE[target]}.html)"
        return f"]({target}{'#' + anchor if anchor else ''})"

    text = re.sub(r"\]\(((?!https?:)[^)]+)\)", link, text)
    return re.sub(r'src="docs/', 'src="', text)

