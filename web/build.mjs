// Builds the page: script and style go into one HTML file, whose policy allows them by their hashes and nothing else.
//
//   node build.mjs           writes ../crates/report/assets/report.html
//   node build.mjs --check   fails when that file is not what the source gives
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const asset = here("../crates/report/assets/report.html");
const most = 1_000_000;

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const hex = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** A digest of what the page is made of: of the list that `sha256sum` prints. crates/report/tests/asset.rs holds the asset against it. */
async function source() {
  const inside = await readdir(here("src"), { recursive: true });
  const paths = ["build.mjs", "package-lock.json", "tsconfig.json", ...inside.map((path) => `src/${path}`).filter((path) => /\.(ts|css|html)$/.test(path))];
  const lines = await Promise.all(paths.sort().map(async (path) => `${hex(await readFile(here(path)))}  ${path}\n`));
  return hex(lines.join(""));
}

async function bundled(entry) {
  const result = await esbuild.build({
    entryPoints: [here(entry)],
    absWorkingDir: here("."),
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome111", "firefox115", "safari16.4"],
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
  });
  return result.outputFiles[0].text.trim();
}

// Each part is put in by a function: in a string, `$&` would mean something.
function filled(template, parts) {
  let page = template;
  for (const [name, text] of Object.entries(parts)) {
    if (page.split(name).length !== 2) throw new Error(`src/page.html must name ${name} once`);
    page = page.replace(name, () => text);
  }
  return page;
}

async function page() {
  const [template, script, style] = await Promise.all([
    readFile(here("src/page.html"), "utf8"),
    bundled("src/main.ts"),
    bundled("src/style.css"),
  ]);
  if (/<\/script|<!--/i.test(script)) throw new Error("the script holds what would end its element");
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  return filled(template, { __POLICY__: policy, __SOURCE__: await source(), __STYLE__: style, __SCRIPT__: script });
}

const built = await page();
if (built.length > most) throw new Error(`the page has ${built.length} bytes; ${most} are the most`);
if (process.argv.includes("--check")) {
  const committed = await readFile(asset, "utf8").catch(() => "");
  if (committed !== built) {
    console.error("crates/report/assets/report.html is not what web/src gives: run `npm run build` in web/");
    process.exit(1);
  }
  console.log(`report.html is current (${built.length} bytes)`);
} else {
  await writeFile(asset, built);
  console.log(`wrote report.html (${built.length} bytes)`);
}
