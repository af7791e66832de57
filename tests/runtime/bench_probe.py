"""The proof of the probe: every fault and every clean program, end to end by the command line.

    python tests/runtime/bench_probe.py [NAME ...] [--jobs 2] [--examples DIR] [--nanogpt DIR]

``--examples`` is a checkout of pytorch/examples, ``--nanogpt`` one of karpathy/nanoGPT; without
them those programs are left out. NAME runs only what contains it.

The command is called once a program, in one process a job; ``--cold`` starts
``python -m trainlint probe`` anew each time, which takes three times as long. Programs of several
ranks are always started by torchrun.

Outcomes are kept in ``--results`` as they come, and a program that has not changed is not run
again: a run that was broken off goes on, and ``--again`` starts anew. Prints the tables; exits with
1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import clean_programs
import silent_errors
from case import Case, Outcome, load, run, save, write_script
from mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
LEAST_FOUND = 0.95
LEAST_MUTATIONS, LEAST_BASES, LEAST_CLEAN = 60, 8, 30
MOST_WARNS_EACH = 0.5
LEAST_SILENT_ERRORS = 18


def mutation_case(mutation: Mutation, group: str = "mutation") -> Case:
    """How a mutation is run; the fixed batch only where the fault shows there."""
    script = f"{mutation.name}.py"
    return Case(
        mutation.name,
        group,
        script,
        partial(write_script, script, mutation.source()),
        rules=mutation.rules,
        options=() if mutation.fixed else ("--no-fixed-batch",),
        ranks=mutation.ranks,
    )


def all_cases(examples: Path | None, nanogpt: Path | None) -> list[Case]:
    """Everything that can be run here."""
    cases = [mutation_case(m) for m in MUTATIONS]
    cases += silent_errors.cases()
    cases += clean_programs.bases() + clean_programs.reference_trainers()
    if examples is not None:
        cases += clean_programs.pytorch_examples(examples.resolve())
    if nanogpt is not None:
        cases += clean_programs.nanogpt(nanogpt.resolve())
    return cases


def main() -> int:
    """Run what is missing, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="run only cases whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--examples", type=Path, help="a checkout of pytorch/examples")
    parser.add_argument("--nanogpt", type=Path, help="a checkout of karpathy/nanoGPT")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "bench_probe.jsonl")
    parser.add_argument("--cold", action="store_true", help="one python process a program")
    parser.add_argument("--again", action="store_true", help="forget earlier outcomes")
    options = parser.parse_args()
    cases = all_cases(options.examples, options.nanogpt)
    if options.names:
        cases = [c for c in cases if any(name in c.name for name in options.names)]
    known = {} if options.again else load(options.results)
    outcomes = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(partial(run, known=known, cold=options.cold), cases):
            if outcome.digest not in known:
                known[outcome.digest] = outcome
                save(options.results, outcome)
                print(line(outcome), flush=True)
            outcomes.append(outcome)
    return report(outcomes)


def line(outcome: Outcome) -> str:
    """One outcome as it comes."""
    right = outcome.found if outcome.rules else outcome.clean
    said = ", ".join([*outcome.fails, *(f"{w} (warn)" for w in outcome.warns)]) or "nothing"
    more = f" [{outcome.problem}]" if outcome.problem else ""
    return f"{'ok' if right else 'NO':3}{outcome.name}: {said}{more} ({outcome.seconds:.0f} s)"


def report(outcomes: list[Outcome]) -> int:
    """Print the tables; 1 if a goal is missed."""
    mutations = [o for o in outcomes if o.group == "mutation"]
    errors = [o for o in outcomes if o.group == silent_errors.GROUP]
    clean = [o for o in outcomes if not o.rules]
    _print_rules(mutations)
    _print_silent_errors(errors)
    _print_clean(clean)
    found, named = sum(o.found for o in mutations), sum(o.found for o in errors)
    failing = [o.name for o in clean if not o.clean]
    warns = sum(len(o.warns) for o in clean)
    bases = {m.base for m in MUTATIONS}
    goals = {
        f"{found} of {len(mutations)} mutations of {len(bases)} programs found by name": (
            len(mutations) >= LEAST_MUTATIONS
            and len(bases) >= LEAST_BASES
            and found >= LEAST_FOUND * len(mutations)
        ),
        f"{named} of {silent_errors.PUBLISHED} silent errors found by name": (
            named >= LEAST_SILENT_ERRORS
        ),
        f"{len(clean) - len(failing)} of {len(clean)} clean programs without a FAIL": (
            len(clean) >= LEAST_CLEAN and not failing
        ),
        f"{warns} WARNs on {len(clean)} clean programs": warns <= MOST_WARNS_EACH * len(clean),
    }
    for words, good in goals.items():
        print(f"{'met   ' if good else 'MISSED'}  {words}")
    return int(not all(goals.values()))


def _print_rules(mutations: Iterable[Outcome]) -> None:
    by_rule: dict[str, list[Outcome]] = {}
    for outcome in mutations:
        by_rule.setdefault(outcome.rules[0], []).append(outcome)
    print("\n| fault | mutations | found by name | found under another | missed |")
    print("|---|---|---|---|---|")
    for rule, own in sorted(by_rule.items()):
        found = [o for o in own if o.found]
        other = [o for o in own if not o.found and o.named]
        missed = [o for o in own if not o.named]
        names = "; ".join(f"{o.name}: {', '.join(o.named)}" for o in other)
        gone = ", ".join(o.name for o in missed)
        print(
            f"| {rule} | {len(own)} | {len(found)} | {len(other)} {names} | {len(missed)} {gone} |"
        )


def _print_silent_errors(errors: Iterable[Outcome]) -> None:
    print("\n| silent error of the TrainCheck study | found | reported |")
    print("|---|---|---|")
    for outcome in errors:
        said = ", ".join(outcome.named) or "nothing"
        print(f"| {outcome.name} | {'yes' if outcome.found else 'no'} | {said} |")


def _print_clean(clean: Iterable[Outcome]) -> None:
    by_group: dict[str, list[Outcome]] = {}
    for outcome in clean:
        by_group.setdefault(outcome.group, []).append(outcome)
    print("\n| clean programs | number | with a FAIL | did not run | no optimizer step | WARNs |")
    print("|---|---|---|---|---|---|")
    for group, own in by_group.items():
        failing = [f"{o.name}: {', '.join(o.fails)}" for o in own if o.fails]
        broken = [f"{o.name}: {o.problem}" for o in own if o.problem]
        idle = [o.name for o in own if not o.steps and not o.problem]
        warns = [f"{o.name}: {', '.join(o.warns)}" for o in own if o.warns]
        cells = (failing, broken, idle, warns)
        row = (f"{len(entries)} {'; '.join(entries)}".strip() for entries in cells)
        print(f"| {group} | {len(own)} | {' | '.join(row)} |")


if __name__ == "__main__":
    sys.exit(main())
