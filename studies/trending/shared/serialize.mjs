// The measure `serialize` of every JavaScript contender: how long its runtime takes to write the 24-item answer as JSON.
// Each run makes the same text a million times from the same objects.

const TIMES = 1_000_000;

/** Times it over `text`, the answer as JSON, and hands the result's line to `print`. */
export function measure(text, print) {
  const answer = JSON.parse(text);
  let bytes = 0;
  for (let turn = 0; turn < 2_000; turn += 1) bytes = JSON.stringify(answer).length;
  if (bytes !== text.length) throw new Error(`${bytes} characters instead of ${text.length}`);
  const begin = performance.now();
  // The lengths are added up and checked, so that no turn can be left out.
  let sum = 0;
  for (let turn = 0; turn < TIMES; turn += 1) sum += JSON.stringify(answer).length;
  const seconds = (performance.now() - begin) / 1_000;
  if (sum !== bytes * TIMES) throw new Error("not every turn wrote the answer");
  print(JSON.stringify({ value: seconds, unit: "s" }));
}
