#!/usr/bin/env python3
"""Makes the trending study's dataset: an SQLite file in WAL mode, the same rows on every machine.

Usage: python3 dataset.py OUTPUT

Owns the schema, the regions with their row counts, and the text of the rows. Knows no contender and no SQL that
reads. Of `random` only `Random(seed).random()` is used, the one sequence that Python promises to keep.
Titles hold on purpose what careless JSON writers get wrong: quotes, backslashes, `<`, `&`, slashes, tabs, accents,
other scripts and emoji outside the basic plane. Scores repeat on purpose, so that only a total order agrees.
"""

import os
import random
import sqlite3
import sys

SEED = 20_250_611
ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

# Rows per region: 50,000 in all, skewed; the last has fewer than the largest limit.
REGIONS = {
    "GB": 11_200,
    "DE": 9_600,
    "FR": 7_400,
    "IT": 5_600,
    "ES": 5_000,
    "PL": 3_900,
    "NL": 2_500,
    "SE": 1_700,
    "CZ": 1_200,
    "RO": 800,
    "AT": 600,
    "GR": 300,
    "PT": 163,
    "LU": 37,
}

LANGUAGE = {"GB": "en", "DE": "de", "AT": "de", "LU": "fr", "FR": "fr", "IT": "it", "ES": "es", "PL": "pl",
            "NL": "nl", "SE": "sv", "CZ": "cs", "RO": "ro", "GR": "el", "PT": "pt"}  # fmt: skip

# Per language: openings, subjects, endings. A title is one of each.
WORDS = {
    "en": (
        ["We tried", "Inside", "The truth about", "Why nobody talks about", "24 hours with", "How to fix"],
        ["the Forth Bridge at night", "fish & chips", "a £5 synthesiser", "the last ferry to Skye", "Tom's attic"],
        ['| "it actually works"', "(full episode)", "in under 10 minutes 🚂", "— part 2/3", "<live>", "& what came next"],
    ),
    "de": (
        ["Im Test", "Unterwegs", "Die ganze Wahrheit", "Zu Besuch", "24 Stunden", "Warum niemand darüber spricht"],
        ["Käsespätzle wie bei Oma", "die Nordschleife im Regen", "Münchens größte Küche", "ein Fachwerkhaus für 1 €"],
        ["– „endlich geschafft“", "(ganze Folge)", "& was danach geschah", "| Straßenküche 🥨", "<Livestream>", "Teil 2/3"],
    ),
    "fr": (
        ["On a testé", "Dans les coulisses de", "La vérité sur", "Pourquoi personne n'aime", "24 h dans"],
        ["la crème brûlée", "l'île d'Oléron", "ce garçon de café", "l'œuvre du métro", "le château à 1 €"],
        ["« enfin ! »", "(épisode complet)", "& la suite", "🥖 sans filtre", "<en direct>", "partie 2/3"],
    ),
    "it": (
        ["Abbiamo provato", "Dietro le quinte di", "La verità su", "Perché nessuno parla di", "24 ore con"],
        ["la più antica trattoria", "un'auto del '68", "il caffè perfetto", "la città sull'acqua", "mia nonna Pia"],
        ['"finalmente!"', "(puntata intera)", "& cosa è successo dopo", "🍝 senza tagli", "<diretta>", "parte 2/3"],
    ),
    "es": (
        ["Probamos", "Así se hace", "La verdad sobre", "¿Por qué nadie habla de", "24 horas en"],
        ["el jamón más caro", "la montaña del niño", "un piso de 30 m²", "el último tren", "la señora Muñoz"],
        ["— ¡por fin!", "(capítulo completo)", "& lo que pasó después", "🥘 sin cortes", "<en vivo>", "parte 2/3"],
    ),
    "pl": (
        ["Sprawdziliśmy", "Prawda o", "Dlaczego nikt nie mówi o", "24 godziny w", "Jak naprawić"],
        ["pierogach za 5 zł", "żurku z Łodzi", "najdłuższym moście", "źródłach Wisły", "starym świetle"],
        ["„wreszcie”", "(cały odcinek)", "& co było potem", "🥟 bez cięć", "<na żywo>", "część 2/3"],
    ),
    "nl": (
        ["We probeerden", "De waarheid over", "Waarom niemand praat over", "24 uur in", "Zo maak je"],
        ["de oudste molen", "een fiets van € 20", "het geïsoleerde huis", "Zeeuwse coöperaties", "oma's stamppot"],
        ["‘eindelijk’", "(hele aflevering)", "& wat daarna kwam", "🚲 zonder knippen", "<live>", "deel 2/3"],
    ),
    "sv": (
        ["Vi testade", "Sanningen om", "Därför pratar ingen om", "24 timmar i", "Så lagar du"],
        ["smörgåstårta för 10 kr", "Ölands fyrar", "den sista färjan", "ett rött hus", "älgen i trädgården"],
        ["”äntligen”", "(hela avsnittet)", "& vad som hände sen", "🫎 oklippt", "<direkt>", "del 2/3"],
    ),
    "cs": (
        ["Vyzkoušeli jsme", "Pravda o", "Proč nikdo nemluví o", "24 hodin v", "Jak opravit"],
        ["nejlepší svíčkové", "žižkovské věži", "příběhu řeky Úpy", "tramvaji č. 22", "chalupě za 1 Kč"],
        ["„konečně“", "(celý díl)", "& co bylo dál", "🍺 bez střihu", "<živě>", "část 2/3"],
    ),
    "ro": (
        ["Am încercat", "Adevărul despre", "De ce nu vorbește nimeni despre", "24 de ore în", "Cum repari"],
        ["cea mai bună ciorbă", "Țara Făgărașului", "un sat din Bărăgan", "mămăliga bunicii", "șoseaua veche"],
        ["„în sfârșit”", "(episod complet)", "& ce a urmat", "🐻 fără tăieturi", "<în direct>", "partea 2/3"],
    ),
    "el": (
        ["Δοκιμάσαμε", "Η αλήθεια για", "Γιατί κανείς δεν μιλά για", "24 ώρες με"],
        ["το παλιό καΐκι", "την πιο μικρή ταβέρνα", "ένα σπίτι 30 m²", "το τελευταίο πλοίο"],
        ["«επιτέλους»", "(όλο το επεισόδιο)", "& τι έγινε μετά", "⛵ χωρίς κοψίματα", "<ζωντανά>", "μέρος 2/3"],
    ),
    "pt": (
        ["Provámos", "A verdade sobre", "Porque é que ninguém fala de", "24 horas em", "Como se faz"],
        ["o melhor pastel de nata", "a última traineira", "uma casa de 30 m²", "Trás-os-Montes", "o elétrico n.º 28"],
        ["«finalmente»", "(episódio completo)", "& o que veio depois", "🐟 sem cortes", "<em direto>", "parte 2/3"],
    ),
}

