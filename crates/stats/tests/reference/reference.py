#!/usr/bin/env python3
"""Independent reference figures for the crate's tests. Standard library only.

    python3 reference.py > reference.json

Boundaries are found the slow and obvious way: every observation is drawn on its own, every |t| is computed from sums,
and every quantile is taken by sorting. The crate draws whole groups (a mean and a sum of squares) and walks tails.
"""
import json
import math
import random

PATHS = 1_000_000
SEED = 20240517


def beta_fraction(a, b, x):
    """Continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    h = d
    for m in range(1, 100_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            h *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return h


def beta_regularised(a, b, x, complement):
    """I_x(a, b), with 1 - x given as well so that nothing cancels."""
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(complement))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * beta_fraction(a, b, x) / a
    return 1.0 - front * beta_fraction(b, a, complement) / b


def t_two_sided_tail(t, df):
    """P(|T| > t)."""
    return beta_regularised(df / 2.0, 0.5, df / (df + t * t), t * t / (df + t * t))


def t_quantile(tail, df):
    """The t that T exceeds with probability `tail`, by bisection."""
    low, high = 0.0, 1.0
    while t_two_sided_tail(high, df) > 2.0 * tail:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if t_two_sided_tail(max(middle, 1e-300), df) > 2.0 * tail:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def simulate(last, paths, seed):
    """For each path the list of |t| after 2, 3, ... `last` observations."""
    gauss = random.Random(seed).gauss
    for _ in range(paths):
        total = squares = 0.0
        row = []
        for n in range(1, last + 1):
            z = gauss(0.0, 1.0)
            total += z
            squares += z * z
            if n > 1:
                variance = (squares - total * total / n) / (n - 1)
                row.append(abs(total) / math.sqrt(n * variance))
        yield row


def boundaries(rows, looks, cumulative):
    """Boundaries that spend `cumulative` (two-sided) by each look: quantiles among the paths that are still inside."""
    alive = range(len(rows))
    found, spent = [], 0.0
    for look, target in zip(looks, cumulative):
        values = sorted((rows[i][look] for i in alive), reverse=True)
        count = round((target - spent) * len(rows))
        bound = 0.5 * (values[count - 1] + values[count])
        if not found:
            bound = t_quantile((target - spent) / 2.0, look - 1)
        found.append(bound)
        alive = [i for i in alive if rows[i][look] <= bound]
        spent = target
    return found


def all_boundaries():
    wanted = [
        ("default", 0.025, [6, 10, 15, 20, 25, 30], 30),
        ("five_percent", 0.05, [6, 10, 15, 20, 25, 30], 30),
        ("ten_percent", 0.1, [6, 10, 15, 20, 25, 30], 30),
        ("unequal", 0.05, [4, 5, 11, 18], 18),
        ("forced_13_of_30", 0.025, [6, 10, 13], 30),
        ("forced_8_of_30", 0.05, [6, 8], 30),
    ]
    keep = sorted({look for _, _, looks, _ in wanted for look in looks})
    rows = [{n: row[n - 2] for n in keep} for row in simulate(30, PATHS, SEED)]
    for name, alpha, looks, largest in wanted:
        cumulative = [alpha * (n / largest) ** 2 for n in looks]
        cumulative[-1] = alpha
        yield {"name": name, "alpha": alpha, "looks": looks, "max": largest, "values": boundaries(rows, looks, cumulative)}


def mser5(series):
    """Number of windows to cut: White's MSER on means of five, straight from the definition."""
    batches = [sum(series[5 * j : 5 * j + 5]) / 5.0 for j in range(len(series) // 5)]
    n = len(batches)
    best, best_value = 0, math.inf
    for d in range(n // 2 + 1):
        rest = batches[d:]
        mean = sum(rest) / len(rest)
        value = sum((y - mean) ** 2 for y in rest) / len(rest) ** 2
        if value < best_value:
            best, best_value = d, value
    return 5 * best


def warmups():
    source = random.Random(SEED + 1)
    shapes = {
        "steady": lambda i: 1000.0,
        "exponential": lambda i: 1000.0 * (1.0 - 0.6 * math.exp(-i / 12.0)),
        "step": lambda i: 700.0 if i < 23 else 1000.0,
        "silent_start": lambda i: 0.0 if i < 7 else 1000.0,
        "overshoot": lambda i: 1000.0 + 400.0 * math.exp(-i / 8.0),
        "late_step": lambda i: 800.0 if i < 60 else 1000.0,
    }
    for name, shape in shapes.items():
        series = [round(shape(i) * (1.0 + 0.02 * source.gauss(0.0, 1.0)), 6) for i in range(83)]
        yield {"name": name, "series": series, "cut": mser5(series)}


def quantiles():
    for df in (1, 2, 3, 5, 9, 29, 100, 1000, 100000):
        for tail in (0.25, 0.1, 0.025, 0.0125, 0.0005, 2.4e-5):
            yield {"df": df, "tail": tail, "t": t_quantile(tail, df)}


if __name__ == "__main__":
    out = {"quantiles": list(quantiles()), "warmups": list(warmups()), "paths": PATHS, "boundaries": list(all_boundaries())}
    rows = lambda key: "[\n    " + ",\n    ".join(json.dumps(row) for row in out[key]) + "\n  ]"
    body = ",\n  ".join(f'"{key}": {rows(key) if isinstance(out[key], list) else out[key]}' for key in out)
    print("{\n  " + body + "\n}")
