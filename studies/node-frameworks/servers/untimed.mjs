// What all servers share: no timeouts, because a contender may be frozen between two slices of load. Knows no framework.

/** Takes every timeout away from one of Node's HTTP servers. Without a keep-alive timeout, Node sends no `keep-alive` header. */
export function untimed(server) {
  server.keepAliveTimeout = 0;
  server.headersTimeout = 0;
  server.requestTimeout = 0;
  server.timeout = 0;
}
