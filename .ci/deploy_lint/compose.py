"""Rules for the Compose files as `docker compose config` resolves them, and for the text of compose.yml itself."""

import ipaddress
import re

from . import settings
from .kubernetes import RESERVE_SECONDS, image_is_exact

# The services that visitors reach. All others are on internal networks or publish nothing.
ENTRIES = re.compile(r"edge(-\d+)?|haproxy")
# The services that operators reach, on this machine alone.
CONSOLES = {"grafana"}
# Their images have no shell, so no check can run in them. Prometheus scrapes them.
WITHOUT_SHELL = {"loki", "otel-collector", "tempo"}
OWN_IMAGE = re.compile(r"(?:^|/)web-runtime/(edge-server|control-plane|collector|job-runner|webruntime):")
STORES = {"postgres", "redis", "clickhouse", "seaweedfs"}
HAPROXY = settings.ROOT / "deploy/compose/haproxy/haproxy.cfg"
# A connection of HAProxy with full buffers, in bytes.
HAPROXY_CONNECTION = 33_000
# MergeTree's number_of_free_entries_in_pool_to_execute_optimize_entire_partition, which exceeds its siblings: the pool must have
# as many, at two for each thread.
CLICKHOUSE_FREE_ENTRIES = 25
# Images of Postgres since 18 lose everything that is mounted deeper, when the container is made anew.
POSTGRES_FOLDER = "/var/lib/postgresql"
POSTGRES_SOCKET = "/var/run/postgresql"


def text_problems(text):
    """What is wrong with the source: what the resolved form does not show."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        if match := re.search(r"^\s*image:\s*(\S+)", line):
            if not re.search(r"\$\{\w+(:\?[^}]*)?\}", match[1]):
                yield f"line {number}: the version of an image stands in .env"
        for name, default in re.findall(r"\$\{(\w+):?-([^}]*)\}", line):
            if settings.SECRET_NAME.search(name) and default:
                yield f"line {number}: {name} has a default, and example secrets go live"


def clickhouse_problems(text):
    """What is wrong with ClickHouse's server.xml."""
    match = re.search(r"<background_pool_size>\s*(\d+)", text)
    if match and int(match[1]) * 2 < CLICKHOUSE_FREE_ENTRIES:
        yield f"background_pool_size {match[1]} has fewer than {CLICKHOUSE_FREE_ENTRIES} entries, so MergeTree refuses its tables"


def redis_problems(service):
    """Redis must refuse writes before the kernel kills it, and must not run as root: a shell bypasses its entrypoint."""
    command = " ".join(service.get("command") or [])
    match = re.search(r"maxmemory (\d+)mb", command)
    if not match or int(match[1]) * 1_000_000 > 0.7 * int(service.get("mem_limit", 0)):
        yield "its maxmemory is more than 70 % of its limit of memory, or missing"
    if str(service.get("user", "root")).split(":")[0] in ("0", "root"):
        yield "runs as root: its command is a shell, for which the entrypoint does not drop it"


def _edges(services):
    return sorted(name for name in services if re.fullmatch(r"edge(-\d+)?", name))


def _names(service, name, network):
    """The names that Docker's DNS knows for a service on a network."""
    if network not in service["networks"]:
        return set()
    return {name, *((service["networks"][network] or {}).get("aliases", []))}


def _shared_names(services):
    """Docker's DNS answers from the first network that knows a name. So a name of several replicas must be one of all of them,
    on each network that an edge shares with one."""
    for edge in _edges(services):
        values, _ = settings.merged("edge-server", {}, services[edge].get("environment") or {})
        for setting, host, _ in settings.upstreams(values):
            own = {name: OWN_IMAGE.search(service["image"]) for name, service in services.items()}
            replicas = [name for name, match in own.items() if match and match[1].replace("-", "_") == setting]
            for network in services[edge]["networks"]:
                having = [name for name in replicas if host in _names(services[name], name, network)]
                if having and (without := sorted(set(replicas) - set(having))):
                    yield f"{without[0]}: on the network {network} it lacks the alias {host}, which {having[0]} has"


