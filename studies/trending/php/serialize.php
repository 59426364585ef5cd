<?php
// The measure `serialize`: how long PHP takes to write the 24-item answer as JSON a million times.

const TIMES = 1_000_000;
const FLAGS = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_LINE_TERMINATORS;

$text = file_get_contents(__DIR__ . '/../shared/answer-24.json');
$answer = json_decode($text, true);
if (json_encode($answer, FLAGS) !== $text) {
    fwrite(STDERR, "the answer is not written as it was read\n");
    exit(1);
}
$begin = hrtime(true);
$sum = 0;
for ($turn = 0; $turn < TIMES; $turn += 1) {
    $sum += strlen(json_encode($answer, FLAGS));
}
$seconds = (hrtime(true) - $begin) / 1e9;
if ($sum !== strlen($text) * TIMES) {
    fwrite(STDERR, "not every turn wrote the answer\n");
    exit(1);
}
echo json_encode(['value' => $seconds, 'unit' => 's']), "\n";
