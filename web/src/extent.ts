// The ends of many numbers. Spread into `Math.max` each of them takes a place on the stack, which a long race overflows.

/** The highest, and no less than `least`. */
export function highest(all: Iterable<number>, least = -Infinity): number {
  let most = least;
  for (const one of all) if (one > most) most = one;
  return most;
}

/** The lowest, and no more than `most`. */
export function lowest(all: Iterable<number>, most = Infinity): number {
  let least = most;
  for (const one of all) if (one < least) least = one;
  return least;
}
