"""Tests of the CI kit: each step of its actions runs in the environment of a job, against a local stand-in of the services.

  python3 -m unittest discover -s ci/test      after `cargo build -p deadheat -p deadheat-testkit`; it needs python3-yaml, git and bash
"""
import contextlib
import glob
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
KIT = os.path.dirname(HERE)
ROOT = os.path.dirname(KIT)
sys.path[:0] = [HERE, KIT]
import actions
import publish
from standin import StandIn, packed, shaped

TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
DEADHEAT = os.environ.get("DEADHEAT", os.path.join(TARGET, "debug", "deadheat"))
SERVER = os.environ.get("DEADHEAT_TEST_SERVER", os.path.join(TARGET, "debug", "deadheat-test-server"))
RUN = 2332938
MARKER = "<!-- deadheat: deadheat -->"
# A race that is decided at its only look, after three epochs, because the difference is large.
SHORT = ["--epochs=3", "--cpu-latency=any", "--warmup=50ms", "--measure=150ms", "--slice=20ms", "--connections=2", "--metric=throughput,cpu"]


def environment(**more):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "DEADHEAT_PORTS") if name in os.environ}
    return {**kept, "DEADHEAT_RETRY_S": "0", **more}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="deadheat-ci-")
        self.addCleanup(shutil.rmtree, self.folder)

    def publish(self, *words, **variables):
        done = subprocess.run(
            [sys.executable, os.path.join(KIT, "publish.py"), *words],
            cwd=self.folder,
            env=environment(DEADHEAT=DEADHEAT, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=170,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()


class Files(unittest.TestCase):
    """What the files of the kit may contain."""

    def test_actions_keep_the_rules(self):
        for path in ("action.yml", "comment/action.yml"):
            self.assertEqual(actions.check(os.path.join(KIT, path)), [])

    def test_workflows_have_least_permissions_and_no_expression_in_a_script(self):
        paths = glob.glob(os.path.join(KIT, "examples", "github-*.yml"))
        self.assertEqual(len(paths), 2)
        allowed = {
            "github-race.yml": {"contents": "read", "actions": "read"},
            "github-comment.yml": {"actions": "read", "checks": "write", "pull-requests": "write"},
        }
        for path in paths:
            workflow = actions.load(path)
            self.assertEqual(workflow["permissions"], allowed[os.path.basename(path)], path)
            for job in workflow["jobs"].values():
                self.assertIn("timeout-minutes", job)
                for step in job["steps"]:
                    self.assertNotIn("run", step, "a user copies no script")
                    own = step["uses"].startswith("deadheat/deadheat/ci")
                    self.assertTrue(own or actions.PINNED.fullmatch(step["uses"]), step["uses"])
                    action = os.path.join(KIT, step["uses"].split("@")[0][len("deadheat/deadheat/ci") :].strip("/"), "action.yml")
                    if own:
                        self.assertLessEqual(set(step.get("with", {})), set(actions.load(action)["inputs"]))
        # The second workflow waits for the first one by its name, and checks out nothing.
        race, comment = (actions.load(os.path.join(KIT, "examples", f"github-{which}.yml")) for which in ("race", "comment"))
        trigger = comment.get("on", comment.get(True))
        self.assertEqual(trigger["workflow_run"]["workflows"], [race["name"]])
        self.assertFalse([step for step in comment["jobs"]["comment"]["steps"] if "checkout" in step["uses"]])

    def test_the_book_shows_the_examples(self):
        with open(os.path.join(ROOT, "docs", "src", "compare-in-ci.md"), encoding="utf-8") as file:
            blocks = re.findall(r"^```yaml\n(.*?)^```", file.read(), re.M | re.S)
        for block, which in zip(blocks, ("race", "comment")):
            self.assertEqual(yaml.safe_load(block), actions.load(os.path.join(KIT, "examples", f"github-{which}.yml")))

    def test_the_other_examples_name_files_and_options_that_exist(self):
        gitlab = actions.load(os.path.join(KIT, "examples", "gitlab-ci.yml"))["deadheat"]
        scripts = gitlab["before_script"] + gitlab["script"] + gitlab["after_script"]
        used = re.findall(r"/opt/deadheat/ci/(\S+?)[\s)\"]", " ".join(scripts) + " ")
        self.assertEqual(sorted(set(used)), ["install.sh", "publish.py", "race.sh"])
        self.assertEqual(gitlab["allow_failure"]["exit_codes"], [3])
        for script in glob.glob(os.path.join(KIT, "*.sh")) + glob.glob(os.path.join(KIT, "examples", "*.sh")):
            subprocess.run(["bash", "-n", script], check=True)
            self.assertTrue(os.access(script, os.X_OK), script)

    def test_the_key_of_the_cache_follows_the_source(self):
        key = lambda root: subprocess.run([os.path.join(root, "ci", "install.sh"), "--key"], check=True, stdout=subprocess.PIPE).stdout
        with tempfile.TemporaryDirectory() as copy:
            copied(copy)
            before = key(copy)
            self.assertRegex(before, rb"^[0-9a-f]{15,16}\n$")
            with open(os.path.join(copy, "crates", "a.rs"), "w") as file:
                file.write("x")
            self.assertNotEqual(key(copy), before)

    def test_the_cache_holds_only_the_program_of_its_key(self):
        for path in ("action.yml", "comment/action.yml"):
            [cache] = [step["with"] for step in actions.load(os.path.join(KIT, path))["runs"]["steps"] if "cache@" in step.get("uses", "")]
            for value in (cache["path"], cache["key"]):
                self.assertTrue(value.endswith("${{ steps.begin.outputs.key }}"), value)


def copied(folder):
    """Copies what the key of the cache needs to a folder."""
    os.makedirs(os.path.join(folder, "ci"))
    shutil.copy(os.path.join(KIT, "install.sh"), os.path.join(folder, "ci"))
    for name in ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml"):
        shutil.copy(os.path.join(ROOT, name), folder)
    os.makedirs(os.path.join(folder, "crates"))


class Install(Folder):
    """Which program install.sh uses, with stand-ins for cargo and for the C library's version."""

    def program(self, name, text):
        path = os.path.join(self.folder, "bin", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def install(self):
        """The path of the program, and how often one was built so far."""
        variables = environment()
        variables["PATH"] = os.path.join(self.folder, "bin") + ":" + variables["PATH"]
        script = [os.path.join(self.folder, "source", "ci", "install.sh"), os.path.join(self.folder, "cache")]
        done = subprocess.run(script, env=variables, check=True, stdout=subprocess.PIPE)
        with open(os.path.join(self.folder, "built"), encoding="utf-8") as file:
            return done.stdout.decode().strip(), len(file.readlines())

    def test_a_program_is_built_for_each_source_and_c_library_and_if_it_does_not_run(self):
        copied(os.path.join(self.folder, "source"))
        build = 'for root; do :; done; mkdir -p "$root/bin"; echo "#!/bin/sh" > "$root/bin/deadheat"; chmod +x "$root/bin/deadheat"'
        self.program("cargo", f"{build}; echo built >> {self.folder}/built")
        self.program("getconf", "echo glibc 2.39")
        first = self.install()
        self.assertTrue(os.access(first[0], os.X_OK), first)
        self.assertEqual(first[1], 1)
        self.assertEqual(self.install(), first)
        with open(first[0], "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 1\n")
        self.assertEqual(self.install(), (first[0], 2))
        self.program("getconf", "echo glibc 2.35")
        second = self.install()
        self.assertEqual((second[0] != first[0], second[1]), (True, 3))
        with open(os.path.join(self.folder, "source", "crates", "a.rs"), "w", encoding="utf-8") as file:
            file.write("x")
        third = self.install()
        self.assertEqual((third[0] not in (first[0], second[0]), third[1]), (True, 4))


class Script(Folder):
    """What race.sh makes of an exit status, with a stand-in for the program."""

    def attempt(self, race):
        program = os.path.join(self.folder, "deadheat")
        with open(program, "w", encoding="utf-8") as file:
            # `report` says that the record in the folder is green.
            green = """printf '{\\n  "conclusion": "success",\\n}\\n' > conclusion.json"""
            file.write(f"#!/bin/sh\ncase $1 in race) {race} ;; *) {green} ;; esac\n")
        os.chmod(program, 0o755)
        script = [os.path.join(KIT, "race.sh"), ".", "bench"]
        done = subprocess.run(script, cwd=self.folder, env=environment(DEADHEAT=program), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, os.path.exists(os.path.join(self.folder, "conclusion.json"))

    def test_a_refused_attempt_does_not_show_the_result_of_an_earlier_one(self):
        self.assertEqual(self.attempt("exit 2"), (2, False), "there is no record")
        self.assertEqual(self.attempt("echo epoch >> race.jsonl"), (0, True))
        self.assertEqual(self.attempt("exit 2"), (2, False))
        self.assertEqual(self.attempt("exit 101"), (101, False))
        # The race that is over is shown again, and one that ends early has added to its record.
        for race in ("exit 0", "exit 1", "exit 3", "echo epoch >> race.jsonl; exit 2"):
            self.assertEqual(self.attempt(race), (0, True), race)
        self.assertEqual(self.attempt("exit 130"), (130, True))

    def test_a_refused_attempt_uploads_no_record_of_an_earlier_one(self):
        self.attempt("exit 2")
        kept = os.path.join(self.folder, "temp", "deadheat", "deadheat", "race.jsonl")
        os.makedirs(os.path.dirname(kept))
        with open(kept, "w", encoding="utf-8") as file:
            file.write("an earlier race\n")
        variables = environment(GITHUB_RUN_ATTEMPT="1", GITHUB_WORKSPACE=self.folder, RUNNER_TEMP=os.path.join(self.folder, "temp"))
        job = actions.Job(self.folder, {"deadheat": os.path.join(self.folder, "deadheat")}, variables, {"actions/upload-artifact": self.fail})
        self.assertFalse(job.run(os.path.join(KIT, "action.yml")))
        self.assertEqual(job.outputs["race"], {"conclusion": "failure", "refused": "yes"}, job.log)


class Log(unittest.TestCase):
    """What the log of a job may contain."""

    def test_no_text_of_an_artifact_is_a_command_of_the_runner(self):
        said = "##[error]x ###[set-env name=A]b\r\n::add-mask::y\r::warning::z"
        for text in (publish.tamed(said), self.printed(publish.Problem(said)), self.printed(None, reason=said)):
            self.assertNotIn("##[", text)
            self.assertFalse(re.search(r"(^|[\r\n])\s*::", text), text)
            self.assertIn("## [error]x", text)

    def printed(self, problem, **conclusion):
        """What `github` prints if reading the record fails, or if it leads to this conclusion."""
        def reported(_):
            if problem:
                raise problem
            return "comment\n", {"conclusion": "neutral", "title": "t", **conclusion}

        run = {"id": RUN, "run_attempt": 1, "html_url": "u", "head_sha": "0", "event": "push"}
        artifacts = {1: {"id": 1}}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as event:
            json.dump({"workflow_run": run}, event)
            event.flush()
            with unittest.mock.patch.multiple(
                publish, github=lambda: (unittest.mock.Mock(), ""), artifacts=lambda *_: artifacts, record_of=lambda *_: b"", reported=reported
            ), unittest.mock.patch.dict(os.environ, GITHUB_EVENT_PATH=event.name):
                out = io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                    publish.main(["github"])
        return out.getvalue()


class Publish(Folder):
    """Comment, check and note, with a record that comes with the repository."""

    @classmethod
    def setUpClass(cls):
        with gzip.open(os.path.join(ROOT, "studies", "trending", "kept", "race.jsonl.gz")) as file:
            cls.record = file.read()

    def after_a_run(self, api, **run):
        event = shaped("workflow_run_event")
        event["workflow_run"].update(run)
        path = os.path.join(self.folder, "event.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(event, file)
        return self.publish(
            "github",
            GITHUB_API_URL=api.url,
            GITHUB_REPOSITORY="octo/service",
            GITHUB_EVENT_PATH=path,
            GITHUB_TOKEN="token",
            DEADHEAT_FAIL_IF="slower by 3%",
        )

    def test_a_comment_is_written_once_and_then_updated(self):
        with StandIn() as api:
            for number in range(130):
                api.comments.append(shaped("comment", id=1 + number, body=f"comment {number}"))
            # Anybody can write the marker, and quote the comment.
            api.comments[3]["body"] = f"{MARKER}\nI am the bot, believe me"
            api.upload("deadheat-attempt-1", {"race.jsonl": self.record, "race.html": "<p>"})
            for _ in range(2):
                status, out, err = self.after_a_run(api)
                self.assertEqual(status, 0, err)
            self.assertEqual(len(api.comments), 131, "one comment, though the list has two pages")
            body = api.comments[-1]["body"]
            self.assertTrue(body.startswith(f"{MARKER}\n### "), body)
            self.assertIn("https://github.com/octo/service/actions/runs/2332938/artifacts/11", body)
            self.assertEqual(api.comments[3]["body"], f"{MARKER}\nI am the bot, believe me")
            self.assertEqual([method for method, path, *_ in api.requests if "/issues/comments/" in path], ["PATCH"])
            for word in ("limit", "CPU time per request", "could have seen", "alpha 0.025"):
                self.assertIn(word, body)

    def test_commit_and_pull_request_come_from_the_event_and_not_from_the_artifact(self):
        with StandIn() as api:
            # What an artifact says beside the record is not read.
            files = {"race.jsonl": self.record, "event.json": '{"number": 1}', "head_sha": "0" * 40, "comment.md": "forged", "conclusion.json": "{}"}
            api.upload("deadheat-attempt-1", files)
            status, _, err = self.after_a_run(api)
            self.assertEqual(status, 0, err)
            [check] = api.checks
            self.assertEqual(check["head_sha"], "328faa0536e6fef19753d9d91dc96a9931694ce3")
            self.assertIn(check["conclusion"], ("failure", "neutral"))
            self.assertNotIn("forged", check["output"]["summary"] + api.comments[0]["body"])
            [lookup] = [query for _, path, query, _ in api.requests if path.endswith("/pulls")]
            self.assertEqual(lookup["head"], "forker:faster")

    def test_a_pull_request_that_has_moved_on_gets_no_comment(self):
        with StandIn() as api:
            api.upload("deadheat-attempt-1", {"race.jsonl": self.record})
            api.pulls[0]["head"]["sha"] = "f" * 40
            status, out, err = self.after_a_run(api)
            self.assertEqual((status, api.comments, len(api.checks)), (0, [], 1), err)
            self.assertIn("no open pull request", out)
            # A branch of the same name in another repository is another pull request.
            api.pulls = [shaped("pull")]
            api.pulls[0]["head"]["repo"]["full_name"] = "forker/other"
            self.assertEqual((self.after_a_run(api)[0], api.comments), (0, []))
            # A push has no pull request at all.
            before = len(api.requests)
            self.assertEqual((self.after_a_run(api, event="push")[0], api.comments), (0, []))
            self.assertFalse([path for _, path, *_ in api.requests[before:] if path.endswith("/pulls")])

    def test_each_attempt_has_its_own_artifact(self):
        with StandIn() as api:
            api.upload("deadheat-attempt-1", {"race.jsonl": self.record})
            api.upload("deadheat-attempt-2", {"race.jsonl": b""}, run=RUN + 1)
            api.upload("other-attempt-2", {"race.jsonl": b""})
            status, out, _ = self.after_a_run(api, run_attempt=2)
            self.assertEqual((status, api.checks), (0, []))
            self.assertIn("nothing to publish", out)

    def test_what_is_no_record_is_refused_and_writes_nothing(self):
        unreadable = [
            b"no zip at all",
            {"race.jsonl": "::warning::no record\n::set-env name=A::b\n"},
            {"race.jsonl": '{"line":"header","schema":"deadheat.record/9"}'},
            {"../race.jsonl": self.record},
        ]
        for files in unreadable:
            with self.subTest(str(files)[:60]), StandIn() as api:
                api.upload("deadheat-attempt-1", files)
                status, out, err = self.after_a_run(api)
                self.assertEqual((api.checks, api.comments), ([], []))
                if isinstance(files, dict) and "../race.jsonl" in files:
                    self.assertEqual(status, 0)
                else:
                    self.assertEqual(status, 2)
                    self.assertRegex(err, r"^deadheat: ")
                    self.assertFalse(re.search(r"^\s*::", out + err, re.M), "no line is a command of the runner")

    def test_a_large_artifact_is_not_even_fetched(self):
        with StandIn() as api:
            api.upload("deadheat-attempt-1", {"race.jsonl": self.record})
            api.artifacts[0]["size_in_bytes"] = 1 << 40
            status, _, err = self.after_a_run(api)
            self.assertEqual(status, 2)
            self.assertIn("larger than", err)
            self.assertFalse([path for _, path, *_ in api.requests if path.endswith("/zip")])

    def test_a_record_that_unpacks_without_end_is_refused(self):
        with StandIn() as api:
            api.upload("deadheat-attempt-1", {"race.jsonl": b"0" * (257 << 20)})
            status, _, err = self.after_a_run(api)
            self.assertEqual(status, 2)
            self.assertIn("the record in deadheat-attempt-1 is larger", err)

    def test_an_answer_that_fails_for_a_moment_is_asked_again(self):
        with StandIn() as api:
            api.upload("deadheat-attempt-1", {"race.jsonl": self.record})
            api.failing = 2
            self.assertEqual(self.after_a_run(api)[0], 0)
            api.failing = 3
            status, _, err = self.after_a_run(api)
            self.assertEqual(status, 2)
            self.assertIn("status 502", err)

    def test_a_note_on_gitlab_is_written_once_and_then_updated(self):
        with StandIn() as api:
            with open(os.path.join(self.folder, "comment.md"), "w", encoding="utf-8") as file:
                file.write("### verdict\n")
            api.notes.append(shaped("gitlab_note", body=f"{MARKER}\nnot yours"))
            variables = {
                "CI_API_V4_URL": f"{api.url}/gitlab",
                "CI_PROJECT_ID": "5",
                "CI_MERGE_REQUEST_IID": "9",
                "CI_JOB_URL": "https://gitlab.example/octo/service/-/jobs/1",
                "DEADHEAT_TOKEN": "token",
            }
            words = ("gitlab", "--from", self.folder, "--page", "deadheat-race/race.html")
            for _ in range(2):
                self.assertEqual(self.publish(*words, **variables)[0], 0)
            self.assertEqual(len(api.notes), 2)
            self.assertTrue(api.notes[1]["body"].startswith(f"{MARKER}\n### verdict\n"))
            self.assertIn("/-/jobs/1/artifacts/file/deadheat-race/race.html", api.notes[1]["body"])
            del variables["DEADHEAT_TOKEN"]
            status, out, _ = self.publish(*words, **variables)
            self.assertEqual((status, len(api.notes)), (0, 2))
            self.assertIn("no DEADHEAT_TOKEN", out)


class Path(Folder):
    """The whole path: push, race, artifact, comment; then attempts that continue the race."""

    def git(self, *words, cwd=None):
        names = {f"GIT_{who}_{what}": "deadheat" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *words],
            cwd=cwd or self.work,
            env=environment(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", **names),
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return done.stdout.decode().strip()

    def pushed(self):
        """A bare repository with main and a branch that makes the service slower, and a clone at the merge commit, as a pull request has it."""
        bare, self.work = os.path.join(self.folder, "service.git"), os.path.join(self.folder, "work")
        self.git("init", "--bare", "--quiet", bare, cwd=self.folder)
        self.git("clone", "--quiet", bare, self.work, cwd=self.folder)
        def commit(options):
            with open(os.path.join(self.work, "serve.sh"), "w", encoding="utf-8") as file:
                file.write(f"exec {SERVER} --json {options}\n")
            self.git("add", ".")
            self.git("commit", "--quiet", "-m", f"serve {options}")
        commit("")
        self.git("push", "--quiet", "origin", "HEAD:main")
        self.git("checkout", "--quiet", "-b", "slower")
        commit("--spin-us 2000")
        self.git("push", "--quiet", "origin", "slower")
        self.git("checkout", "--quiet", "-b", "merge", "HEAD^1")
        self.git("merge", "--quiet", "--no-ff", "-m", "merge", "slower")

    def attempt(self, api, number, time):
        """One attempt of the job that races. Returns whether it succeeded, and the job."""
        folder = os.path.join(self.folder, f"job-{number}")
        os.makedirs(folder)

        def upload(given):
            # The paths are relative to the folder that they have in common.
            files = {}
            for path in filter(None, given["path"].splitlines()):
                if os.path.exists(path):
                    with open(path, "rb") as file:
                        files[os.path.basename(path)] = file.read()
            if files or given["if-no-files-found"] != "ignore":
                api.upload(given["name"], files)

        # Each attempt begins on an empty machine, with the workspace at the same place.
        cache = os.path.join(self.folder, "cache")
        shutil.rmtree(cache, ignore_errors=True)
        variables = environment(
            CI="true",
            XDG_CACHE_HOME=cache,
            GITHUB_API_URL=api.url,
            GITHUB_REPOSITORY="octo/service",
            GITHUB_RUN_ID=str(RUN),
            GITHUB_RUN_ATTEMPT=str(number),
            GITHUB_SHA=self.git("rev-parse", "HEAD"),
            GITHUB_WORKSPACE=self.work,
            GITHUB_EVENT_NAME="pull_request",
            RUNNER_TEMP=os.path.join(folder, "temp"),
        )
        inputs = {"base": "HEAD^1", "args": "\n".join(["exec sh serve.sh", *SHORT]), "time": time, "deadheat": DEADHEAT}
        job = actions.Job(folder, inputs, variables, {"actions/upload-artifact": upload})
        return job.run(os.path.join(KIT, "action.yml")), job

    def comment(self, api, number):
        """The second workflow, after an attempt."""
        folder = os.path.join(self.folder, f"comment-{number}")
        os.makedirs(folder)
        event = shaped("workflow_run_event")
        event["workflow_run"]["run_attempt"] = number
        path = os.path.join(folder, "event.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(event, file)
        variables = environment(
            GITHUB_API_URL=api.url, GITHUB_REPOSITORY="octo/service", GITHUB_EVENT_PATH=path, GITHUB_WORKSPACE=folder, RUNNER_TEMP=folder
        )
        job = actions.Job(folder, {"deadheat": DEADHEAT}, variables, {})
        self.assertTrue(job.run(os.path.join(KIT, "comment", "action.yml")), job.log)
        return job

    def epochs(self, api, number):
        """How many epochs the record in the artifact of an attempt has, and how often it was continued."""
        [artifact] = [one for one in api.artifacts if one["name"] == f"deadheat-attempt-{number}"]
        path = os.path.join(self.folder, "artifact.zip")
        with open(path, "wb") as file:
            file.write(api.zips[artifact["id"]])
        with zipfile.ZipFile(path) as archive:
            self.assertEqual(sorted(archive.namelist()), ["race.html", "race.jsonl"])
            lines = [json.loads(line) for line in archive.read("race.jsonl").splitlines()]
        count = lambda kind: sum(1 for line in lines if line["line"] == kind)
        return count("epoch"), count("resumed")

    def undisturb(self, api, number):
        """Removes from the record of an attempt what other programs did to it, and ends it at its first look. The servers then decide the verdict."""
        [artifact] = [one for one in api.artifacts if one["name"] == f"deadheat-attempt-{number}"]
        with zipfile.ZipFile(io.BytesIO(api.zips[artifact["id"]])) as archive:
            lines = [json.loads(line) for line in archive.read("race.jsonl").splitlines()]
        ended = {"line": "scenario", "scenario": lines[0]["plan"]["scenarios"][0]["name"], "end": "decided"}
        pilots = [line for line in lines if line["line"] == "pilot"]
        epochs = [line for line in lines if line["line"] == "epoch"][:3]
        for pilot in pilots:
            pilot.pop("ceiling_rps", None)
        for epoch in epochs:
            epoch["findings"] = []
            for one in epoch["rounds"]:
                one.pop("dropped", None)
                one["external"].update(steal_share=0.0, foreign_share=0.0)
                for part in one["slices"]:
                    part.update(load_cpu_ns=0, load_run_delay_ns=0)
        resumed = [line for line in lines if line["line"] == "resumed"]
        kept = [lines[0], *pilots, *epochs, *resumed, ended, {"line": "done"}]
        api.zips[artifact["id"]] = packed({"race.jsonl": "\n".join(map(json.dumps, kept)) + "\n"})

    def test_push_race_artifact_comment_and_a_second_run_that_continues(self):
        self.pushed()
        with StandIn() as api:
            # The first attempt has no time: it pauses after one epoch.
            passed, job = self.attempt(api, 1, "1ms")
            self.assertTrue(passed, job.log)
            self.assertEqual(job.outputs["race"]["conclusion"], "neutral", job.log)
            # On a busy machine, the measurement can be invalid.
            said = "run the job again to continue|the measurement is invalid"
            with open(job.summary, encoding="utf-8") as file:
                self.assertRegex(file.read(), said)
            self.assertEqual(self.epochs(api, 1), (1, 0))
            self.comment(api, 1)
            self.assertEqual(api.checks[0]["conclusion"], "neutral")
            self.assertRegex(api.comments[0]["body"], said)

            # The second one finds the record and continues, until the race is decided.
            passed, job = self.attempt(api, 2, "10m")
            epochs, resumed = self.epochs(api, 2)
            self.assertEqual(resumed, 1, job.log)
            self.assertGreaterEqual(epochs, 3, job.log)
            self.comment(api, 2)
            self.assertEqual((len(api.comments), len(api.checks)), (1, 2), "the comment is updated, and each attempt has its check")
            self.assertIn("continued once", api.comments[0]["body"])
            conclusion = api.checks[1]["conclusion"]
            self.assertEqual(job.outputs["race"]["conclusion"], conclusion)
            self.assertEqual(passed, conclusion == "neutral")
            if conclusion == "neutral":
                self.assertIn("invalid", api.comments[0]["body"], job.log)

            # The third one changes nothing: what is decided stays decided.
            self.undisturb(api, 2)
            passed, job = self.attempt(api, 3, "10m")
            self.assertFalse(passed, job.log)
            self.assertEqual(self.epochs(api, 3), (3, 1), job.log)
            self.comment(api, 3)
            self.assertEqual((api.checks[2]["conclusion"], len(api.comments)), ("failure", 1))
            self.assertIn("slower by 3%", api.comments[0]["body"])
            self.assertIn("identical code differed by at most", api.comments[0]["body"])

    def test_a_contender_that_does_not_start_fails_the_job_and_is_named(self):
        self.pushed()
        with open(os.path.join(self.work, "serve.sh"), "w", encoding="utf-8") as file:
            file.write("echo no such module >&2; exit 7\n")
        # The first parent stays the target branch.
        self.git("commit", "--quiet", "--all", "--amend", "--no-edit")
        with StandIn() as api:
            passed, job = self.attempt(api, 1, "10m")
            self.assertFalse(passed)
            self.comment(api, 1)
            self.assertEqual(api.checks[0]["conclusion"], "failure")
            self.assertRegex(api.comments[0]["body"], r"HEAD\S+[0-9a-f]{7} was not raced to the end")

    def test_wrong_input_fails_the_job_before_anything_is_raced(self):
        self.pushed()
        with StandIn() as api:
            with self.subTest("a name that could be an option or a path"):
                folder = os.path.join(self.folder, "wrong")
                os.makedirs(folder)
                job = actions.Job(folder, {"name": "../x"}, environment(GITHUB_WORKSPACE=self.work, RUNNER_TEMP=folder, GITHUB_RUN_ATTEMPT="1"), {})
                self.assertFalse(job.run(os.path.join(KIT, "action.yml")))
                self.assertIn("::error::name", job.log)
            passed, job = self.attempt(api, 1, "soon")
            self.assertFalse(passed)
            self.assertIn("--pause-after", job.log)
            self.assertEqual(api.artifacts, [])


if __name__ == "__main__":
    unittest.main()
