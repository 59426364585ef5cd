"""A load generator as articles write it: asyncio and httpx, each of N workers asks and waits for its answer.

    httpx_load.py URL CONNECTIONS SECONDS

Prints one JSON line: requests, seconds, throughput_rps, failed. What is audited is how fast such a client can be, so it
does what such clients do and nothing more: one AsyncClient, N workers, the time around each request.
"""

import asyncio
import json
import sys
import time

import httpx


async def worker(client, url, until, times, failed):
    while time.perf_counter() < until:
        begin = time.perf_counter()
        try:
            answer = await client.get(url)
            answer.raise_for_status()
        except httpx.HTTPError:
            failed.append(1)
            continue
        times.append(time.perf_counter() - begin)


async def load(url, connections, seconds):
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(limits=limits, timeout=10) as client:
        # Connections are opened before the clock runs.
        await asyncio.gather(*(client.get(url) for _ in range(connections)))
        times, failed = [], []
        begin = time.perf_counter()
        workers = (worker(client, url, begin + seconds, times, failed) for _ in range(connections))
        await asyncio.gather(*workers)
        took = time.perf_counter() - begin
    return {"requests": len(times), "seconds": took, "throughput_rps": len(times) / took, "failed": len(failed)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(load(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))))
