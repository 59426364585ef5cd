#!/usr/bin/env python3
"""How a race's time grows with its contenders, all else alike: the same server seven times, and twice.

  bench/linear.py     a table, as Markdown; about a quarter of an hour, in which nothing else may run

Both races have as many epochs, as long a warm-up and no verdict that ends them sooner. A race finds how long each server must be warmed up, and
of many contenders somebody is the slowest to get going: that is left out here. Needs `make setup` and `cargo build --release`.
"""
import tempfile
from pathlib import Path

import races

EPOCHS = 4
SAME = ("--epochs", str(EPOCHS), "--warmup", "2s")
FEW, MANY = 2, 7


def row(server: races.Server, folder: Path) -> str:
    """A contender's share of either race, and of an epoch of it."""
    held = {count: races.race([server.with_env()] * count, folder, *SAME) for count in (FEW, MANY)}
    for count, document in held.items():
        epochs = len(document["record"]["epochs"])
        if epochs != EPOCHS:
            raise SystemExit(f"{server.name}: a race of {count} had {epochs} epochs and not {EPOCHS}: disturbed, hold it again")
    took = {count: document["took_s"] / count for count, document in held.items()}
    epoch = {count: races.epoch_s(document) / count for count, document in held.items()}
    cells = [server.name, *(f"{seconds:.1f}" for seconds in took.values()), f"{took[MANY] / took[FEW]:.2f}",
             *(f"{seconds:.2f}" for seconds in epoch.values()), f"{epoch[MANY] / epoch[FEW]:.2f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    head = ["server", *(f"race of {count}, s a contender" for count in (FEW, MANY)), "ratio",
            *(f"epoch of {count}, s a contender" for count in (FEW, MANY)), "ratio"]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    with tempfile.TemporaryDirectory() as name:
        for server in races.servers(Path(name)).values():
            print(row(server, Path(name)), flush=True)


if __name__ == "__main__":
    main()
