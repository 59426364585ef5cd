#!/usr/bin/env python3
"""Independent reference figures for the crate's tests. Standard library only.

    python3 reference.py > reference.json

Boundaries are found the slow and obvious way: every observation is drawn on its own, every |t| is computed from sums,
and every quantile is taken by sorting. The crate draws whole groups (a mean and a sum of squares) and walks tails.
"""
import json
import math
import random
import statistics

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


def usl_value(n, level, sigma, kappa):
    return level + math.log(n) - math.log(1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))


def usl_squares(points, sigma, kappa):
    """Sum of squares in ln X at the best level, and that level."""
    off = [math.log(x) - usl_value(n, 0.0, sigma, kappa) for n, x in points]
    level = math.fsum(off) / len(off)
    return math.fsum((o - level) ** 2 for o in off), level


def usl_fit(points):
    """The best sigma in [0, 1] and kappa >= 0 by a grid that closes in on its best cell; no slopes, no equations."""
    low, high = [0.0, 0.0], [1.0, 1.0]
    cells = 24
    for _ in range(90):
        steps = [(high[i] - low[i]) / cells for i in (0, 1)]
        grid = ((low[0] + a * steps[0], low[1] + b * steps[1]) for a in range(cells + 1) for b in range(cells + 1))
        best = min(grid, key=lambda at: usl_squares(points, *at)[0])
        half = [0.35 * (high[i] - low[i]) for i in (0, 1)]
        low = [max(0.0, best[i] - half[i]) for i in (0, 1)]
        high = [min(1.0, best[0] + half[0]), best[1] + half[1]]
    squares, level = usl_squares(points, *best)
    logs = [math.log(x) for _, x in points]
    mean = math.fsum(logs) / len(logs)
    return math.exp(level), best[0], best[1], 1.0 - squares / math.fsum((y - mean) ** 2 for y in logs)


def usl_rows():
    source = random.Random(SEED + 2)
    sizes = [1, 2, 4, 8, 12, 16, 24, 32]
    for name, sigma, kappa, noise in (
        ("typical", 0.06, 0.0008, 0.03),
        ("contention", 0.25, 0.0, 0.03),
        ("coherency", 0.0, 0.01, 0.03),
        ("linear", 0.0, 0.0, 0.02),
        ("serial", 1.0, 0.0, 0.02),
        ("noisy", 0.1, 0.004, 0.15),
    ):
        points = [
            (n, round(math.exp(usl_value(n, math.log(5000.0), sigma, kappa) + noise * source.gauss(0.0, 1.0)), 3))
            for n in sizes
        ]
        level, s, k, r2 = usl_fit(points)
        yield {"name": name, "n": sizes, "x": [x for _, x in points], "lambda": level, "sigma": s, "kappa": k, "r2": r2}


LAPSE, SPREADS = 0.01, [0.005 * 2.0 ** (k / 2.0) for k in range(10)]


def posterior_quantiles(trials, around, alpha):
    """Median and ends of the peak's posterior: trapezes over ln(rate) within 0.5 of `around`, spreads summed."""
    cells, reach = 4000, 0.5
    places = [math.log(around) - reach + 2.0 * reach * i / cells for i in range(cells + 1)]
    density = []
    for place in places:
        total = 0.0
        for spread in SPREADS:
            product = 1.0
            for rate, passed in trials:
                up = 0.5 * (1.0 - math.tanh(0.5 * (math.log(rate) - place) / spread))
                chance = LAPSE + (1.0 - 2.0 * LAPSE) * up
                product *= chance if passed else 1.0 - chance
            total += product
        density.append(total)
    sums = [0.0]
    for a, b in zip(density, density[1:]):
        sums.append(sums[-1] + 0.5 * (a + b))
    found = []
    for share in (0.5, alpha / 2.0, 1.0 - alpha / 2.0):
        target = share * sums[-1]
        i = next(i for i in range(1, len(sums)) if sums[i] >= target)
        along = (target - sums[i - 1]) / (sums[i] - sums[i - 1])
        found.append(math.exp(places[i - 1] + along * (places[i] - places[i - 1])))
    return found


def posterior_rows():
    source = random.Random(SEED + 3)
    for name, spread, alpha in (("sharp", 0.003, 0.05), ("method", 0.03, 0.05), ("wide", 0.08, 0.05), ("ten_percent", 0.03, 0.1)):
        trials, rate = [], 6000.0
        for k in range(14):
            passed = source.random() < 1.0 / (1.0 + math.exp((math.log(rate / 5000.0)) / spread))
            trials.append((rate, passed))
            step = 1.1 if k < 4 else 1.03
            rate = round(rate * step if passed else rate / step, 6)
        around = trials[-1][0]
        median, low, high = posterior_quantiles(trials, around, alpha)
        yield {
            "name": name, "rates": [r for r, _ in trials], "passes": [int(p) for _, p in trials],
            "around": around, "alpha": alpha, "rate": median, "low": low, "high": high,
        }


