"""A local stand-in of the parts of the HTTP APIs of GitHub and GitLab that ci/publish.py uses. Its answers have the shapes of shapes.json, which follow the
documentation of these APIs (GitHub version 2022-11-28, GitLab v4)."""
import copy
import http.server
import io
import json
import os
import re
import threading
import urllib.parse
import zipfile

with open(os.path.join(os.path.dirname(__file__), "shapes.json"), encoding="utf-8") as file:
    SHAPES = json.load(file)


def shaped(kind, **changes):
    return {**copy.deepcopy(SHAPES[kind]), **changes}


def packed(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


class StandIn:
    """`with StandIn() as api`: an API at api.url, and the storage of artifacts on another port."""

    def __init__(self):
        self.artifacts, self.zips = [], {}
        self.comments, self.checks, self.pulls, self.notes = [], [], [shaped("pull")], []
        self.requests = []
        # The next so many GETs are answered with status 502.
        self.failing = 0

    def __enter__(self):
        self.servers = [self.serve(self.api), self.serve(self.storage)]
        self.url, self.storage_url = (f"http://127.0.0.1:{one.server_port}" for one in self.servers)
        return self

    def __exit__(self, *_):
        for one in self.servers:
            one.shutdown()
            one.server_close()

    def serve(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_one(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                url = urllib.parse.urlsplit(self.path)
                status, reply, headers = answer(self, self.command, url.path, dict(urllib.parse.parse_qsl(url.query)), body)
                data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                for key, value in {"Content-Length": len(data), **headers}.items():
                    self.send_header(key, str(value))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_PUT = handle_one

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server

    def upload(self, name, files, run=2332938, **changes):
        number = 11 + len(self.artifacts)
        self.zips[number] = files if isinstance(files, bytes) else packed(files)
        one = shaped("artifact", id=number, name=name, size_in_bytes=len(self.zips[number]), **changes)
        one["workflow_run"]["id"] = run
        self.artifacts.insert(0, one)
        return number

    def storage(self, request, _method, path, _query, _body):
        # As the real storage does: it accepts the signature in the address, and no other credentials beside it.
        if "Authorization" in request.headers:
            return 401, b"<Error><Code>InvalidAuthenticationInfo</Code></Error>", {}
        return 200, self.zips[int(path.rsplit("/", 1)[1])], {"Content-Type": "application/zip"}

    def api(self, request, method, path, query, body):
        self.requests.append((method, path, query, body))
        if path.startswith("/gitlab/"):
            return self.gitlab(request, method, path[len("/gitlab") :], query, body)
        if request.headers.get("Authorization") != "Bearer token":
            return 401, {"message": "Bad credentials"}, {}
        if method == "GET" and self.failing > 0:
            self.failing -= 1
            return 502, {"message": "Server Error"}, {}
        repository = re.fullmatch(r"/repos/octo/service(/.*)", path)
        rest = repository[1] if repository else path
        if found := re.fullmatch(r"/actions/runs/(\d+)/artifacts", rest):
            of_run = [one for one in self.artifacts if one["workflow_run"]["id"] == int(found[1])]
            return 200, {"total_count": len(of_run), "artifacts": page(of_run, query)}, {}
        if found := re.fullmatch(r"/actions/artifacts/(\d+)/zip", rest):
            return 302, b"", {"Location": f"{self.storage_url}/signed/{found[1]}"}
        if rest == "/pulls":
            matching = [one for one in self.pulls if one["head"]["label"] == query["head"] and one["state"] == query["state"]]
            return 200, page(matching, query), {}
        if rest == "/check-runs" and method == "POST":
            allowed = {"name", "head_sha", "status", "conclusion", "details_url", "external_id", "output"}
            assert set(body) <= allowed and body["conclusion"] in {"success", "failure", "neutral"} and len(body["output"]["summary"]) < 65536
            self.checks.append(shaped("check_run", **body, id=4 + len(self.checks)))
            return 201, self.checks[-1], {}
        if found := re.fullmatch(r"/issues/(\d+)/comments", rest):
            if method == "GET":
                return 200, page(self.comments, query), {}
            if len(body["body"]) > 65536:
                return 422, {"message": "Validation Failed"}, {}
            user = {"login": "github-actions[bot]", "id": 41898282, "type": "Bot"}
            self.comments.append(shaped("comment", id=1 + len(self.comments), user=user, **body))
            return 201, self.comments[-1], {}
        if found := re.fullmatch(r"/issues/comments/(\d+)", rest):
            one = next(one for one in self.comments if one["id"] == int(found[1]))
            one.update(body)
            return 200, one, {}
        return 404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}, {}

    def gitlab(self, request, method, path, query, body):
        if request.headers.get("PRIVATE-TOKEN") != "token":
            return 401, {"message": "401 Unauthorized"}, {}
        if path == "/user":
            return 200, SHAPES["gitlab_user"], {}
        if path == "/projects/5/merge_requests/9/notes":
            if method == "GET":
                return 200, page(self.notes, query), {}
            self.notes.append(shaped("gitlab_note", id=302 + len(self.notes), author=SHAPES["gitlab_user"], **body))
            return 201, self.notes[-1], {}
        if found := re.fullmatch(r"/projects/5/merge_requests/9/notes/(\d+)", path):
            one = next(one for one in self.notes if one["id"] == int(found[1]))
            one.update(body)
            return 200, one, {}
        return 404, {"message": "404 Not found"}, {}


def page(items, query):
    size = int(query.get("per_page", 30))
    begin = (int(query.get("page", 1)) - 1) * size
    return items[begin : begin + size]
