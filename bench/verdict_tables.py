"""Tables of races whose answer is known, and how other ways of comparing would have judged the same machine time.

Owns: counting, and the rules that people use with wrk. Must not know: how races are held.
"""
import math
import random
import statistics
from collections import Counter

CLAIMS = ("faster", "slower")
VERDICTS = ("faster", "slower", "equivalent", "inconclusive", "invalid")


def tables(lines: list[dict]) -> str:
    """All tables, one below the other, each under its heading."""
    by_kind: dict[str, list[dict]] = {}
    for line in lines:
        by_kind.setdefault(line["kind"], []).append(line)
    parts = [(heading, table(by_kind)) for heading, table in TABLES.items()]
    return "\n\n".join(f"### {heading}\n\n{part}" for heading, part in parts if part)


def of_figures(by_kind: dict[str, list[dict]]) -> str:
    """What was to be reached, beside what was: claims where nothing differs, finds where something does."""
    rows = ["| tested | goal | result | result with the races set apart |", "|---|---|---|---|"]
    for kind, (what, limit, seen) in FIGURES.items():
        lines = by_kind.get(kind, [])
        # A kind that was set apart is called by its own name and, after a comma, why.
        apart = [line for other, more in by_kind.items() if other.startswith(f"{kind},") for line in more]
        if lines:
            rows.append(f"| {what} | {limit} | {seen(lines)} | {seen(lines + apart) if apart else '-'} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def claims(lines: list[dict]) -> str:
    """How many of the races said faster or slower."""
    return f"{sum(line['verdict'] in CLAIMS for line in lines)} of {len(lines)}"


def finds(lines: list[dict]) -> str:
    """How many found the slower side, and how many named the other one."""
    words = [line["verdict"] for line in lines]
    return f"{words.count('slower')} of {len(words)}, wrong direction {words.count('faster')}"


def timed_finds(lines: list[dict]) -> str:
    """The same, with the median time from the command to the answer."""
    return f"{finds(lines)}; median {statistics.median(line['took_s'] for line in lines):.0f} s"


def near_misses(lines: list[dict]) -> str:
    """How many were called alike with an interval within half a per cent, and how many named the wrong side."""
    alike = [line for line in lines if line["verdict"] == "equivalent"]
    within = sum(line["low"] >= 0.995 and line["high"] <= 1.005 for line in alike)
    return f"{within} of {len(lines)}, wrong direction {sum(line['verdict'] == 'faster' for line in lines)}"


def of_races(by_kind: dict[str, list[dict]]) -> str:
    """How often each verdict was given, and how long it took."""
    rows = ["| kind | races | " + " | ".join(VERDICTS) + " | pooled ratio | median s | longest s |", "|---|" + "---|" * 10]
    for kind, lines in by_kind.items():
        if "verdict" not in lines[0]:
            continue
        counts = Counter(line["verdict"] for line in lines)
        ratios = [math.log(line["ratio"]) for line in lines if line["ratio"] is not None and line["verdict"] != "invalid"]
        pooled = f"{math.exp(statistics.fmean(ratios)):.4f}" if ratios else "-"
        times = sorted(line["took_s"] for line in lines)
        cells = [kind, len(lines), *(counts[word] for word in VERDICTS), pooled,
                 f"{statistics.median(times):.0f}", f"{times[-1]:.0f}"]
        rows.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(rows) if len(rows) > 2 else ""


def of_servers(by_kind: dict[str, list[dict]]) -> str:
    """How noisy races of each server were."""
    alike = by_kind.get("aa", [])
    rows = ["| server | races against itself | median s_d, % | claims | mean epochs |", "|---|---|---|---|---|"]
    for server in dict.fromkeys(line["server"] for line in alike):
        lines = [line for line in alike if line["server"] == server]
        spreads = [100 * line["sd_log_ratio"] for line in lines if line["sd_log_ratio"] is not None]
        claims = sum(line["verdict"] in CLAIMS for line in lines)
        rows.append(f"| {server} | {len(lines)} | {statistics.median(spreads) if spreads else math.nan:.2f} | {claims} "
                    f"| {statistics.fmean(line['epochs'] for line in lines):.1f} |")
    return "\n".join(rows) if alike else ""


def of_bias(by_kind: dict[str, list[dict]]) -> str:
    """Whether valid races of a server against itself lean to one side, and whether they differ as much as their epochs say."""
    rows = ["| kind | races | mean difference, %, +- two standard errors | spread of t | by chance |", "|---|---|---|---|---|"]
    for kind, lines in by_kind.items():
        if not kind.split(",")[0].endswith(("aa", "aa-slow")) or kind.startswith("wrk"):
            continue
        valid = [line for line in lines if line["verdict"] != "invalid"]
        logs = [[math.log(ratio) for ratio in line.get("epoch_ratios") or [] if ratio] for line in valid]
        logs = [one for one in logs if len(one) > 3 and statistics.stdev(one) > 0]
        if len(logs) < 2:
            continue
        means = [statistics.fmean(one) for one in logs]
        errors = [statistics.stdev(one) / math.sqrt(len(one)) for one in logs]
        together = math.sqrt(sum(error**2 for error in errors)) / len(logs)
        spread = root_mean_square([mean / error for mean, error in zip(means, errors)])
        low, high = spreads_by_chance([len(one) for one in logs])
        rows.append(f"| {kind} | {len(logs)} | {round(100 * statistics.fmean(means), 2) + 0.0:.2f} +- {200 * together:.2f} | {spread:.2f} | {low:.2f} to {high:.2f} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def root_mean_square(values: list[float]) -> float:
    return math.sqrt(statistics.fmean(value**2 for value in values))


def spreads_by_chance(epochs: list[int]) -> tuple[float, float]:
    """Between which spreads of t 95 % of such campaigns lie: one race for each of these numbers of epochs.

    Epochs are independent and normal, and their number does not depend on them. Races that end once they are decided have a somewhat
    larger spread, because they end when their epochs happen to be close together or far from zero.
    """
    source = random.Random(1)

    def t(count: int) -> float:
        chi_square = source.gammavariate((count - 1) / 2, 2)
        return source.gauss(0, 1) / math.sqrt(chi_square / (count - 1))

    spreads = sorted(root_mean_square([t(count) for count in epochs]) for _ in range(4_000))
    return spreads[100], spreads[3_900]


def beside(there: dict, here: dict) -> tuple[bool, float] | None:
    """Whether two races of the same pair in two places agree, and how far apart they are. None if one of them is invalid or has no interval.

    They agree if each ratio is in the other race's interval. That interval is for the truth, and the ratio has an error of its own, so
    races with the same truth often disagree: about one in six if one race's standard error is twice the other's.
    The distance is the difference of the log ratios, in standard errors of that difference. Chance alone seldom gives more than 2.
    """
    if any(one["low"] is None or one["verdict"] == "invalid" for one in (there, here)):
        return None
    agree = there["low"] <= here["ratio"] <= there["high"] and here["low"] <= there["ratio"] <= here["high"]
    error = math.hypot(*(one["sd_log_ratio"] / math.sqrt(one["epochs"]) for one in (there, here)))
    return agree, (math.log(there["ratio"]) - math.log(here["ratio"])) / error


def of_places(by_kind: dict[str, list[dict]]) -> str:
    """The same pair on hosts and on one machine, a row for each pair of races."""
    rows = ["| servers | ratio on hosts | ratio on one machine | each in the other's interval | z |", "|---|---|---|---|---|"]
    for line in by_kind.get("hosts-or-one", []):
        ratios = [f"{one['ratio']:.3f} ({one['low']:.3f} to {one['high']:.3f})" if one["low"] is not None else one["verdict"]
                  for one in (line, line["one"])]
        found = beside(line, line["one"])
        said = ["yes" if found[0] else "no", f"{found[1]:.2f}"] if found else ["-", "-"]
        rows.append(f"| {line['other']} to {line['server']} | {' | '.join(ratios + said)} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def of_planted(by_kind: dict[str, list[dict]]) -> str:
    """How much more work each server's valid races show together, with two standard errors: what was planted in them."""
    kinds = [kind for kind in ("planted-1", "planted-1-narrow", "planted-3", "planted-5") if kind in by_kind]
    servers = list(dict.fromkeys(line["server"] for kind in kinds for line in by_kind[kind]))
    rows = ["| kind | " + " | ".join(servers) + " |", "|---|" + "---|" * len(servers)]
    for kind in kinds:
        rows.append(f"| {kind} | " + " | ".join(more_work(by_kind[kind], server) for server in servers) + " |")
    return "\n".join(rows) if kinds else ""


def more_work(lines: list[dict], server: str) -> str:
    """Of one server's races."""
    valid = (line for line in lines if line["server"] == server and line["ratio"] is not None and line["verdict"] != "invalid")
    logs = [math.log(line["ratio"]) for line in valid]
    if len(logs) < 2:
        return "-"
    return f"{100 * math.expm1(-statistics.fmean(logs)):.1f} +- {200 * statistics.stdev(logs) / math.sqrt(len(logs)):.1f}"


def of_methods(by_kind: dict[str, list[dict]]) -> str:
    """False claims and misses of the usual ways to compare, beside deadheat's."""
    alike, planted = by_kind.get("wrk-aa", []), by_kind.get("wrk-3", [])
    if not alike and not planted:
        return ""
    rows = ["| method | machine time, median s | false claims, same server twice | 3 % planted: found | wrong direction |", "|---|---|---|---|---|"]
    for name, rule in RULES.items():
        said = [[rule(*line["rates"]) for line in lines] for lines in (alike, planted)]
        rows.append(row_of_method(f"wrk 5 x 20 s each: {name}", alike + planted, *said))
    ours = [by_kind.get("aa", []), by_kind.get("planted-3", [])]
    rows.append(row_of_method("deadheat race", ours[0] + ours[1], *([line["verdict"] for line in lines] for lines in ours)))
    return "\n".join(rows)


def row_of_method(name: str, lines: list[dict], alike: list[str], planted: list[str]) -> str:
    false = sum(word in CLAIMS for word in alike)
    took = statistics.median(line["took_s"] for line in lines)
    return (f"| {name} | {took:.0f} | {false} of {len(alike)} | {planted.count('slower')} of {len(planted)} "
            f"| {planted.count('faster')} |")


def of_seven(by_kind: dict[str, list[dict]]) -> str:
    """Letters and times of races of seven, beside those of two."""
    rows = ["| server | letters: four alike, three slower by 10, 20, 30 % | race, s | epoch, s per contender | the same in a race of two |",
            "|---|---|---|---|---|"]
    for line in by_kind.get("seven", []):
        letters = " ".join(text or "-" for text in line["letters"].values())
        two = [one["epoch_s"] for one in by_kind.get("aa", []) if one["server"] == line["server"] and one["epoch_s"]]
        beside = f"{statistics.median(two) / 2:.2f}" if two else "-"
        rows.append(f"| {line['server']} | {letters} | {line['took_s']:.0f} | {line['epoch_s'] / 7:.2f} | {beside} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def by_mean(first: list[float], second: list[float]) -> str:
    """The larger mean wins."""
    return "faster" if statistics.fmean(second) > statistics.fmean(first) else "slower"


def by_range(first: list[float], second: list[float]) -> str:
    """Both vary by less than 5 %, and the worst of the one is better than the best of the other."""
    if any(statistics.stdev(runs) / statistics.fmean(runs) >= 0.05 for runs in (first, second)):
        return "inconclusive"
    if min(second) > max(first):
        return "faster"
    return "slower" if max(second) < min(first) else "inconclusive"


def by_t(first: list[float], second: list[float]) -> str:
    """Welch's t test at 5 %, each run taken for a replicate."""
    errors = [statistics.variance(runs) / len(runs) for runs in (first, second)]
    t = (statistics.fmean(second) - statistics.fmean(first)) / math.sqrt(sum(errors))
    freedom = sum(errors) ** 2 / sum(error**2 / (len(first) - 1) for error in errors)
    if abs(t) < quantile_of_t(freedom):
        return "inconclusive"
    return "faster" if t > 0 else "slower"


def quantile_of_t(freedom: float) -> float:
    """The 97.5 % quantile of Student's t, by bisection of its distribution function (Simpson's rule over the density)."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def beyond_zero(t: float) -> float:
        steps = 400
        density = [scale * (1 + (t * step / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for step in range(steps + 1)]
        return t / steps / 3 * (density[0] + density[-1] + 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2]))

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond_zero(middle) < 0.475 else (low, middle)
    return low


FIGURES = {
    "aa": ("same server twice: faster or slower", "at most 3 of 60", claims),
    "planted-3": ("3 % planted: found, and when", "36 of 40, wrong direction 0; median 120 s", timed_finds),
    "planted-5": ("5 % planted: found", "39 of 40, wrong direction 0", finds),
    "planted-1": ("1 % planted: races that wrongly say equivalent, with an interval within 0.5 %", "0, wrong direction 0", near_misses),
    "planted-1-narrow": ("1 % planted, with a margin of 0.5 %: equivalent", "0, wrong direction 0", near_misses),
    "foreign": ("busy loop of another program on either core: faster or slower", "0 of 20", claims),
    "tail": ("p99 at the same rate, 20 % planted in 2 % of requests: found", "10 of 10, wrong direction 0", finds),
    "tail-aa": ("p99 at the same rate, same server twice: faster or slower", "at most 1 of 20", claims),
    "tail-aa-slow": ("the same with a p99 of 10 ms: faster or slower", "0 of 6", claims),
    "idle": ("one side collects garbage whenever it is idle: faster or slower", "0 of 10", claims),
}
RULES = {"the larger mean": by_mean, "CV < 5 % and min over max": by_range, "t test over runs": by_t}
TABLES = {
    "Goals and results": of_figures,
    "Verdicts for each kind of race": of_races,
    "Noise of each server": of_servers,
    "The same server twice: bias and noise": of_bias,
    "On hosts and on one machine": of_places,
    "Work really planted, in %, +- two standard errors": of_planted,
    "deadheat and wrk": of_methods,
    "Races of seven contenders": of_seven,
}
