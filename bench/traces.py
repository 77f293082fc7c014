"""Scores the judge on traces: ``python bench/traces.py [--seeds N] [--traces DIR] [--speed]``.

Without a folder it generates the families of tests/scenarios for seeds that no test uses, with periods of 1 to 5 s and
one to four GPUs. Correct means: no hang and no stop on a healthy trace; on a sick one a single hang of the right kind
in time, evidence before the only stop, and no launch after ``exiting``. ``DIR`` has NAME.jsonl and an expect.json.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.builders import Story
from tests.scenarios.cases import fault, opened, replayed
from tests.scenarios.decisions import drawn
from tests.scenarios.healthy import HEALTHY
from tests.scenarios.sick import SICK
from trainwatch.core.config.shipped import load_failures, load_log_shapes
from trainwatch.core.model.observation import Observation
from trainwatch.core.replay import replay

SPEED_STEPS = 20_000


def score_families(seeds: int, *, verbose: bool) -> bool:
    wrong = 0
    for title, families in (("healthy", HEALTHY), ("sick", SICK)):
        right = total = 0
        longest: dict[str, float] = {}
        for which, name, build, size in drawn(seeds):
            if which != title:
                continue
            case = build(*size)
            fold = replayed(case)
            found = fault(case, fold)
            total += 1
            right += not found
            if found:
                print(f"  {title} {name}: seed {size[0]}, {size[1]:g} s, {size[2]} GPUs: {found}")
            elif case.sick is not None:
                latency = opened(fold, case.sick.incident)[0][0] - case.sick.at
                longest[name] = max(longest.get(name, 0.0), latency)
        if verbose:
            for name, latency in longest.items():
                print(f"    {name:55} {latency:6.0f} s")
        print(f"{title} {right}/{total} of {len(families)} families")
        wrong += total - right
    return wrong == 0


def score_folder(folder: Path) -> bool:
    expected = json.loads((folder / "expect.json").read_text(encoding="utf-8"))
    right = 0
    for name, labels in expected.items():
        with (folder / f"{name}.jsonl").open("rb") as lines:
            result = replay(lines, shapes=load_log_shapes(), catalogue=load_failures())
        hangs = [i for i in result["incidents"] if i["kind"] == "hang"]
        label = labels.get("hang")
        if label is None:
            good = not hangs
        else:
            good = (
                len(hangs) == 1
                and hangs[0]["class"] in label["kinds"]
                and 0.0 <= hangs[0]["t"] - label["at"] <= label["within"]
            )
        if "crash" in labels:
            good = good and [i["class"] for i in result["incidents"] if i["kind"] == "crash"] == [labels["crash"]]
        right += good
        if not good:
            print(f"  {name}: {[(i['t'], i['kind'], i['class']) for i in result['incidents']]}, expected {labels}")
    print(f"recorded traces {right}/{len(expected)}")
    return right == len(expected)


def speed() -> None:
    """Observations per second with decoding, against the JSON decoder alone on the same lines."""
    story = Story(seed=5, period_s=1.0, gpus=1, step_s=2.5).start().load().train(SPEED_STEPS)
    lines = [msgspec.json.encode(o) + b"\n" for o in story.observations]
    began = time.process_time()
    decode = msgspec.json.Decoder(Observation).decode
    for line in lines:
        decode(line)
    decoded_s = time.process_time() - began
    began = time.process_time()
    replay(lines, shapes=load_log_shapes(), catalogue=load_failures())
    took_s = time.process_time() - began
    print(
        f"replay {len(lines)} observations: {len(lines) / took_s:,.0f} a second of processor time, "
        f"{took_s / decoded_s:.1f} x reading them"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    good = score_folder(options.traces) if options.traces else score_families(options.seeds, verbose=options.verbose)
    if options.speed:
        speed()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