def closed_tests(evidence, bounds):
    """Holm at one look, by its definition as a closed test: a pair is rejected if each set of pairs that holds it has
    some pair beyond the bound of alpha over the size of the set. `bounds[s - 1]` is that of alpha / s."""
    pairs = list(evidence)
    sets = [
        [p for i, p in enumerate(pairs) if bits >> i & 1] for bits in range(1, 2 ** len(pairs))
    ]
    holds = [max(evidence[p] for p in one) > bounds[len(one) - 1] for one in sets]
    return {p for p in pairs if all(ok for one, ok in zip(sets, holds) if p in one)}


def holm_rows():
    source = random.Random(SEED + 4)
    looks, alpha, pairs = [6, 10, 15], 0.1, 6
    spent = [alpha * (b / 15) ** 2 - alpha * (a / 15) ** 2 for a, b in zip([0, 6, 10], looks)]
    # Bonferroni over looks: any table will do, as long as smaller shares never narrow a bound.
    bounds = [[t_quantile(part / s / 2.0, n - 1) for s in range(1, pairs + 1)] for part, n in zip(spent, looks)]
    for k in range(12):
        drift = [source.choice([0.0, 0.3, 0.7, 1.1]) for _ in range(pairs)]
        evidence = [[round(abs(source.gauss(d * math.sqrt(n), 1.0)), 6) for d in drift] for n in looks]
        rejected_at, left = [0] * pairs, list(range(pairs))
        for n, row, table in zip(looks, evidence, bounds):
            for pair in closed_tests({p: row[p] for p in left}, table):
                rejected_at[pair] = n
            left = [p for p in left if not rejected_at[p]]
        yield {
            "name": f"holm_{k}", "looks": looks, "evidence": sum(evidence, []), "bounds": sum(bounds, []),
            "rejected_at": rejected_at,
        }


def letter_rows():
    """Letters by brute force: each largest set of contenders of which no two were told apart is one letter."""
    source = random.Random(SEED + 5)
    for k in range(12):
        count = source.randint(3, 8)
        order = source.sample(range(count), count)
        share = source.choice([0.2, 0.5, 0.8])
        apart = [(a, b) for a in range(count) for b in range(a + 1, count) if source.random() < share]
        together = []
        for bits in range(1, 2**count):
            members = {i for i in range(count) if bits >> i & 1}
            if not any(a in members and b in members for a, b in apart):
                together.append(members)
        largest = [one for one in together if not any(one < other for other in together)]
        groups = sorted(sorted(order.index(c) for c in one) for one in largest)
        letters = ["".join(chr(97 + i) for i, g in enumerate(groups) if order.index(c) in g) for c in range(count)]
        yield {"name": f"letters_{k}", "order": order, "apart": [x for pair in apart for x in pair], "letters": letters}


def quantile_rows():
    """The ratio of two quantiles over epochs, from the requests themselves."""
    source = random.Random(SEED + 6)
    for name, q, requests, epochs, alpha in (("p50", 0.5, 240, 5, 0.05), ("p90", 0.9, 1100, 6, 0.025), ("p99", 0.99, 10000, 12, 0.05)):
        sides = []
        for factor in (1.0, 1.08):
            drawn = [sorted(round(factor * source.lognormvariate(0.0, 0.7), 5) for _ in range(requests)) for _ in range(epochs)]
            sides.append(drawn)
        at = [[one[math.ceil(round(q * requests, 9)) - 1] for one in side] for side in sides]
        d = [math.log(c) - math.log(b) for b, c in zip(*at)]
        mean = math.fsum(d) / epochs
        error = math.sqrt(math.fsum((x - mean) ** 2 for x in d) / (epochs - 1) / epochs)
        half = t_quantile(alpha / 2.0, epochs - 1) * error
        yield {
            "name": name, "alpha": alpha, "baseline": at[0], "contender": at[1],
            "ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half),
        }


def solved(a, b):
    """x of a x = b, by elimination with pivots."""
    n = len(a)
    rows = [list(row) + list(right) for row, right in zip(a, b)]
    for i in range(n):
        best = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i])]
    return [row[n:] for row in rows]


