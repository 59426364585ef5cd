<?php
// Contender `php`: one request. The database connection is persistent, so that a worker opens it once.

declare(strict_types=1);

const KEY = 'deadheat-trending';
const QUERY = 'SELECT id, title, channel, score, thumb_base FROM videos'
    . ' WHERE region = ? ORDER BY score DESC, id LIMIT ?';

[$path, $query] = explode('?', $_SERVER['REQUEST_URI'], 2) + [1 => ''];
if ($path !== '/api/trending') {
    rung($path);
} else {
    $region = region_of(parameter($query, 'region'));
    $items = items($region, limit_of(parameter($query, 'limit')));
    $count = count($items);
    $answer = ['region' => $region, 'count' => $count, 'token' => token_of($region, $count), 'items' => $items];
    header('cache-control: public, max-age=30, s-maxage=120');
    send(200, json_encode($answer, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR));
}

/** A rung of the ladder: the server alone, with JSON, or with the query as well. Without a token. */
function rung(string $path): void
{
    if ($path === '/ladder/nothing') {
        send(200, '{}');
    } elseif ($path === '/ladder/json' || $path === '/ladder/query') {
        $items = $path === '/ladder/json' ? ladder_items() : items('DE', 24);
        $answer = ['region' => 'DE', 'count' => count($items), 'token' => '', 'items' => $items];
        send(200, json_encode($answer, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR));
    } else {
        send(404, '{"error":"not found"}');
    }
}

/** As many items as an answer has; PHP keeps nothing from request to request, so that it makes them anew. */
function ladder_items(): array
{
    $items = [];
    for ($n = 0; $n < 24; $n++) {
        $base = "https://thumbs.trending.example/videos/de/la/ladder-$n/still-1/1280x720";
        $title = "A title that is as long as those of the dataset, number $n (full episode)";
        $thumbs = ["$base/hq.webp", "$base/sd.webp"];
        $items[] = [
            'id' => "ladder-$n",
            'title' => $title,
            'channel' => "Channel $n",
            'score' => 100_000 - $n,
            'thumbs' => $thumbs,
        ];
    }
    return $items;
}

function send(int $status, string $body): void
{
    http_response_code($status);
    header('content-type: application/json');
    header('content-length: ' . strlen($body));
    echo $body;
}

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

/** The first two ASCII letters in upper case, or GB when there is none. */
function region_of(string $value): string
{
    $letters = substr(preg_replace('/[^A-Za-z]/', '', $value), 0, 2);
    return $letters === '' ? 'GB' : strtoupper($letters);
}

/** A plain decimal integer of 1 or more, at most 50; everything else means 24. */
function limit_of(string $value): int
{
    $limit = ctype_digit($value) ? min((int) $value, 50) : 0;
    return $limit === 0 ? 24 : $limit;
}

function token_of(string $region, int $count): string
{
    $message = $region . '.' . $count . '.' . intdiv(time(), 60);
    $mac = base64_encode(hash_hmac('sha256', $message, KEY, true));
    return $message . '.' . substr(strtr($mac, '+/', '-_'), 0, 16);
}

/** @return list<array{id: string, title: string, channel: string, score: int, thumbs: array{string, string}}> */
function items(string $region, int $limit): array
{
    $database = new PDO('sqlite:' . $_SERVER['TRENDING_DB'], null, null, [
        PDO::ATTR_PERSISTENT => true,
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_TIMEOUT => 5,
        PDO::SQLITE_ATTR_OPEN_FLAGS => PDO::SQLITE_OPEN_READONLY,
    ]);
    $database->exec('PRAGMA query_only = 1');
    $statement = $database->prepare(QUERY);
    $statement->bindValue(1, $region);
    $statement->bindValue(2, $limit, PDO::PARAM_INT);
    $statement->execute();
    $items = [];
    while ($row = $statement->fetch(PDO::FETCH_NUM)) {
        [$id, $title, $channel, $score, $thumb_base] = $row;
        $thumbs = [$thumb_base . '/hq.webp', $thumb_base . '/sd.webp'];
        $items[] = ['id' => $id, 'title' => $title, 'channel' => $channel, 'score' => $score, 'thumbs' => $thumbs];
    }
    return $items;
}
