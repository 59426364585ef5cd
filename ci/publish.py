#!/usr/bin/env python3
"""Fetches the record of an earlier attempt, and publishes the result of a race: comment and check on GitHub, note on GitLab.

  publish.py github-earlier --name NAME --into DIR    in the job that races: the record of the attempt before, if there is one
  publish.py github --name NAME [--author LOGIN]      in a workflow_run that follows that job
  publish.py gitlab --from DIR [--page PATH]          in the job that raced, with DIR as ci/race.sh left it

It needs Python 3.8 and nothing else, and takes everything else from the environment that GitHub and GitLab set, such as GITHUB_API_URL. `github` reads an
artifact that a fork may have written. So it takes only the record from the artifact, has deadheat read it, and knows commit and pull request from the
event and the API.
"""
import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile

RECORD = "race.jsonl"
# Larger artifacts and records are refused: the job that reads them has the right to write.
MOST_ARTIFACT_BYTES = 64 << 20
MOST_RECORD_BYTES = 256 << 20
# The services accept 65,536 and 1,000,000 characters.
MOST_COMMENT = 65_000
REPORT_S = 300


class Problem(Exception):
    """What went wrong, and what to do."""


def tamed(text):
    """A message for the log that may hold text of an artifact. GitHub's runner takes `::command` at the begin of a line for a command, and `##[command]`
    anywhere in a line, so neither is left."""
    return text.replace("\r", " ").replace("\n", "\n  ").replace("::", ": :").replace("##[", "## [")


class SameHostToken(urllib.request.HTTPRedirectHandler):
    """Follows redirects, and gives the token to no other host: downloads are redirected to a storage that refuses it."""

    def redirect_request(self, request, response, code, message, headers, url):
        following = super().redirect_request(request, response, code, message, headers, url)
        if following is not None and urllib.parse.urlsplit(url).netloc != urllib.parse.urlsplit(request.full_url).netloc:
            following.remove_header("Authorization")
            following.remove_header("Private-token")
        return following


class Api:
    """An HTTP API with JSON bodies."""

    def __init__(self, base, headers):
        self.base = base.rstrip("/")
        self.headers = {"User-Agent": "deadheat-ci", **headers}
        self.opener = urllib.request.build_opener(SameHostToken)

    def call(self, method, path, body=None, **query):
        """The decoded answer."""
        return json.loads(self.bytes(method, path, body, **query) or b"null")

    def bytes(self, method, path, body=None, most=MOST_ARTIFACT_BYTES, **query):
        """The body of the answer. Only a GET is repeated: repeating another method could do it twice."""
        url = f"{self.base}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, **({"Content-Type": "application/json"} if data else {})}
        tries = 3 if method == "GET" else 1
        for left in reversed(range(tries)):
            request = urllib.request.Request(url, data=data, headers=headers, method=method)
            try:
                with self.opener.open(request, timeout=60) as answer:
                    text = answer.read(most + 1)
                if len(text) > most:
                    raise Problem(f"{method} {url}: the answer is larger than {most} bytes")
                return text
            except urllib.error.HTTPError as error:
                if left == 0 or error.code < 500 and error.code != 429:
                    said = error.read(500).decode(errors="replace")
                    raise Problem(f"{method} {url}: status {error.code}: {said}") from error
            except OSError as error:
                if left == 0:
                    raise Problem(f"{method} {url}: {error}") from error
            time.sleep(float(os.environ.get("DEADHEAT_RETRY_S", "2")))

    def pages(self, path, key=None, **query):
        """All items of a list that comes in pages of 100. With a key, the list is in that field of each page."""
        for page in range(1, 101):
            answer = self.call("GET", path, per_page=100, page=page, **query)
            items = answer[key] if key else answer
            yield from items
            if len(items) < 100:
                return


def variable(name):
    value = os.environ.get(name, "")
    if not value:
        raise Problem(f"the environment has no {name}; run this in a job of the CI service")
    return value


