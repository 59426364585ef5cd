<?php
// Contender `php`: one request. The database connection is persistent, so that a worker opens it once; statements live no
// longer than their request in PHP, so that `/` and `/anew` are the same work here.

declare(strict_types=1);

const VIDEO = 'SELECT id, title, channel, duration_s, published_at, thumb_json FROM videos WHERE id = ?';
const RELATED = 'SELECT id FROM video_related WHERE source_id = ? ORDER BY id LIMIT 8';
const SEARCH = 'SELECT v.id, v.title, v.channel, v.duration_s FROM videos_fts f JOIN videos v ON v.rowid = f.rowid'
    . ' WHERE videos_fts MATCH ? ORDER BY f.rank, v.id LIMIT 10';

[$path, $query] = explode('?', $_SERVER['REQUEST_URI'], 2) + [1 => ''];
$answer = match ($path) {
    '/', '/anew' => video(parameter($query, 'id')),
    '/search' => search(parameter($query, 'q')),
    default => null,
};
$body = json_encode($answer, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR);
http_response_code($answer === null ? 404 : 200);
header('content-type: application/json');
header('content-length: ' . strlen($body));
echo $body;

/** The first value of a parameter, percent-decoded; empty when it is missing. `$_GET` would give the last. */
function parameter(string $query, string $name): string
{
    foreach (explode('&', $query) as $pair) {
        [$found, $value] = explode('=', $pair, 2) + [1 => ''];
        if ($found === $name) {
            return rawurldecode($value);
        }
    }
    return '';
}

function database(): PDO
{
    $database = new PDO('sqlite:' . $_SERVER['METADATA_DB'], null, null, [
        PDO::ATTR_PERSISTENT => true,
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_TIMEOUT => 5,
        PDO::SQLITE_ATTR_OPEN_FLAGS => PDO::SQLITE_OPEN_READONLY,
    ]);
    $database->exec('PRAGMA query_only = 1; PRAGMA mmap_size = 268435456');
    return $database;
}

/** @return list<array<int, mixed>> */
function rows(PDO $database, string $sql, string $value): array
{
    $statement = $database->prepare($sql);
    $statement->execute([$value]);
    return $statement->fetchAll(PDO::FETCH_NUM);
}

function video(string $id): ?array
{
    $database = database();
    $found = rows($database, VIDEO, $id);
    if ($found === []) {
        return null;
    }
    [$id, $title, $channel, $seconds, $at, $thumbs] = $found[0];
    $related = array_column(rows($database, RELATED, $id), 0);
    return [
        'id' => $id,
        'title' => $title,
        'channel' => $channel,
        'duration' => ['seconds' => $seconds, 'text' => duration_text($seconds)],
        'published' => ['at' => $at, 'year' => (int) substr($at, 0, 4), 'month' => (int) substr($at, 5, 2)],
        'thumbnails' => json_decode($thumbs, true, 8, JSON_THROW_ON_ERROR),
        'related' => ['count' => count($related), 'ids' => $related],
    ];
}

/** `1:02:03`, or `2:03` below an hour. */
function duration_text(int $seconds): string
{
    $hours = intdiv($seconds, 3600);
    return $hours > 0
        ? sprintf('%d:%02d:%02d', $hours, intdiv($seconds, 60) % 60, $seconds % 60)
        : sprintf('%d:%02d', intdiv($seconds, 60), $seconds % 60);
}

/** Words are runs of ASCII letters and digits; a row must have all of them. */
function search(string $query): array
{
    $words = preg_split('/[^A-Za-z0-9]+/', $query, -1, PREG_SPLIT_NO_EMPTY);
    $match = implode(' ', array_map(fn(string $word): string => '"' . $word . '"', $words));
    $items = [];
    foreach ($match === '' ? [] : rows(database(), SEARCH, $match) as [$id, $title, $channel, $seconds]) {
        $items[] = ['id' => $id, 'title' => $title, 'channel' => $channel, 'duration_s' => $seconds];
    }
    return ['count' => count($items), 'items' => $items];
}
