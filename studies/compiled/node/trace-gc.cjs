// Read before the server in a diagnostic pass only: V8 then logs each collection.
require('node:v8').setFlagsFromString('--trace-gc');