def _haproxy(config):
    """HAProxy connects to the edges from a network that they trust, and has memory and files for its connections."""
    services, proxy = config["services"], config["services"].get("haproxy")
    if not proxy:
        return
    text = HAPROXY.read_text()
    if len(proxy["networks"]) != 1:
        yield "haproxy: is on several networks, and may connect to the edges over one that they do not trust"
        return
    (network,) = proxy["networks"]
    if config["networks"][network].get("internal"):
        yield f"haproxy: its network {network} is internal, so Docker publishes no port"
    subnets = {pool["subnet"] for pool in config["networks"][network].get("ipam", {}).get("config", [])}
    servers = {match[1] for match in re.finditer(r"^\s*server \S+ ([^:\s]+):", text, re.MULTILINE)}
    for edge in _edges(services):
        trusted = (services[edge].get("environment") or {}).get("WEBRUNTIME_HTTP__TRUSTED_PROXIES") or ""
        if not subnets & {part.strip(' []"') for part in trusted.split(",")}:
            yield f"{edge}: does not trust the network of haproxy"
        named = servers & _names(services[edge], edge, network)
        if not named:
            yield f"haproxy: haproxy.cfg names no server of {edge} on the network {network}"
        for other in services[edge]["networks"]:
            if other != network and named & _names(services[edge], edge, other):
                yield f"haproxy: haproxy.cfg names {edge} by a name that the network {other} has too"
    match = re.search(r"^\s*maxconn (\d+)", text, re.MULTILINE)
    connections = int(match[1]) if match else 1_000_000
    if connections * HAPROXY_CONNECTION * 1.5 > int(proxy.get("mem_limit", 0)):
        yield f"haproxy: {connections} connections with full buffers take more than two thirds of its limit of memory"
    if connections * 2 + 100 > int(proxy.get("ulimits", {}).get("nofile", {}).get("hard", 0)):
        yield f"haproxy: {connections} connections need more open files"


def _builds(services):
    """Two builds of one image at a time fail: both export the same name."""
    built = {}
    for name, service in sorted(services.items()):
        if service.get("build"):
            first = built.setdefault(service["image"], name)
            if first != name:
                yield f"{name}: builds the same image as {first}"
    for name, service in sorted(services.items()):
        if OWN_IMAGE.search(service["image"]) and not service.get("build") and service.get("pull_policy") != "never":
            yield f"{name}: would get its image from a public registry, where strangers may have published it: pull_policy must be never"


def _backups(services):
    """What `webruntime backup` reads and writes is what Postgres, ClickHouse and the node-exporter have."""
    backup = services.get("backup")
    if not backup:
        return
    folders = {name: {volume["target"]: volume.get("source") for volume in service.get("volumes", [])} for name, service in services.items()}
    environment = backup["environment"]
    root = environment["WEBRUNTIME_BACKUP__FOLDER"]
    outside = lambda path: path.startswith(f"{root}/") and f"{folders['backup'][root]}{path.removeprefix(root)}"
    for name in ("postgres", "clickhouse"):
        if folders[name].get(f"{root}/{name}") != outside(f"{root}/{name}"):
            yield f"{name}: {root}/{name} is another folder than that of `backup`"
    for path in (POSTGRES_FOLDER, POSTGRES_SOCKET, "/etc/pgbackrest/pgbackrest.conf"):
        if folders["postgres"].get(path) != folders["backup"].get(path):
            yield f"backup: {path} is not that of postgres"
    exporter = " ".join(services.get("node-exporter", {}).get("command") or [])
    for folder in re.findall(r"--collector\.textfile\.directory=(\S+)", exporter):
        if folders["node-exporter"].get(folder) != outside(environment["WEBRUNTIME_BACKUP__METRICS_FOLDER"]):
            yield "node-exporter: reads another folder than backup.metrics_folder, so no alert on backups ever has a value"
    if "archive_mode=on" not in " ".join(services["postgres"]["command"]):
        yield "postgres: archive_mode is not on by default"


def problems(config, opens_ports=False):
    """What is wrong with a resolved configuration. `opens_ports` says that loopback ports of other services are intended."""
    networks = config.get("networks", {})
    services = config["services"]
    yield from _builds(services)
    yield from _shared_names(services)
    yield from _haproxy(config)
    yield from _backups(services)
    if "redis" in services:
        yield from (f"redis: {problem}" for problem in redis_problems(services["redis"]))
    for name, service in sorted(services.items()):
        checks = [*_any(name, service), *_network(name, service, networks, opens_ports)]
        own = OWN_IMAGE.search(service["image"])
        if own:
            checks += _own(own[1], service, services)
        yield from (f"{name}: {problem}" for problem in checks)
    if "postgres" in services:
        targets = {volume["target"] for volume in services["postgres"].get("volumes", []) if volume["type"] == "volume"}
        if targets - {POSTGRES_SOCKET} != {POSTGRES_FOLDER}:
            yield f"postgres: its volume belongs at {POSTGRES_FOLDER}"


