"""The built site in Chromium, where there is one: ``python -m documentation.browser FOLDER``.

Pages are opened as files, at 400 and 1,200 pixels, light and dark. Each text has a contrast of
4.5 to 1 (3 to 1 where it is large), no page is wider than its frame, nothing is fetched from
elsewhere, and the search finds a word that was typed after ``/``.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = (
    "index.html",
    "enrollment.html",
    "reading.html",
    "keeping-right.html",
    "by-hand.html",
    "command.html",
    "faults.html",
    "tutorials/first_week.html",
    "api/clients.html",
    "examples/quickstart.py.html",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")
SCRIPT = Path(__file__).with_name("look.js")
# Nothing is looked up, nor asked for in the background.
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--allow-file-access-from-files",
    "--window-size=1300,1100",
    "--virtual-time-budget=600000",
    "--dump-dom",
)


def seen(site: Path, chromium: str) -> dict[str, object]:
    """What the script has written down: ``views``, ``texts`` and what is ``wrong``."""
    pages = [(site / page).as_uri() for page in PAGES]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "look.html")
        page.write_text(
            f'<meta charset="utf-8"><pre id="seen"></pre><script>{SCRIPT.read_text("utf-8")}\n'
            f"look({json.dumps(pages)}, {json.dumps(pages[0])});</script>",
            encoding="utf-8",
        )
        command = [chromium, *OPTIONS, f"--user-data-dir={folder}/profile", page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    match = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    if not match:
        return {"views": 0, "texts": 0, "wrong": ["Chromium did not come to the end."]}
    return dict(json.loads(html.unescape(match[1])))


def main(site: Path) -> int:
    """Look at a site, print what is wrong."""
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        print("no Chromium is installed: the site was NOT opened")
        return 0
    found = seen(site.resolve(), chromium)
    wrong = found["wrong"]
    assert isinstance(wrong, list)
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    print(f"{found['views']} views in Chromium, {found['texts']} texts, and a search")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
