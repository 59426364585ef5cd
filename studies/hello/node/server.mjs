// Contender `node`: Node's own HTTP server, one process.

import { serve } from "./http.mjs";

serve();
