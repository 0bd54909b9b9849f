#!/usr/bin/env python3
"""Builds the site of the documents into target/site, and fails when one of the site's links leads nowhere.

Usage: site.py MDBOOK

The site has the pages of docs/SUMMARY.md and the files that the pages link to, in the folders of the repository.
"""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "target" / "site-source"
SITE = ROOT / "target" / "site"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page: Path) -> dict[str, Path]:
    """The links of a page to files of the repository, and the files."""
    found = {}
    for link in LINK.findall(page.read_text("utf-8")):
        parts = urlsplit(link)
        if parts.path and not parts.scheme:
            found[link] = Path(os.path.normpath(page.parent / parts.path))
    return found


def staged(file: Path) -> Path:
    """The place of a file in the source of the site. The page of a folder has the name that web servers look for."""
    place = SOURCE / file.relative_to(ROOT)
    return place.with_name("index.md") if place.name == "README.md" else place


def stage(file: Path, text: str | None = None) -> None:
    """Puts a file into the source of the site, with its own content or with `text`."""
    place = staged(file)
    place.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        shutil.copyfile(file, place)
    else:
        place.write_text(text, "utf-8")


def stage_page(page: Path) -> None:
    """Stages a page, with links to the staged names."""
    text = LINK.sub(lambda link: link[0].replace("README.md", "index.md"), page.read_text("utf-8"))
    stage(page, text)


def stage_folder(folder: Path) -> None:
    """Stages the files of a folder that a page links to, with a list of the files."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."]
    files = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    for name in files:
        if not name.endswith(".md"):
            stage(folder / name)
    names = [str(staged(folder / name).relative_to(SOURCE / folder.relative_to(ROOT))) for name in files]
    names = [re.sub(r"\.md$", ".html", name) for name in names]
    items = "".join(f'<li><a href="{name}">{name}</a></li>\n' for name in names)
    stage(folder / "index.html", f"<!doctype html>\n<title>{folder.name}</title>\n<ul>\n{items}</ul>\n")


def stage_all() -> None:
    """Stages the pages of the summary, and the files that the pages link to."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    summary = ROOT / "docs" / "SUMMARY.md"
    pages = set(links(summary).values())
    for page in pages:
        stage_page(page)
        for target in links(page).values():
            if target.is_dir() and target / "README.md" not in pages:
                stage_folder(target)
            elif target.is_file() and target not in pages:
                stage(target)
    paths = {link: staged(page).relative_to(SOURCE) for link, page in links(summary).items()}
    text = LINK.sub(lambda link: f"]({paths[link[1]]})", summary.read_text("utf-8"))
    (SOURCE / "SUMMARY.md").write_text(text, "utf-8")


class Page(HTMLParser):
    """The links of a page of the site, and the names of its sections."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.names.add(values.get("id") or "")
        link = values.get("href") or values.get("src")
        if link and tag in {"a", "img", "link", "script"}:
            self.links.append(link)


def broken_links() -> list[str]:
    """The links of the site that lead nowhere."""
    pages = {path: Page(path.read_text("utf-8")) for path in SITE.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        # The links of 404.html begin at the root of a server.
        for link in page.links if path.name != "404.html" else []:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            name = unquote(parts.fragment)
            is_there = target.is_file() and (not name or target not in pages or name in pages[target].names)
            if not is_there:
                broken.append(f"{path.relative_to(SITE)}: {link}")
    return broken


def main() -> int:
    """Builds the site and checks its links."""
    stage_all()
    environment = {**os.environ, "MDBOOK_LOG": "warn"}
    subprocess.run([sys.argv[1], "build", str(ROOT)], check=True, env=environment)
    broken = broken_links()
    for link in broken:
        print(f"site.py: the link leads nowhere: {link}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
