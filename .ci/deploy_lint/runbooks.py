"""Rules for the commands of deploy/observability/runbooks that are marked safe: they change nothing, and their names exist.

tests/nightly/compose.py runs them beside real containers, and tests/nightly/observability.py runs their SQL.
"""

import pathlib
import re
import shlex
import subprocess

# What a safe command may begin with.
READING = ("docker compose ps", "docker compose logs", "docker compose exec", "docker stats --no-stream", "docker system df", "df -h", "./webruntime ")
# What `docker compose exec SERVICE` may run. The rest of a shell's text is looked at again.
INSIDE = ("pg_isready", "psql --username=webruntime --command ", "clickhouse-client --query ", "redis-cli ping", "wget -qO- http://127.0.0.1:")
# Commands of the operator's program that only read. deploy/operator's tests parse them.
OPERATOR = {"check", "outbox"}
SQL = re.compile(r'(psql|clickhouse-client) [^"]*"([^"]*)"')
# A part of a command that prints names of services.
SUBSTITUTION = re.compile(r"\$\(docker compose ps --services \| grep \^(\w+)\)")


def safe_commands(text):
    """The commands marked safe, each with the heading that it stands under."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading = section.split()[0]
        for block in re.findall(r"```console safe\n(.*?)```", section, re.DOTALL):
            yield from ((heading, line.removeprefix("$ ")) for line in block.splitlines())


def sql_of(command):
    """The store and the statement of a command that asks one, or None."""
    match = SQL.search(command)
    return match and (match[1], match[2])


def services_of(command):
    """The services of compose.yml that a command names."""
    return set(_named(SUBSTITUTION.sub("", command)))


def _named(command):
    words = shlex.split(command.split(" | ")[0])
    if words[:2] != ["docker", "compose"]:
        return
    names = words[3:4] if words[2] == "exec" else words[3:]
    skip = False
    for word in names:
        if not skip and not word.startswith("-"):
            yield word
        skip = word == "--tail"


def problems(root, runbooks):
    """What is wrong with the safe commands."""
    compose = (root / "deploy/compose/compose.yml").read_text()
    services = set(re.findall(r"^  ([a-z0-9-]+):$", compose.partition("\nservices:\n")[2].partition("\nnetworks:\n")[0], re.MULTILINE))
    for name, text in runbooks.items():
        for heading, command in safe_commands(text):
            yield from (f"runbooks/{name}, {heading}: {problem}: {command}" for problem in command_problems(command, services))
    yield from rules_that_cannot_fail(services)


def command_problems(command, services):
    if not command.startswith(READING):
        yield "is not known to change nothing"
    if subprocess.run(["bash", "-n", "-c", command], capture_output=True).returncode != 0:
        yield "is no command of a shell"
        return
    yield from (f"compose.yml has no service {name}" for name in sorted(services_of(command) - services))
    yield from (f"no service begins with {start}" for start in SUBSTITUTION.findall(command) if not any(name.startswith(start) for name in services))
    words = shlex.split(command)
    if words[:3] == ["docker", "compose", "exec"]:
        inside = words[4:] if words[4:5] != ["sh"] else shlex.split(words[6].replace('REDISCLI_AUTH="$(cat /run/secrets/redis_password)"', ""))
        if not " ".join(inside).startswith(INSIDE):
            yield "runs what is not known to change nothing"
    if words[0] == "./webruntime" and words[1] not in OPERATOR:
        yield "is a command that may change something"
    found = sql_of(command)
    if found and not found[1].startswith("select "):
        yield "its SQL may change something"


def rules_that_cannot_fail(services):
    """Each rule rejects a mistake."""
    mistakes = ["docker compose down", "docker compose ps nothing", "docker compose logs --tail 5 $(docker compose ps --services | grep ^nothing)",
                "docker compose exec redis redis-cli flushall", "docker compose exec redis sh -c 'redis-cli flushall'", "./webruntime migrate",
                'docker compose exec postgres psql --username=webruntime --command "delete from accounts"', "docker compose ps 'a"]
    yield from (f"the rules accept `{command}`" for command in mistakes if not list(command_problems(command, services)))


def all_commands(root):
    """The safe commands of all runbooks, each with the first heading that it stands under."""
    found = {}
    for path in sorted(pathlib.Path(root, "deploy/observability/runbooks").glob("*.md")):
        for heading, command in safe_commands(path.read_text()):
            found.setdefault(command, heading)
    return found