CHANNELS = ["Küche & Co", "Studio Nord", "Die Bahnfreunde", "Chez Zoé", "L'Atelier", "Bottega 7", "Casa Muñoz",
            "Łódź na talerzu", "Fietsers", "Fjäll/Stuga", "Pražské dvory", "Țara Mea", "Το Καΐκι", "Água Viva",
            'The "Shed" Show', "Night Trains", "C:\\>retro", "1 < 2", "Tab\there", "Kleine Wolke 🌧"]  # fmt: skip


def pick(rng, choices):
    """One of `choices`, each as likely as the others."""
    return choices[int(rng.random() * len(choices))]


def video(rng, region, taken):
    """One row of `videos`; `taken` is the set of ids that exist already."""
    video_id = "".join(pick(rng, ID_ALPHABET) for _ in range(11))
    while video_id in taken:
        video_id = "".join(pick(rng, ID_ALPHABET) for _ in range(11))
    taken.add(video_id)
    openings, subjects, endings = WORDS[LANGUAGE[region]]
    title = f"{pick(rng, openings)}: {pick(rng, subjects)} {pick(rng, endings)}"
    # Views of a long tail, rounded at the top: the leaders of a region share scores.
    score = int(1_000 / (0.0001 + rng.random()))
    if score > 20_000:
        score -= score % 5_000
    folder = f"{region.lower()}/{video_id[:2]}/{video_id}"
    thumb_base = f"https://thumbs.trending.example/videos/{folder}/still-{1 + int(rng.random() * 9)}/1280x720"
    return (video_id, title, pick(rng, CHANNELS), region, score, thumb_base)


def rows(rng):
    """All rows, in an order in which the regions are mixed as arrivals would mix them."""
    taken = set()
    videos = [video(rng, region, taken) for region, count in REGIONS.items() for _ in range(count)]
    videos.sort(key=lambda row: row[0])
    return videos


def write(path, videos):
    """Writes the database to `path`, complete or not at all."""
    draft = f"{path}.draft"
    for stale in (draft, f"{draft}-wal", f"{draft}-shm", f"{path}-wal", f"{path}-shm"):
        if os.path.exists(stale):
            os.remove(stale)
    database = sqlite3.connect(draft)
    database.execute("PRAGMA page_size = 4096")
    database.execute(
        "CREATE TABLE videos(id TEXT PRIMARY KEY, title TEXT NOT NULL, channel TEXT NOT NULL, region TEXT NOT NULL,"
        " score INTEGER NOT NULL, thumb_base TEXT NOT NULL)"
    )
    database.executemany("INSERT INTO videos VALUES (?, ?, ?, ?, ?, ?)", videos)
    database.execute("CREATE INDEX videos_by_score ON videos(region, score DESC, id)")
    database.execute("ANALYZE")
    database.commit()
    database.execute("PRAGMA journal_mode = WAL")
    database.close()
    os.replace(draft, path)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: dataset.py OUTPUT")
    write(sys.argv[1], rows(random.Random(SEED)))


if __name__ == "__main__":
    main()