def _is_job(service):
    return service.get("restart") in ("no", "on-failure")


def _any(name, service):
    if not image_is_exact(service["image"]):
        yield f"the image {service['image']} names no version"
    if not service.get("mem_limit") and not service.get("deploy", {}).get("resources", {}).get("limits", {}).get("memory"):
        yield "has no limit of memory"
    if service.get("restart") not in ("no", "on-failure", "always", "unless-stopped"):
        yield "has no restart policy"
    check = service.get("healthcheck", {})
    if not _is_job(service) and name not in WITHOUT_SHELL:
        if not check.get("test") or check.get("disable"):
            yield "has no health check"
        elif settings.seconds(check.get("start_period", "0s")) < 20:
            yield "its health check has a start period of less than 20 s"
        if any("localhost" in part for part in check.get("test", [])):
            yield "its health check names localhost, which may be an IPv6 address: 127.0.0.1"
    if "no-new-privileges:true" not in service.get("security_opt", []) or service.get("privileged"):
        yield "can gain privileges"
    for variable, value in (service.get("environment") or {}).items():
        if settings.SECRET_NAME.search(variable) and not variable.endswith("_FILE") and value:
            yield f"{variable} holds a secret in the environment: use a file"
    for volume in service.get("volumes", []):
        if volume["type"] == "volume" and not volume.get("source"):
            yield f"the volume at {volume['target']} has no name, so its data is lost with the container"


def _network(name, service, networks, opens_ports):
    for port in service.get("ports", []):
        local = port.get("host_ip") in ("127.0.0.1", "::1")
        if not ENTRIES.fullmatch(name) and not (local and (opens_ports or name in CONSOLES)):
            yield f"publishes port {port['published']}, past the firewall of the host"
    if service.get("network_mode") == "host":
        yield "uses the network of the host"
    outside = [network for network in service.get("networks", {}) if not networks.get(network, {}).get("internal")]
    if name in STORES and outside and not opens_ports:
        yield f"a store is on the network {outside[0]}, which has a route out"


def _own(program, service, services):
    """Rules for the images that are built here."""
    if service.get("cap_drop") != ["ALL"] or service.get("cap_add"):
        yield "has capabilities"
    if service.get("read_only") is not True:
        yield "can write to its root file system"
    if str(service.get("user", "")).split(":")[0] in ("0", "root"):
        yield "runs as root"
    environment = {name: value or "" for name, value in (service.get("environment") or {}).items()}
    values, wrong = settings.merged(program, {}, environment)
    yield from wrong
    targets = (secret.get("target") or secret["source"] for secret in service.get("secrets", []))
    files = {target if target.startswith("/") else f"/run/secrets/{target}" for target in targets}
    named = set(settings.secret_files(values).values())
    yield from (f"{path} is a setting and no secret of the service" for path in sorted(named - files))
    yield from (f"{path} is a secret that no setting reads" for path in sorted(files - named))
    if program == "webruntime":
        return
    least = settings.drain_seconds(values) + RESERVE_SECONDS
    if settings.seconds(service.get("stop_grace_period", "10s")) < least:
        yield f"its grace period is too short: listen.drain, listen.drain_timeout and {RESERVE_SECONDS} are {least:.0f} s"
    for setting in ("main", "ops"):
        if values["listen"][setting].startswith(("127.", "[::1]")):
            yield f"listen.{setting} is reachable from within the container only"
    edges = [other for other in services if re.fullmatch(r"edge(-\d+)?", other)]
    if values.get("http", {}).get("edges", len(edges)) != len(edges):
        yield f"http.edges is {values['http']['edges']}, and there are {len(edges)}"
    names = {alias for other in services.values() for network in other["networks"].values() for alias in (network or {}).get("aliases", [])}
    for setting, host, _ in settings.upstreams(values):
        if host not in names | services.keys():
            yield f"upstreams.{setting} names {host}, which is no service"
    if program == "collector":
        folder = values["segments"]["folder"]
        if not [volume for volume in service.get("volumes", []) if volume["target"] == folder and volume.get("source")]:
            yield f"segments.folder, {folder}, is on no volume that stays"
    if program == "control-plane" and not [volume for volume in service.get("volumes", []) if volume["target"] == "/tmp"]:
        yield "unpacks deploys into /tmp, up to 1.2 GB: a tmpfs would count as its memory, so it needs a volume"