def slope_rows():
    """How much rates climb within epochs: least squares with a column for each epoch's level, the whole sandwich by its matrices."""
    source = random.Random(SEED + 8)
    for name, lengths, alpha in (("alike", [20] * 6, 0.01), ("unlike", [20, 12, 7, 20, 3, 16, 20], 0.01), ("four", [9, 10, 4, 10], 0.05),
                                 ("two", [8, 5], 0.05)):
        rates = [[20_000 * math.exp(source.gauss(0, 0.05) + 0.001 * r * source.gauss(1, 2) + source.gauss(0, 0.02)) for r in range(n)]
                 for n in lengths]
        rates = [[round(rate, 3) for rate in one] for one in rates]
        points = [(e, float(r), math.log(rate)) for e, one in enumerate(rates) for r, rate in enumerate(one)]
        count = len(lengths)
        design = [[float(e == one) for one in range(count)] + [r] for e, r, _ in points]
        square = lambda rows: [[math.fsum(row[i] * row[j] for row in rows) for j in range(count + 1)] for i in range(count + 1)]
        total = square(design)
        right = [[math.fsum(row[i] * p[2] for row, p in zip(design, points))] for i in range(count + 1)]
        found = [one[0] for one in solved(total, right)]
        left = [p[2] - math.fsum(x * b for x, b in zip(row, found)) for row, p in zip(design, points)]
        inverse = solved(total, [[float(i == j) for j in range(count + 1)] for i in range(count + 1)])
        if count >= 3:
            scores = [[math.fsum(row[i] * u for row, u, p in zip(design, left, points) if p[0] == e) for i in range(count + 1)]
                      for e in range(count)]
            meat, factor, degrees = square(scores), count / (count - 1), count - 1
            half = [[math.fsum(inverse[i][k] * meat[k][j] for k in range(count + 1)) for j in range(count + 1)] for i in range(count + 1)]
            variance = factor * math.fsum(half[count][k] * inverse[k][count] for k in range(count + 1))
        else:
            degrees = len(points) - count - 1
            variance = math.fsum(u * u for u in left) / degrees * inverse[count][count]
        reach = t_quantile(alpha / 2.0, degrees) * math.sqrt(variance)
        across = lambda slope: math.expm1(slope * (max(lengths) - 1))
        yield {"name": name, "alpha": alpha, "lengths": lengths, "rates": sum(rates, []), "change": across(found[count]),
               "low": across(found[count] - reach), "high": across(found[count] + reach)}


def welches():
    """Welch's t from the textbook formula; the first pair is a published example (24.98853 degrees, p = 0.021378)."""
    samples = [
        (
            [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4],
            [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4],
            0.05,
        ),
        ([9.34, 9.35, 9.36, 9.33, 9.41], [9.31, 9.28, 9.4, 9.22, 9.3, 9.29, 9.33], 0.025),
        ([1.0, 1.1, 0.7], [0.2, 0.25], 0.05),
    ]
    for old, new, alpha in samples:
        v_old, v_new = statistics.variance(old) / len(old), statistics.variance(new) / len(new)
        df = (v_old + v_new) ** 2 / (v_old**2 / (len(old) - 1) + v_new**2 / (len(new) - 1))
        difference, se = statistics.fmean(new) - statistics.fmean(old), math.sqrt(v_old + v_new)
        half = t_quantile(alpha / 2.0, df) * se
        p = t_two_sided_tail(abs(difference) / se, df)
        yield {"old": old, "new": new, "alpha": alpha, "df": df, "low": difference - half, "high": difference + half, "p": p}


def resolution_rows():
    """What n epochs can tell apart with a chance of 90 %, and how many a margin takes: counted up from two, one by one."""
    def seen(sd, n, alpha):
        return (t_quantile(alpha / 2.0, n - 1) + t_quantile(0.1, n - 1)) * sd / math.sqrt(n)

    for sd, n, alpha, margin in ((0.007, 4, 0.025, 0.03), (0.016, 12, 0.025, 0.03), (0.04, 30, 0.05, 0.03), (0.117, 2, 0.025, 0.1),
                                 (0.003, 6, 0.0125, 0.005), (0.02, 10, 0.2, 0.05)):
        needed = next(count for count in range(2, 10_000) if seen(sd, count, alpha) <= math.log1p(margin))
        yield {"sd": sd, "n": n, "alpha": alpha, "margin": margin, "detectable": math.exp(seen(sd, n, alpha)), "needed": needed}


if __name__ == "__main__":
    out = {
        "quantiles": list(quantiles()), "warmups": list(warmups()), "welches": list(welches()),
        "usl": list(usl_rows()), "posteriors": list(posterior_rows()), "holm": list(holm_rows()),
        "letters": list(letter_rows()), "quantile_ratios": list(quantile_rows()), "slopes": list(slope_rows()),
        "resolutions": list(resolution_rows()),
        "paths": PATHS, "boundaries": list(all_boundaries()),
    }
    rows = lambda key: "[\n    " + ",\n    ".join(json.dumps(row) for row in out[key]) + "\n  ]"
    body = ",\n  ".join(f'"{key}": {rows(key) if isinstance(out[key], list) else out[key]}' for key in out)
    print("{\n  " + body + "\n}")
