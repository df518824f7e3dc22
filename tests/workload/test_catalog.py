import re
from itertools import pairwise
from pathlib import Path

import pytest

from kvbench.errors import UsageError
from kvbench.plan import Plan, TargetSpec, make_plan, min_target_bytes
from kvbench.units import GIB, MIB
from kvbench.workload import catalog, kv, load, streams, sweep
from kvbench.workload.load import load_workload
from kvbench.workload.schema import Suite

QUICK_SECONDS_MAX = 160.0
OF_PREPARE = {"steady-state"}  # the rounds of kvbench prepare
APART = ("integrity", "probe")  # suites of another question; some of their workloads write for long
QUICK_TARGET = TargetSpec(path="/data", kind="file", size_bytes=2 * GIB, own_file=True)


WHAT_SERVING_DOES = (
    *("iops-ladder", "sparse-row-step", "v4-page-fetch", "engram-lookup", "ann-beam"),
    *("vllm-block", "vllm-slotfile", "lmcache-chunk", "lmcache-chunk-buffered", "rawblock-split"),
    *("sglang-prefetch", "layer-first-frag", "layerwise-pipeline", "prefill-burst"),
    *("bucket-churn", "five-class-tenants", "neighbour-matrix", "map-span", "queue-fanout"),
    "restart-scan",
)


def test_every_workload_of_the_catalog_loads_and_says_where_it_is_from() -> None:
    workloads = catalog.list_workloads()
    assert set(WHAT_SERVING_DOES) <= {w.name for w in workloads}
    assert all(len(w.source) > 40 and w.primary for w in workloads)


def test_every_workload_of_the_catalog_says_what_it_lacks_and_fits_the_default_target() -> None:
    for workload in catalog.list_workloads():
        assert len(workload.cannot_express) > 40, workload.name
        assert min_target_bytes(workload) <= QUICK_TARGET.size_bytes, workload.name


def test_sizes_that_software_derives_from_a_model_are_derived_here_too() -> None:
    derived = {w.name: w for w in catalog.list_workloads() if w.derivation}
    assert set(derived) >= {"vllm-block", "vllm-slotfile", "lmcache-chunk", "rawblock-split"}
    assert derived["vllm-block-mla"].streams[0].max_block_bytes == 1_124_352
    assert derived["rawblock-split"].streams[0].chunk_bytes == 20 * MIB


def test_templates_and_tables_of_models_are_not_listed() -> None:
    names = [w.name for w in catalog.list_workloads()]
    assert not [name for name in names if name.startswith("_")]
    assert not set(names) & set(catalog.OTHER_DATA)
    assert names == sorted(names)


def test_the_template_loads_cleanly() -> None:
    assert load_workload(catalog.data_folder() / "_template.toml").name == "_template"


def test_the_template_shows_every_key() -> None:
    text = (catalog.data_folder() / "_template.toml").read_text(encoding="utf-8")
    keys = {
        *load.WORKLOAD_KEYS,
        *streams.STREAM_KEYS,
        *load.TIMING_KEYS,
        *load.LOAD_KEYS,
        *kv.KV_KEYS,
    }
    assert not {key for key in keys if not re.search(rf"\b{key}\b", text)}


def test_every_key_that_is_read_is_documented() -> None:
    text = (catalog.data_folder() / "README.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`\[*([a-z_]+)\]*`", text))
    keys = {
        *load.WORKLOAD_KEYS,
        *streams.STREAM_KEYS,
        *streams.BLOCK_MIX_KEYS,
        *load.TIMING_KEYS,
        *load.LOAD_KEYS,
        *kv.KV_KEYS,
        *sweep.SWEEP_FIELDS,
        *load.SUITE_KEYS,
    }
    assert not keys - documented


def test_every_key_in_the_documented_tables_is_read() -> None:
    text = (catalog.data_folder() / "README.md").read_text(encoding="utf-8")
    before, _, rest = text.partition("## Policies")  # tests/compare checks that section
    text = before + rest.partition("## Suites")[2]
    rows = set(re.findall(r"^\| `\[*([a-z_]+)\]*`", text, re.MULTILINE))
    keys = {
        *load.WORKLOAD_KEYS,
        *streams.STREAM_KEYS,
        *load.TIMING_KEYS,
        *load.LOAD_KEYS,
        *kv.KV_KEYS,
        *load.SUITE_KEYS,
    }
    assert rows == keys


def test_a_workload_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    by_name = catalog.find_workload("vllm-block")
    copy = tmp_path / "mine.toml"
    copy.write_bytes((catalog.data_folder() / "vllm-block.toml").read_bytes())
    by_path = catalog.find_workload(str(copy))
    assert by_path.name == "mine"
    assert by_path.digest == by_name.digest


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'iops-ladder'"):
        catalog.find_workload("iops-lader")
    with pytest.raises(UsageError, match="did you mean 'quick'"):
        catalog.find_suite("quik")
    with pytest.raises(UsageError, match="unknown workload '_template'"):
        catalog.find_workload("_template")
    with pytest.raises(UsageError, match="unknown workload"):
        catalog.find_workload("../../etc/passwd")


