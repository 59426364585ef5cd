"""Runs the steps of a composite action as GitHub's runner does, as far as these actions need it, and checks what such a file may contain."""
import os
import re
import subprocess

import yaml

PINNED = re.compile(r"[\w.-]+/[\w.-]+(/[\w.-]+)*@[0-9a-f]{40}")
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
# Everything in these contexts comes from the author of a workflow or from the runner. Titles, branches and texts of other people are elsewhere.
TRUSTED = re.compile(r"inputs\.[\w-]+|steps\.[\w-]+\.outputs\.[\w-]+|github\.token|runner\.(os|arch)")


def load(path):
    with open(path, encoding="utf-8") as file:
        # In YAML 1.1, `on` is a boolean.
        return yaml.safe_load(file)


def check(path):
    """The complaints about an action."""
    action, wrong = load(path), []
    steps = action["runs"]["steps"]
    if action["runs"]["using"] != "composite":
        wrong.append("is not composite")
    known, inputs = set(), set(action["inputs"])
    for step in steps:
        where = f"{path}: step {step.get('id') or step.get('uses') or 'without id'}"
        if set(step) - {"id", "if", "shell", "env", "run", "uses", "with", "name"}:
            wrong.append(f"{where}: unknown key in {sorted(step)}")
        if ("run" in step) == ("uses" in step):
            wrong.append(f"{where}: needs either run or uses")
        if "run" in step:
            if step.get("shell") != "bash":
                wrong.append(f"{where}: needs a shell")
            if "${{" in step["run"]:
                wrong.append(f"{where}: an expression in a script is code; pass it in env")
        elif not PINNED.fullmatch(step["uses"]):
            wrong.append(f"{where}: {step['uses']} is not pinned to a commit")
        values = list(step.get("env", {}).values()) + list(step.get("with", {}).values())
        expressions = [one for value in values for one in EXPRESSION.findall(str(value))]
        for one in expressions:
            if not TRUSTED.fullmatch(one):
                wrong.append(f"{where}: {one} is not one of the trusted contexts")
        for name in re.findall(r"inputs\.([\w-]+)", str(step)):
            if name not in inputs:
                wrong.append(f"{where}: there is no input {name}")
        for name in re.findall(r"steps\.([\w-]+)\.outputs", str(step)):
            if name not in known:
                wrong.append(f"{where}: no step before it has the id {name}")
        known.add(step.get("id"))
    for name, output in action.get("outputs", {}).items():
        if not set(re.findall(r"steps\.([\w-]+)\.", output["value"])) <= known:
            wrong.append(f"{path}: output {name} names an unknown step")
    return wrong


class Job:
    """One job that runs an action: inputs, environment, and what its steps left."""

    def __init__(self, folder, inputs, environment, uses):
        self.inputs, self.environment, self.uses = inputs, environment, uses
        self.folder, self.outputs, self.log = folder, {}, ""
        self.summary = os.path.join(folder, "summary.md")

    def value(self, expression):
        if expression == "github.token":
            return "token"
        if match := re.fullmatch(r"inputs\.([\w-]+)", expression):
            return self.inputs[match[1]]
        if match := re.fullmatch(r"steps\.([\w-]+)\.outputs\.([\w-]+)", expression):
            return self.outputs.get(match[1], {}).get(match[2], "")
        if match := re.fullmatch(r"runner\.(os|arch)", expression):
            return {"os": "Linux", "arch": "X64"}[match[1]]
        raise AssertionError(f"an expression that no step uses so far: {expression}")

    def text(self, template):
        return EXPRESSION.sub(lambda found: self.value(found[1]), str(template))

    def holds(self, condition, failed):
        parts = [part.strip() for part in condition.split("&&")]
        if failed and "always()" not in parts:
            return False
        comparisons = [part for part in parts if part != "always()"]
        for one in comparisons:
            left, operator, right = re.fullmatch(r"(\S+) (==|!=) '(.*)'", one).groups()
            if (self.value(left) == right) != (operator == "=="):
                return False
        return True

    def run(self, path):
        """Runs an action. Returns whether it succeeded."""
        action = load(path)
        unknown = set(self.inputs) - set(action["inputs"])
        assert not unknown, unknown
        defaults = {name: one.get("default", "") for name, one in action["inputs"].items()}
        self.inputs = {name: self.text(value) for name, value in {**defaults, **self.inputs}.items()}
        failed = False
        for number, step in enumerate(action["runs"]["steps"]):
            if not self.holds(step.get("if", "success"), failed) if "if" in step else failed:
                continue
            if "uses" in step:
                name = step["uses"].split("@")[0]
                self.uses[name]({key: self.text(value) for key, value in step["with"].items()})
                continue
            output = os.path.join(self.folder, f"output-{number}")
            open(output, "w").close()
            environment = {**self.environment, **{key: self.text(value) for key, value in step.get("env", {}).items()}}
            environment.update(
                GITHUB_OUTPUT=output, GITHUB_STEP_SUMMARY=self.summary, GITHUB_ACTION_PATH=os.path.dirname(path), CI="true", GITHUB_ACTIONS="true"
            )
            script = os.path.join(self.folder, f"step-{number}.sh")
            with open(script, "w", encoding="utf-8") as file:
                file.write(step["run"])
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
                cwd=self.environment["GITHUB_WORKSPACE"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=170,
            )
            self.log += done.stdout.decode(errors="replace")
            with open(output, encoding="utf-8") as file:
                self.outputs[step.get("id", number)] = dict(line.rstrip("\n").split("=", 1) for line in file)
            failed = failed or done.returncode != 0
        return not failed
