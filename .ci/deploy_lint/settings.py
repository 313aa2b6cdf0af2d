"""The settings of the services, from their config.toml files: which exist, and what they are in a deployment."""

import copy
import functools
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVICES = ("edge-server", "control-plane", "collector", "job-runner")
# The folders of all programs with settings.
PROGRAMS = {service: service for service in SERVICES} | {"webruntime": "deploy/operator"}
ENVIRONMENT_PREFIX = "WEBRUNTIME_"
# A variable of such a name holds a secret, unless it ends in _FILE.
SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|PEPPER|MASTER_KEY|PRIVATE_KEY")
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def defaults(program):
    """All settings of a program with their defaults, as one table."""
    return copy.deepcopy(_read_defaults(program))


@functools.cache
def _read_defaults(program):
    base = ROOT / "libs/service/src/config/base_config.toml"
    return tomllib.loads((ROOT / PROGRAMS[program] / "config.toml").read_text() + base.read_text())


def seconds(text):
    """The length of a duration such as "10m", "1h 30m" or Compose's "10m0s"."""
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+)\s*(ms|s|m|h|d)", text))


def merged(program, table, environment):
    """The settings of a program with those of a file and of environment variables. Returns them and what is wrong."""
    settings, original, wrong = defaults(program), defaults(program), []
    _overlay(settings, table, (), wrong)
    for name, text in environment.items():
        if name.startswith(ENVIRONMENT_PREFIX):
            path = tuple(name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"))
            # Sections that a program does not have are ignored, so that all can share one list.
            if path[0] in settings:
                _put(settings, original, path, text, wrong)
            elif not any(path[0] in defaults(other) for other in PROGRAMS):
                wrong.append(f"{name}: no program has a section [{path[0]}]")
    return settings, wrong


def _overlay(into, table, path, wrong):
    for key, value in table.items():
        here = (*path, key)
        if key not in into:
            wrong.append(f"unknown setting {'.'.join(here)}")
        elif isinstance(value, dict) and isinstance(into[key], dict):
            # An empty section of the defaults accepts any key.
            into[key].update(value) if not into[key] else _overlay(into[key], value, here, wrong)
        elif type(value) is not type(into[key]):
            wrong.append(f"{'.'.join(here)} is not of the default's type")
        else:
            into[key] = value


def _put(settings, original, path, text, wrong):
    is_open = False
    for key in path[:-1]:
        # An empty section of the defaults accepts any key.
        original = original.get(key, {})
        is_open = is_open or original == {}
        settings = settings.setdefault(key, {}) if is_open else settings.get(key)
        if not isinstance(settings, dict):
            wrong.append(f"unknown setting {'.'.join(path)}")
            return
    if path[-1] not in settings and not is_open:
        wrong.append(f"unknown setting {'.'.join(path)}")
        return
    default = settings.get(path[-1], "")
    if isinstance(default, list) and not text.lstrip().startswith("["):
        settings[path[-1]] = [item.strip() for item in text.split(",") if item.strip()]
        return
    try:
        settings[path[-1]] = text if isinstance(default, str) else tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        wrong.append(f"{'.'.join(path)} is not of the default's type")


def secret_files(settings, path=()):
    """The values of all `<setting>_file`, by their full names."""
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            found |= secret_files(value, (*path, key))
        elif key.endswith("_file") and value:
            found[".".join((*path, key))] = value
    return found


def drain_seconds(settings):
    """How long a service may take to stop after SIGTERM."""
    listen = settings["listen"]
    return seconds(listen["drain"]) + seconds(listen["drain_timeout"])


def upstreams(settings):
    """The setting, host and port of each inner service that an edge calls."""
    for name in ("control_plane", "collector"):
        for url in settings.get("upstreams", {}).get(name, "").split(","):
            if match := re.fullmatch(r"http://([^:/]+):(\d+)/?", url.strip()):
                yield name, match[1], int(match[2])
            elif url:
                yield name, url, 0