def test_a_suite_with_an_unknown_workload_names_the_suite() -> None:
    suite = Suite(name="mine", summary="", workloads=("vllm-blok",), repetitions=1)
    with pytest.raises(UsageError, match="suite mine: unknown workload 'vllm-blok'"):
        catalog.suite_workloads(suite)


def test_every_suite_names_workloads_that_exist() -> None:
    for suite in catalog.list_suites():
        assert len(catalog.suite_workloads(suite)) == len(suite.workloads)


def test_a_suite_that_needs_much_of_a_target_says_how_much() -> None:
    needs = {
        suite.name: max(min_target_bytes(w) for w in catalog.suite_workloads(suite))
        for suite in catalog.list_suites()
    }
    told = {suite.name: suite.summary for suite in catalog.list_suites()}
    assert needs["probe"] == 256 * MIB
    assert f"needs {needs['probe'] // MIB} MiB" in told["probe"]
    restart = catalog.find_workload("restart-scan", None)
    assert "below 256 MiB" in restart.cannot_express


def test_a_target_too_small_for_a_suite_is_told_in_a_sentence_that_names_the_workload() -> None:
    suite = next(one for one in catalog.list_suites() if one.name == "probe")
    workloads = catalog.suite_workloads(suite)

    def plan(size_bytes: int, *names: str) -> Plan:
        chosen = [w for w in workloads if not names or w.name in names]
        small = TargetSpec(path="/data/file", kind="file", size_bytes=size_bytes, own_file=True)
        return make_plan(chosen, small, repetitions=1, seed=1, may_write=True)

    with pytest.raises(UsageError) as raised:
        plan(255 * MIB)
    assert str(raised.value).startswith(
        "stream header: target too small for workload restart-scan: it needs 256 MiB and has 255"
    )
    assert plan(256 * MIB).cells
    others = [w.name for w in workloads if w.name != "restart-scan"]
    assert plan(64 * MIB, *others).cells


def test_quick_fits_its_time_and_its_target() -> None:
    suite = catalog.find_suite("quick")
    workloads = catalog.suite_workloads(suite)
    assert len(workloads) >= 6
    assert {w.role for w in workloads} == {"memory", "performance", "capacity"}
    assert all(min_target_bytes(w) <= QUICK_TARGET.size_bytes for w in workloads)
    plan = make_plan(
        workloads,
        QUICK_TARGET,
        suite="quick",
        repetitions=suite.repetitions,
        seed=1,
        may_write=True,
    )
    assert plan.expected_s <= QUICK_SECONDS_MAX
    assert suite.repetitions == 3


@pytest.mark.parametrize(
    ("name", "at_least_s", "at_most_s"),
    [
        ("smoke", 10, 30),
        ("gate", 5 * 60, 8 * 60),
        ("standard", 20 * 60, 30 * 60),
        ("full", 40 * 60, 70 * 60),
        ("probe", 4 * 60, 8 * 60),
        ("integrity", 10, 3 * 60),
    ],
)
def test_a_suite_takes_the_time_that_it_is_for(
    name: str, at_least_s: float, at_most_s: float
) -> None:
    suite = catalog.find_suite(name)
    plan = make_plan(
        catalog.suite_workloads(suite),
        QUICK_TARGET,
        repetitions=suite.repetitions,
        seed=1,
        may_write=True,
    )
    assert at_least_s <= plan.expected_s <= at_most_s


def test_suites_grow_and_the_largest_leaves_nothing_out() -> None:
    names = [set(catalog.find_suite(n).workloads) for n in ("smoke", "quick", "standard", "full")]
    assert names[0] | names[1] < names[2] < names[3]
    apart = {w for name in APART for w in catalog.find_suite(name).workloads}
    assert names[3] == set(catalog.workload_names()) - (apart - names[3]) - OF_PREPARE


def test_smoke_runs_on_a_small_target() -> None:
    workloads = catalog.suite_workloads(catalog.find_suite("smoke"))
    for workload in workloads:
        assert min_target_bytes(workload) <= 256 * MIB, workload.name
    assert {w.role for w in workloads} == {"memory", "performance", "capacity"}


def test_writers_of_quick_stay_away_from_what_the_others_read() -> None:
    for workload in catalog.suite_workloads(catalog.find_suite("quick")):
        spans = sorted(
            (s.span_start_percent, s.span_start_percent + s.span_percent) for s in workload.streams
        )
        if any(s.writes for s in workload.streams):
            assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_an_incomplete_installation_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvbench.__file__", str(tmp_path / "kvbench" / "__init__.py"))
    with pytest.raises(UsageError, match="missing from this installation"):
        catalog.data_folder()


def test_an_installed_package_uses_the_folder_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "kvbench" / "workloads_data"
    (inside / "suites").mkdir(parents=True)
    (tmp_path / "workloads" / "suites").mkdir(parents=True)
    monkeypatch.setattr("kvbench.__file__", str(tmp_path / "kvbench" / "__init__.py"))
    assert catalog.data_folder() == inside
