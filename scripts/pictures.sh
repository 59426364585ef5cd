#!/usr/bin/env bash
# Makes the README's pictures from the kept record of studies/trending: its first scenario in a terminal, and the ratios on its page.
#
#   scripts/pictures.sh      after `cargo build --release`; writes docs/images/terminal.svg and docs/images/page.png
#
# Needs what scripts/setup.sh installs for the page's tests, util-linux's `script`, and Debian's python3-rich, which turns
# a terminal's output into SVG.
set -euo pipefail
cd "$(dirname "$0")/.."
record=studies/trending/kept/race.jsonl.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Colours are printed for terminals only.
env -u NO_COLOR script --quiet --return --command "stty cols 102; target/release/deadheat report $record" /dev/null >"$work/terminal"
/usr/bin/python3 - "$work/terminal" docs/images/terminal.svg "deadheat report $record" <<'PYTHON'
import io, re, sys
from rich.console import Console
from rich.text import Text

source, target, command = sys.argv[1:]
lines = open(source, encoding="utf-8").read().replace("\r", "").split("\n")
# From the scenario's name to what its letters mean.
first = next(at for at, line in enumerate(lines) if "steady:" in line)
last = next(at for at, line in enumerate(lines) if "share a letter" in line)
console = Console(record=True, width=104, file=io.StringIO())
for line in [f"\x1b[1m$ {command}\x1b[0m", ""] + lines[first : last + 1]:
    console.print(Text.from_ansi(line), soft_wrap=True)
svg = console.export_svg(title="deadheat")
# The picture uses the reader's own monospace font: it loads nothing.
svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S).replace("Fira Code", "ui-monospace, Menlo, Consolas")
open(target, "w", encoding="utf-8").write(svg)
PYTHON

target/release/deadheat report "$record" --html "$work/page.html" >"$work/out"
cat >"$work/picture.mjs" <<'NODE'
const [playwright, page, target] = process.argv.slice(2);
const { chromium } = (await import(playwright)).default;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell", args: ["--no-sandbox"] });
const tab = await browser.newPage({ viewport: { width: 1080, height: 900 }, colorScheme: "light" });
await tab.goto(`file://${page}`);
const top = await tab.locator("#ratios").boundingBox();
await tab.screenshot({ path: target, fullPage: true, clip: { x: 0, y: top.y + 30, width: 1080, height: 520 } });
await browser.close();
NODE
node "$work/picture.mjs" "$PWD/web/node_modules/playwright-core/index.js" "$work/page.html" docs/images/page.png
