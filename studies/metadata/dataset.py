#!/usr/bin/env python3
"""Makes the metadata study's dataset: an SQLite file in WAL mode, the same rows on every machine.

Usage: python3 dataset.py OUTPUT      the database
       python3 dataset.py --lists     requests/{lookup,anew,search}.txt beside this file: what scenarios ask

Owns the schema, the text of the rows and which of them are asked for. Knows no contender and no SQL that reads. Of
`random` only `Random(seed).random()` is used, the one sequence that Python promises to keep.
"""

import json
import os
import random
import sqlite3
import sys

SEED = 20_250_702
VIDEOS = 20_000
LOOKUPS = 2_000
SEARCHES = 200
ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# Most videos have some related ones, a few have none, and some more than are answered.
MOST_RELATED = 12

ADJECTIVES = """quiet hidden ancient broken electric frozen golden hollow iron lonely modern narrow open painted rapid
 silver tiny urban velvet wild amber bitter coastal distant early faded gentle humble inland jagged""".split()
NOUNS = """bridge harbour kitchen mountain orchestra railway river signal studio tower valley village workshop archive
 bakery canal desert engine forest garden island jungle keyboard lantern market needle ocean piano quarry rocket""".split()
VERBS = """building chasing cleaning crossing drawing fixing growing hearing inventing joining keeping lifting making
 naming opening painting reading saving testing visiting""".split()
ENDINGS = ["(full episode)", "| part 2/3", "& what came next", '"it works"', "in 10 minutes", "<live>", "für Anfänger",
           "à la carte", "— the ending 🎬", "\\o/", "with\ttabs", "", "", ""]  # fmt: skip
CHANNELS = ["Night Trains", "Küche & Co", "Studio Nord", "L'Atelier", "Casa Muñoz", 'The "Shed" Show', "1 < 2",
            "Fjäll/Stuga", "C:\\>retro", "Kleine Wolke 🌧", "Archive Twelve", "Signal and Noise"]  # fmt: skip
THUMBNAILS = [("default", 120, 90), ("medium", 320, 180), ("high", 480, 360), ("standard", 640, 480),
              ("maxres", 1280, 720)]  # fmt: skip


def pick(rng, choices):
    """One of `choices`, each as likely as the others."""
    return choices[int(rng.random() * len(choices))]


def below(rng, end):
    """A whole number from 0 to `end`, without `end`."""
    return int(rng.random() * end)


def new_id(rng, taken):
    """An id that `taken` does not hold yet; it does afterwards."""
    while True:
        video_id = "".join(pick(rng, ID_ALPHABET) for _ in range(11))
        if video_id not in taken:
            taken.add(video_id)
            return video_id


def thumbnails(video_id):
    """The pictures of a video, as the JSON text that is stored."""
    base = f"https://thumbs.metadata.example/vi/{video_id}"
    sizes = {name: {"url": f"{base}/{name}.jpg", "width": width, "height": height}
             for name, width, height in THUMBNAILS}  # fmt: skip
    return json.dumps(sizes)


def video(rng, video_id):
    """One row of `videos`."""
    title = f"{pick(rng, VERBS)} the {pick(rng, ADJECTIVES)} {pick(rng, NOUNS)} {pick(rng, ENDINGS)}".strip()
    # From half a minute to some hours: the text of a duration has one form below an hour and another above.
    duration_s = 30 + int(7_000 * rng.random() ** 2 / (0.3 + rng.random()))
    published_at = (
        f"{2006 + below(rng, 19)}-{1 + below(rng, 12):02}-{1 + below(rng, 28):02}"
        f"T{below(rng, 24):02}:{below(rng, 60):02}:{below(rng, 60):02}Z"
    )
    title = title[0].upper() + title[1:]
    return (video_id, title, pick(rng, CHANNELS), duration_s, published_at, thumbnails(video_id))


def related(rng, videos):
    """All rows of `video_related`."""
    pairs = set()
    for row in videos:
        for _ in range(below(rng, MOST_RELATED + 1)):
            other = videos[below(rng, len(videos))][0]
            if other != row[0]:
                pairs.add((row[0], other))
    return sorted(pairs)


def rows():
    """Videos, and which are related to which."""
    rng, taken = random.Random(SEED), set()
    videos = [video(rng, new_id(rng, taken)) for _ in range(VIDEOS)]
    return videos, related(rng, videos)


def write(path, videos, pairs):
    """Writes the database to `path`, complete or not at all."""
    draft = f"{path}.draft"
    for stale in (draft, f"{draft}-wal", f"{draft}-shm", f"{path}-wal", f"{path}-shm"):
        if os.path.exists(stale):
            os.remove(stale)
    database = sqlite3.connect(draft)
    database.execute("PRAGMA page_size = 4096")
    database.execute(
        "CREATE TABLE videos(id TEXT PRIMARY KEY, title TEXT NOT NULL, channel TEXT NOT NULL,"
        " duration_s INTEGER NOT NULL, published_at TEXT NOT NULL, thumb_json TEXT NOT NULL)"
    )
    database.execute(
        "CREATE TABLE video_related(source_id TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY(source_id, id)) WITHOUT ROWID"
    )
    database.execute(
        "CREATE VIRTUAL TABLE videos_fts USING fts5(title, channel, content='videos', content_rowid='rowid')"
    )
    database.executemany("INSERT INTO videos VALUES (?, ?, ?, ?, ?, ?)", videos)
    database.executemany("INSERT INTO video_related VALUES (?, ?)", pairs)
    database.execute("INSERT INTO videos_fts(videos_fts) VALUES ('rebuild')")
    database.execute("INSERT INTO videos_fts(videos_fts) VALUES ('optimize')")
    database.execute("ANALYZE")
    database.commit()
    database.execute("PRAGMA journal_mode = WAL")
    database.close()
    os.replace(draft, path)


def write_lists():
    """Which ids and words are asked for; a list's order is that of popularity, where there is one."""
    videos, _ = rows()
    rng = random.Random(SEED + 1)
    wanted = {}
    while len(wanted) < LOOKUPS:
        wanted[pick(rng, videos)[0]] = None
    searches = {}
    while len(searches) < SEARCHES:
        words = [pick(rng, ADJECTIVES), pick(rng, NOUNS)] if rng.random() < 0.8 else [pick(rng, NOUNS)]
        searches["+".join(words)] = None
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requests")
    os.makedirs(folder, exist_ok=True)
    lists = {
        "lookup": [f"/?id={one}" for one in wanted],
        "anew": [f"/anew?id={one}" for one in wanted],
        "search": [f"/search?q={one}" for one in searches],
    }
    for name, lines in lists.items():
        with open(os.path.join(folder, f"{name}.txt"), "w", encoding="utf-8") as file:
            file.write("# Made by `dataset.py --lists`.\n" + "\n".join(lines) + "\n")


def main():
    if sys.argv[1:] == ["--lists"]:
        write_lists()
    elif len(sys.argv) == 2:
        write(sys.argv[1], *rows())
    else:
        sys.exit("usage: dataset.py OUTPUT | --lists")


if __name__ == "__main__":
    main()
