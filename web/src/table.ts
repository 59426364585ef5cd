// Tables: what is seen, and the same as Markdown and CSV. On a narrow screen each row becomes a block of its own.
import { h, plain } from "./dom";
import { copyText, download } from "./saving";

/** What a cell shows, and the value that it has for a machine where that differs. */
export type Cell = string | [text: string, value: number | null] | { text: string; value?: number | null; class?: string };

export interface Table {
  caption: string;
  /** Titles; `#` before one aligns its column to the right. */
  columns: string[];
  rows: Cell[][];
}

const parts = (cell: Cell): { text: string; value?: number | null; class?: string } =>
  typeof cell === "string" ? { text: cell } : Array.isArray(cell) ? { text: cell[0], value: cell[1] } : cell;
const shown = (cell: Cell): string => plain(parts(cell).text);
const title = (column: string): string => column.replace(/^#/, "");

/** Text in a table of Markdown: whatever Markdown would act on is spelt out. */
function markdownText(text: string): string {
  return text.replace(/[\\`*_{}[\]<>&|~!$@#]/g, (one) => `&#${one.codePointAt(0)};`);
}

export function tableMarkdown(table: Table): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(table.columns.map((column) => markdownText(title(column)))),
    line(table.columns.map((column) => (column.startsWith("#") ? "--:" : "---"))),
    ...table.rows.map((row) => line(row.map((cell) => markdownText(shown(cell))))),
  ].join("\n") + "\n";
}

/** A field of CSV. Text that a spreadsheet would take for a formula gets an apostrophe before it; what acts is written as in the page. */
function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = (/^[=+\-@\t\r\n]/.test(value) ? "'" : "") + plain(value);
  return /[",]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function tableCsv(table: Table): string {
  const raw = (cell: Cell) => {
    const { text, value } = parts(cell);
    return value === undefined ? text : value ?? "";
  };
  const lines = [table.columns.map((column) => field(title(column))), ...table.rows.map((row) => row.map((cell) => field(raw(cell))))];
  return lines.map((cells) => cells.join(",")).join("\r\n") + "\r\n";
}

export function tableElement(table: Table, name: string): HTMLElement {
  const head = h("tr", { role: "row" }, ...table.columns.map((column) =>
    h("th", { scope: "col", role: "columnheader", class: column.startsWith("#") ? "number" : null }, title(column))));
  const body = table.rows.map((row) =>
    h("tr", { role: "row" }, ...row.map((cell, at) => {
      const column = table.columns[at] ?? "";
      const { value, class: state } = parts(cell);
      const css = [column.startsWith("#") && "number", state].filter(Boolean).join(" ");
      const attributes = {
        class: css || null,
        "data-label": title(column),
        "data-value": value,
      };
      const text = h("span", {}, shown(cell));
      return at === 0
        ? h("th", { ...attributes, scope: "row", role: "rowheader" }, text)
        : h("td", { ...attributes, role: "cell" }, text);
    })));
  return h("div", { class: "table" },
    h("table", { role: "table" },
      h("caption", {}, table.caption),
      h("thead", { role: "rowgroup" }, head),
      h("tbody", { role: "rowgroup" }, ...body)),
    h("p", { class: "tools" },
      h("button", { type: "button", "aria-label": `Copy Markdown: ${table.caption}`, click: () => void copyText(tableMarkdown(table), "Markdown") }, "Copy Markdown"),
      h("button", { type: "button", "aria-label": `Copy CSV: ${table.caption}`, click: () => void copyText(tableCsv(table), "CSV") }, "Copy CSV"),
      h("button", { type: "button", "aria-label": `Download CSV: ${table.caption}`, click: () => download(new Blob([tableCsv(table)], { type: "text/csv" }), `${name}.csv`) }, "Download CSV")));
}

interface Folded {
  /** Heard and not seen: what the label is of. */
  unseen?: string;
  /** On paper, where nothing can be opened, it is open. */
  paper?: boolean;
}

/** A table that is made when somebody opens it: long ones take their time. */
export function behind(label: string, table: () => Table, name: string, { unseen = "", paper = false }: Folded = {}): HTMLElement {
  const details = h("details", { class: "behind" },
    h("summary", {}, label, unseen ? h("span", { class: "unseen" }, `: ${unseen}`) : null));
  const make = () => {
    if (details.children.length === 1) details.append(tableElement(table(), name));
  };
  details.addEventListener("toggle", () => {
    if (details.open) make();
  });
  if (paper) openOnPaper(details, make);
  return details;
}

/** Opened before the page goes to paper, and closed after it if it was closed. */
function openOnPaper(details: HTMLDetailsElement, make: () => void): void {
  let closed = false;
  addEventListener("beforeprint", () => {
    closed ||= !details.open;
    make();
    details.open = true;
  });
  addEventListener("afterprint", () => {
    if (closed) details.open = false;
    closed = false;
  });
}
