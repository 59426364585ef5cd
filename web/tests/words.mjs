// Numbers as the page should write them, said another way than it says them.

const DIGITS = new Intl.NumberFormat("en-US", { minimumSignificantDigits: 3, maximumSignificantDigits: 3, roundingMode: "halfEven" });

/** Three digits, thousands apart. */
export const three = (value) => (value === 0 ? "0" : DIGITS.format(value));

export const rate = (per_s) => `${three(per_s)}/s`;

/** The largest unit of which there is one. */
function scaled(value, units) {
  const [name, size] = units.find(([, size]) => value >= 0.9995 * size) ?? units.at(-1);
  return `${three(value / size)} ${name}`;
}

export const time = (ns) => scaled(ns, [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]]);

export const size = (bytes) => scaled(bytes, [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]]);

/** A ratio with what it lies between. */
export function ratio({ ratio, low, high }) {
  const digits = high - low < 0.02 ? 3 : 2;
  return { value: ratio.toFixed(digits), interval: `${low.toFixed(digits)} to ${high.toFixed(digits)}` };
}

export const quantile = (q) => `p${Number((100 * q).toFixed(3))}`;
