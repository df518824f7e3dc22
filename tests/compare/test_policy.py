"""Policy files: those that come with kvbench, and what is refused of others."""

from pathlib import Path

import pytest

from kvbench.compare.aspects import ASPECTS
from kvbench.compare.policy import ASPECT_NAMES, KEYS, find_policy, load_policy
from kvbench.errors import UsageError
from kvbench.metrics import METRICS
from kvbench.plan import make_plan
from kvbench.stats.rank_sum import smallest_n
from kvbench.units import GIB
from kvbench.workload import catalog
from kvbench.workload.folder import data_folder
from tests.compare.runs import THREE
from tests.records import a_target

WHOLE = """
format = 1
confidence = 95
metrics = ["primary"]
may_differ = ["firmware"]
must_not_differ = ["fio"]
[margins]
"*" = "10 %"
"*_p99.9" = "15 %"
"latency_p99.9" = "20 %"
"""


def load(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    load_policy(path)


@pytest.mark.parametrize("name", ["gate", "compare"])
def test_the_policies_that_come_with_kvbench_load(name: str) -> None:
    policy = find_policy(None, name)
    assert policy.confidence == 0.95
    assert all(policy.margin(metric) > 0 for metric in METRICS)
    assert {"fio", "kernel", "preparation"} <= set(policy.must_not_differ)


def test_policies_name_the_aspects_that_there_are() -> None:
    assert set(ASPECT_NAMES) == set(ASPECTS)


def test_the_longest_pattern_decides_a_margin(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE)
    policy = load_policy(path)
    margins = [policy.margin(m) for m in ("iops", "request_p99.9", "latency_p99.9")]
    assert margins == [0.1, 0.15, 0.2]


def test_patterns_choose_numbers(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE.replace('"primary"', '"small-*/reads.latency_p9*"'))
    policy = load_policy(path)
    assert policy.names_metrics
    assert policy.wants(THREE, "reads", "latency_p99")
    assert not policy.wants(THREE, "reads", "iops")


WRONG = {
    "an unknown key": ("confidence = 95", "confidence = 95\nconfidnce = 9", "unknown key"),
    "a missing key": ("confidence = 95", "", "'confidence' is missing"),
    "confidence as a share": ("confidence = 95", "confidence = 0.95", "from 50 to"),
    "confidence of nan": ("confidence = 95", "confidence = nan", "from 50 to"),
    "certainty": ("confidence = 95", "confidence = 100", "from 50 to"),
    "an unknown metric": ('"primary"', '"small/reads.iopz"', "no metric fits"),
    "no pattern at all": ('"primary"', '"iops"', "no pattern of workload/stream.metric"),
    "no metrics": ('["primary"]', "[]", "from 1 to"),
    "an unknown aspect": ('"firmware"', '"frimware"', "no aspect"),
    "an aspect twice": ('["firmware"]', '["firmware", "fio"]', "in must_not_differ as well"),
    "a margin as a number": ('"10 %"', "0.1", "must be text"),
    "a margin without a unit": ('"10 %"', '"0.1"', "must be a share"),
    "a negative margin": ('"10 %"', '"-5 %"', "must be a share"),
    "a margin of nan": ('"10 %"', '"nan %"', "must be a share"),
    "a margin of nothing": ('"*_p99.9"', '"*_p42"', "no metric fits"),
    "metrics without a margin": ('"*" = "10 %"', "", "some metrics have none"),
    "another format": ("format = 1", "format = 2", "must be 1"),
}


@pytest.mark.parametrize(("old", "new", "told"), WRONG.values(), ids=WRONG)
def test_a_wrong_policy_is_refused_in_one_sentence(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    with pytest.raises(UsageError, match=told) as raised:
        load(tmp_path, WHOLE.replace(old, new, 1))
    assert "mine.toml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_level_of_no_role_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be one of memory"):
        load(tmp_path, WHOLE + '[[require]]\nrole = "fast"\nlevel = "x"\n')


def test_a_policy_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_policy(tmp_path / "none.toml")


def test_the_suite_for_gates_has_the_repetitions_that_a_verdict_needs() -> None:
    suite = catalog.find_suite("gate")
    plan = make_plan(
        catalog.suite_workloads(suite),
        a_target(size_bytes=2 * GIB),
        repetitions=suite.repetitions,
        seed=1,
        may_write=True,
    )
    policy = find_policy(None, "gate")
    least = smallest_n(policy.chance / policy.count(plan))
    assert least is not None
    assert suite.repetitions >= least


def test_every_key_of_a_policy_is_explained() -> None:
    readme = (data_folder() / "README.md").read_text()
    section = readme.partition("## Policies")[2].partition("## Suites")[0]
    assert all(f"`{key}`" in section or f"`[{key}]`" in section or f"`[[{key}]]`" in section
               for key in KEYS)  # fmt: skip
