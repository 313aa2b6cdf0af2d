#!/usr/bin/env python3
"""Is one build slower than another? Two builds of the whole system side by side in one run.

    tests/bench/compare.py BEFORE AFTER                          about ten minutes; needs wrk, h2load, nginx, rustc, psql
    tests/bench/compare.py BEFORE AFTER --rounds 1 --turns 1 --seconds 2  to check that it runs

BEFORE and AFTER are local runners (`target/release/local`), each of which starts its own stores and services. In every
round each build runs each load once, in an order that alternates; a ratio is taken within a round and the median over
the rounds counts. Pages are served by edges that are started for the round, because where a process happens to lie in
memory can make all its requests several percent faster or slower; they take turns of a second. The loads are those of
edge.py (a warm page) and webhooks.py (submissions and deliveries). Writes tests/bench/compare.md.
"""

import argparse
import contextlib
import datetime
import pathlib
import statistics
import subprocess
import sys
import tempfile

import edge
import fixture
import webhooks

HERE = pathlib.Path(__file__).resolve().parent
SCENARIOS = ["plain", "browser", "conditional", "h2"]
BUILDS = ["before", "after"]
MIN_RATIO = 0.97


def in_turns(rounds, run):
    """Runs both builds `rounds` times in alternating order; returns a list of results per build."""
    results = {build: [] for build in BUILDS}
    for number in range(rounds):
        for build in BUILDS if number % 2 == 0 else reversed(BUILDS):
            results[build].append(run(build))
    return results


def row(name, results, lower_is_better=False, digits=1):
    """A line of the table and whether the build after is not slower."""
    pairs = list(zip(results["before"], results["after"]))
    ratios = [before / after if lower_is_better else after / before for before, after in pairs]
    ratio = statistics.median(ratios)
    medians = " | ".join(f"{statistics.median(results[build]):,.{digits}f}" for build in BUILDS)
    return f"| {name} | {medians} | {ratio:.3f} | {min(ratios):.3f}–{max(ratios):.3f} |", ratio >= MIN_RATIO


def pages(stacks, arguments):
    """CPU time of the edge per warm page. Requests per second also depend on what else the machine does: two runs of one
    program differ by more than a tenth."""
    sites = {build: edge.edge_with_a_page(stack).host for build, stack in stacks.items()}
    for scenario in SCENARIOS:
        print(f"a warm page, {scenario}", flush=True)
        results, rates = {build: [] for build in BUILDS}, {build: [] for build in BUILDS}
        for number in range(arguments.rounds):
            with contextlib.ExitStack() as stack:
                servers = {}
                for build in BUILDS:
                    port, pid = stack.enter_context(fixture.another_edge(stacks[build]))
                    servers[build] = edge.Server(build, port, port, pid, sites[build])
                    servers[build].until_ready()
                    edge.measure(servers[build], scenario, 1)
                turns = in_turns(arguments.turns, lambda build: edge.measure(servers[build], scenario, 1))
            for build in BUILDS:
                results[build].append(statistics.median(turn["cpu_us"] for turn in turns[build]))
                rates[build] += [turn["rate"] for turn in turns[build]]
            print(f"  round {number + 1}: {results['before'][-1]:.2f} µs before, {results['after'][-1]:.2f} after", flush=True)
        medians = " and ".join(f"{statistics.median(rates[build]):,.0f}" for build in BUILDS)
        yield row(f"a warm page, {scenario}: CPU µs ({medians} requests/s)", results, lower_is_better=True, digits=2)


def deliveries(stacks, program, arguments):
    """Submissions and deliveries per second at saturation, and the delivery time at a steady rate."""
    options = {}
    for build, stack in stacks.items():
        sink = fixture.free_port()
        _, _, form = webhooks.set_up(stack, sink)
        options[build] = webhooks.submit_options(stack, form, sink)
        webhooks.load(program, **options[build], count=1000)  # warms up
    accepted = {build: [] for build in BUILDS}

    def saturate(build):
        output = webhooks.load(program, **options[build], count=arguments.count)
        assert output["missing"] == 0, output
        accepted[build].append(output["accepted"] / output["sending_s"])
        return output["delivered"] / output["delivering_s"]

    def steady(build):
        return webhooks.load(program, **options[build], rate=200, count=200 * arguments.seconds)["delivery_p50"]

    print("submissions at saturation", flush=True)
    delivered = in_turns(arguments.rounds, saturate)
    yield row("submissions accepted/s", accepted)
    yield row("deliveries/s", delivered)
    print("200 submissions a second", flush=True)
    yield row("delivery p50 at 200/s, ms", in_turns(arguments.rounds, steady), lower_is_better=True)


def revision(program):
    """The commit of the checkout that a runner was built from."""
    folder = pathlib.Path(program).resolve().parent
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="the local runner of the commit to compare with")
    parser.add_argument("after", help="the local runner of this commit")
    for name, default in [("rounds", 5), ("turns", 9), ("seconds", 4), ("count", 6000)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--commits", nargs=2, metavar="COMMIT", help="the two commits, if the runners are not in their checkouts")
    arguments = parser.parse_args()
    programs = {"before": arguments.before, "after": arguments.after}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="web-runtime-bench-"))
        load = webhooks.build_load(folder)
        stacks = {build: stack.enter_context(fixture.system(program=program)) for build, program in programs.items()}
        rows = [*pages(stacks, arguments), *deliveries(stacks, load, arguments)]
    commits = arguments.commits or [revision(program) for program in programs.values()]
    text = f"""# Two builds side by side

Made on {datetime.date.today()} by `tests/bench/compare.py`: commit {commits[0]} before and {commits[1]} after, each a whole system
with its own stores, {arguments.rounds} rounds: pages in {arguments.turns} turns of a second on new edges, {arguments.seconds} s or {arguments.count:,} submissions each. Medians; a ratio above 1 means
that the build after is faster. No median ratio may be below {MIN_RATIO}.

| | before | after | ratio | range |
| --- | ---: | ---: | ---: | ---: |
""" + "\n".join(line for line, _ in rows) + "\n"
    (HERE / "compare.md").write_text(text)
    print(text)
    sys.exit(0 if all(passed for _, passed in rows) else 1)


if __name__ == "__main__":
    main()