def github():
    """The API of GitHub, and the path of the repository in it."""
    headers = {
        "Authorization": f"Bearer {variable('GITHUB_TOKEN')}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return Api(variable("GITHUB_API_URL"), headers), f"/repos/{variable('GITHUB_REPOSITORY')}"


def artifacts(api, repository, run, name):
    """The artifacts of this race in a run, by attempt."""
    found = {}
    for one in api.pages(f"{repository}/actions/runs/{run}/artifacts", key="artifacts"):
        attempt = re.fullmatch(re.escape(name) + r"-attempt-([1-9][0-9]{0,5})", one["name"])
        if attempt and not one["expired"]:
            found[int(attempt[1])] = one
    return found


def record_of(api, repository, artifact):
    """The bytes of the record in an artifact; None if it has none."""
    if artifact["size_in_bytes"] > MOST_ARTIFACT_BYTES:
        raise Problem(f"the artifact {artifact['name']} is larger than {MOST_ARTIFACT_BYTES} bytes")
    packed = api.bytes("GET", f"{repository}/actions/artifacts/{artifact['id']}/zip")
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            if RECORD not in archive.namelist():
                return None
            with archive.open(RECORD) as file:
                record = file.read(MOST_RECORD_BYTES + 1)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise Problem(f"the artifact {artifact['name']} cannot be unpacked: {error}") from error
    if len(record) > MOST_RECORD_BYTES:
        raise Problem(f"the record in {artifact['name']} is larger than {MOST_RECORD_BYTES} bytes")
    return record


def github_earlier(asked):
    this = int(variable("GITHUB_RUN_ATTEMPT"))
    if this == 1:
        return
    api, repository = github()
    earlier = {n: one for n, one in artifacts(api, repository, variable("GITHUB_RUN_ID"), asked.name).items() if n < this}
    for attempt in sorted(earlier, reverse=True):
        record = record_of(api, repository, earlier[attempt])
        if record is not None:
            with open(os.path.join(asked.into, RECORD), "wb") as file:
                file.write(record)
            print(f"this attempt continues the race of attempt {attempt}")
            return
    # Each attempt that raced has left its record, unless its machine was lost.
    print("no earlier attempt has raced: a new race begins")


def reported(record):
    """What deadheat says of a record: its comment, and its conclusion with title and reason."""
    conditions = [line for line in os.environ.get("DEADHEAT_FAIL_IF", "").splitlines() if line]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, RECORD)
        with open(path, "wb") as file:
            file.write(record)
        words = [os.environ.get("DEADHEAT", "deadheat"), "report", path, "--ci", folder]
        words += [word for condition in conditions for word in ("--fail-if", condition)]
        # The program gets no token.
        environment = {name: value for name, value in os.environ.items() if name != "GITHUB_TOKEN"}
        try:
            done = subprocess.run(words, env=environment, timeout=REPORT_S, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Problem(f"{words[0]}: {error}") from error
        if done.returncode not in (0, 1, 3):
            said = done.stderr.decode(errors="replace").strip()
            raise Problem(f"deadheat cannot report the record of this run: {said}")
        with open(os.path.join(folder, "comment.md"), encoding="utf-8") as file:
            comment = file.read()
        with open(os.path.join(folder, "conclusion.json"), encoding="utf-8") as file:
            return comment, json.load(file)


def composed(marker, comment, links):
    """The body of a comment: the marker by which it is found again, what deadheat wrote, and links."""
    end = "\n" + " · ".join(f"[{word}]({url})" for word, url in links) + "\n"
    if len(marker) + len(comment) + len(end) > MOST_COMMENT:
        comment = comment.splitlines()[0][:1000] + "\n\nThe comment would be too long; the page has everything.\n"
    return f"{marker}\n{comment}{end}"


def pull_request(api, repository, run):
    """The open pull request whose head the run raced; None if there is none, or if its head has moved on. The event names no pull request of a fork."""
    if run["event"] != "pull_request" or not run.get("head_repository"):
        return None
    head = run["head_repository"]
    query = {"state": "open", "head": f"{head['owner']['login']}:{run['head_branch']}"}
    for one in api.pages(f"{repository}/pulls", **query):
        source = one["head"].get("repo") or {}
        if one["head"]["sha"] == run["head_sha"] and source.get("full_name") == head["full_name"]:
            return one["number"]
    return None


def github_publish(asked):
    with open(variable("GITHUB_EVENT_PATH"), encoding="utf-8") as file:
        run = json.load(file)["workflow_run"]
    api, repository = github()
    artifact = artifacts(api, repository, run["id"], asked.name).get(run["run_attempt"])
    record = record_of(api, repository, artifact) if artifact else None
    if record is None:
        print(f"attempt {run['run_attempt']} of run {run['id']} left no record: there is nothing to publish")
        return
    comment, conclusion = reported(record)
    page = f"{run['html_url']}/artifacts/{artifact['id']}"
    summary = composed("", comment, [("page and record", page), ("run", run["html_url"])])
    check = {
        "name": asked.name,
        "head_sha": run["head_sha"],
        "status": "completed",
        "conclusion": conclusion["conclusion"],
        "details_url": run["html_url"],
        "external_id": f"{run['id']}-{run['run_attempt']}",
        "output": {"title": conclusion["title"], "summary": summary},
    }
    api.call("POST", f"{repository}/check-runs", check)
    print(tamed(f"check {asked.name} of {run['head_sha']}: {conclusion['conclusion']}: {conclusion['reason']}"))
    number = pull_request(api, repository, run)
    if number is None:
        print("no open pull request has this commit as its head: there is no comment")
        return
    marker = f"<!-- deadheat: {asked.name} -->"
    body = {"body": composed(marker, comment, [("page and record", page), ("run", run["html_url"])])}
    for one in api.pages(f"{repository}/issues/{number}/comments"):
        # Anybody can write the marker; only our own comment is ours to change.
        if one["body"].startswith(marker) and (one.get("user") or {}).get("login") == asked.author:
            api.call("PATCH", f"{repository}/issues/comments/{one['id']}", body)
            print(f"updated the comment on #{number}")
            return
    api.call("POST", f"{repository}/issues/{number}/comments", body)
    print(f"commented on #{number}")


def gitlab_publish(asked):
    iid = os.environ.get("CI_MERGE_REQUEST_IID")
    token = os.environ.get("DEADHEAT_TOKEN")
    if not iid or not token:
        print("no note: this is no pipeline of a merge request, or it has no DEADHEAT_TOKEN")
        return
    path = os.path.join(asked.folder, "comment.md")
    if not os.path.exists(path):
        print(f"no note: there is no {path}")
        return
    with open(path, encoding="utf-8") as file:
        comment = file.read()
    links = [("job", variable("CI_JOB_URL"))]
    if asked.page:
        links.insert(0, ("page", f"{variable('CI_JOB_URL')}/artifacts/file/{urllib.parse.quote(asked.page)}"))
    api = Api(variable("CI_API_V4_URL"), {"PRIVATE-TOKEN": token})
    notes = f"/projects/{urllib.parse.quote(variable('CI_PROJECT_ID'), safe='')}/merge_requests/{iid}/notes"
    marker = f"<!-- deadheat: {asked.name} -->"
    body = {"body": composed(marker, comment, links)}
    own = api.call("GET", "/user")["id"]
    for one in api.pages(notes):
        if one["body"].startswith(marker) and one["author"]["id"] == own:
            api.call("PUT", f"{notes}/{one['id']}", body)
            print(f"updated the note on !{iid}")
            return
    api.call("POST", notes, body)
    print(f"wrote a note on !{iid}")


def name(text):
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,80}", text) or "--" in text:
        raise argparse.ArgumentTypeError("letters, digits, dots, single dashes and underscores are allowed")
    return text


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    earlier = commands.add_parser("github-earlier", help="fetch the record of the attempt before")
    earlier.add_argument("--name", type=name, default="deadheat", help="the name of the race [default: deadheat]")
    earlier.add_argument("--into", required=True, metavar="DIR", help="the folder that gets the record")
    earlier.set_defaults(run=github_earlier)
    publish = commands.add_parser("github", help="write comment and check, after a workflow_run event")
    publish.add_argument("--name", type=name, default="deadheat", help="the name of the race [default: deadheat]")
    publish.add_argument("--author", default="github-actions[bot]", help="the account of the token [default: github-actions[bot]]")
    publish.set_defaults(run=github_publish)
    note = commands.add_parser("gitlab", help="write a note on the merge request")
    note.add_argument("--name", type=name, default="deadheat", help="the name of the race [default: deadheat]")
    note.add_argument("--from", dest="folder", required=True, metavar="DIR", help="the folder that race.sh filled")
    note.add_argument("--page", help="path of the page among the job's artifacts")
    note.set_defaults(run=gitlab_publish)
    asked = parser.parse_args(arguments)
    try:
        asked.run(asked)
    except Problem as problem:
        print(tamed(f"deadheat: {problem}"), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
