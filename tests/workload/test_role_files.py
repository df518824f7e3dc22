"""Role cards and the controller file: what loads, and what is refused with file, key and hint."""

import re
from pathlib import Path

import pytest

from kvbench.errors import UsageError
from kvbench.kv.breakeven import break_even_bandwidth
from kvbench.kv.geometry import sequence_bytes
from kvbench.kv.gpus import load_gpus
from kvbench.kv.models import load_models
from kvbench.kv.prefill import prefill_s
from kvbench.workload import cards, catalog, role_files
from kvbench.workload.role_files import load_controller, load_role_card
from kvbench.workload.roles import CONTROLLER_KEYS, RoleCard
from kvbench.workload.schema import ROLES, BlockShare, Load, SweepAxis, Workload
from tests import records
from tests.workload.files import write

ROWS = records.a_workload(
    name="rows",
    streams=(
        records.a_stream(),
        records.a_stream(
            name="steps", barrier=True, block_mix=(BlockShare(size_bytes=512, percent=100),)
        ),
    ),
    sweep=(SweepAxis(stream="reads", field="block_size", values=(512, 4096)),),
    isolate=True,
)
CURVE = records.a_workload(
    name="curve",
    load=Load(percents=(10, 50), queue_depth=8, limit_s=0.001, search_steps=1),
    sweep=(),
)
GUESS = records.a_workload(name="guess", evidence="projected", sweep=())
TOP = 'format = 1\nrole = "memory"\nsummary = "a test"\n'
LEVEL = '[[level]]\nname = "one"\ntitle = "t"\nsummary = "s"\nsource = "s"\n'
ROW = {
    "metric": '"iops"',
    "workload": '"rows"',
    "stream": '"reads"',
    "at_least": "1000",
    "why": '"w"',
    "source": '"s"',
    "evidence": '"shipping"',
}


def find(name: str) -> Workload:
    known = {workload.name: workload for workload in (ROWS, CURVE, GUESS)}
    if name not in known:
        raise UsageError(f"there is no workload {name!r}", hint="did you mean 'rows'?")
    return known[name]


def card(folder: Path, *, top: str = TOP, level: str = LEVEL, **changes: str) -> RoleCard:
    """Load a card of one row; a change of "" leaves the key out."""
    values = {key: value for key, value in (ROW | changes).items() if value}
    row = "\n".join(f"{key} = {value}" for key, value in values.items())
    text = f"{top}{level}[[level.requirement]]\n{row}\n"
    return load_role_card(write(folder, text, "memory.toml"), find)


def refused(folder: Path, **changes: str) -> str:
    with pytest.raises(UsageError) as caught:
        card(folder, **changes)
    assert caught.value.where.startswith(f"{folder}/memory.toml"), "the file is named"
    return str(caught.value).removeprefix(f"{folder}/memory.toml: ")


def test_every_card_loads_and_all_that_it_names_exists() -> None:
    found = cards.list_role_cards()
    assert [card.role for card in found] == list(ROLES)
    assert all(card.levels for card in found)


def test_a_card_names_workloads_of_its_own_role_or_of_another_but_never_too_few() -> None:
    for found in cards.list_role_cards():
        asked = {r.subject.workload for level in found.levels for r in level.requirements}
        mine = {w.name for w in catalog.list_workloads() if w.role == found.role}
        assert len(asked & mine) >= 3, found.role


def test_the_targets_of_2026_and_2027_are_projected_levels_of_their_own() -> None:
    memory = cards.find_role_card("memory")
    for name, iops in (("near-gpu-2026", 10_000_000), ("near-gpu-2027", 100_000_000)):
        level = next(level for level in memory.levels if level.name == name)
        assert {row.evidence for row in level.requirements} == {"projected"}
        assert level.requirements[0].limit == iops
        assert level.requirements[0].subject.at["block_size"] == 512


@pytest.mark.parametrize(
    ("level", "gpu", "model", "tp"),
    [
        ("reload-deepseek-v3-8xh100", "h100", "deepseek-v3", 8),
        ("reload-qwen3-32b-h100", "h100", "qwen3-32b", 1),
        ("reload-llama-3-1-8b-h100", "h100", "llama-3.1-8b", 1),
        ("reload-llama-3-1-70b-8xh100", "h100", "llama-3.1-70b", 8),
        ("reload-llama-3-1-8b-b200", "b200", "llama-3.1-8b", 1),
        ("reload-qwen3-32b-4xb200", "b200", "qwen3-32b", 4),
    ],
)
def test_break_even_limits_are_those_of_the_table_of_gpus(
    level: str, gpu: str, model: str, tp: int
) -> None:
    models = load_models(catalog.data_folder() / "models.toml")
    gpus = load_gpus(catalog.data_folder() / "gpus.toml").gpus
    named = models[model]
    kv_bytes = sequence_bytes(named.geometry, 8192, named.dtype)
    needed = break_even_bandwidth(kv_bytes, prefill_s(named, gpus[gpu], tp, 8192).seconds)
    limits = [
        found.requirements[0].limit
        for card in cards.list_role_cards()
        for found in card.levels
        if found.name == level
    ]
    assert limits
    assert limits == pytest.approx([needed] * len(limits), rel=0.01)


def test_no_card_scores_a_projected_workload_as_anything_else() -> None:
    evidence = {w.name: w.evidence for w in catalog.list_workloads()}
    rows = [r for c in cards.list_role_cards() for level in c.levels for r in level.requirements]
    assert rows
    for row in rows:
        if evidence[row.subject.workload] == "projected":
            assert row.evidence == "projected"


def test_the_five_controller_requirements_have_probes_and_say_what_they_cannot_prove() -> None:
    found = cards.list_controller_requirements()
    assert [requirement.key for requirement in found] == list(CONTROLLER_KEYS)
    for requirement in found:
        assert requirement.probes
        assert len(requirement.cannot_prove) > 60
        assert len(requirement.confounders) > 60


def test_every_controller_requirement_has_rows_in_a_card() -> None:
    named = {
        row.controller
        for card in cards.list_role_cards()
        for level in card.levels
        for row in level.requirements
    }
    assert named >= set(CONTROLLER_KEYS)


@pytest.mark.parametrize(
    ("metric", "limit", "value"),
    [
        ("iops", "at_least = 1_000_000", 1e6),
        ("iops", 'at_least = "1000000"', 1e6),
        ("bandwidth", 'at_least = "5.4GB/s"', 5.4e9),
        ("latency_p99", 'at_most = "1ms"', 0.001),
        ("iops_over_4kib", "at_least = 1.1", 1.1),
        ("host_ceiling_share", 'at_most = "70 %"', 70.0),
        ("device_request_bytes", 'at_least = "128KiB"', 131072.0),
    ],
)
def test_a_limit_has_the_unit_of_its_metric(
    tmp_path: Path, metric: str, limit: str, value: float
) -> None:
    bound, _, text = limit.partition(" = ")
    found = card(tmp_path, metric=f'"{metric}"', **({"at_least": ""} | {bound: text}))
    assert found.levels[0].requirements[0].limit == pytest.approx(value)


def test_a_parameter_is_read_like_a_swept_value(tmp_path: Path) -> None:
    found = card(tmp_path, at='{ reads.block_size = "512B" }')
    assert found.levels[0].requirements[0].subject.at == {"reads.block_size": 512}
    loaded = card(tmp_path, workload='"curve"', at='{ load = "50 %" }')
    assert loaded.levels[0].requirements[0].subject.at == {"load": "50 %"}


def test_the_worst_point_decides_by_default(tmp_path: Path) -> None:
    assert card(tmp_path).levels[0].requirements[0].of == "worst"
    assert card(tmp_path, of='"best"').levels[0].requirements[0].of == "best"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"workload": '"row"'}, r"requirement\[1\]\.workload: there is no workload .*did you mean"),
        ({"stream": '"read"'}, r"requirement\[1\]\.stream: 'read' is no stream .*'reads'"),
        ({"metric": '"iop"'}, r"requirement\[1\]\.metric: 'iop' names no metric .*'iops'"),
        ({"metric": '"request_p99"'}, r"metric: request_p99 is not measured by rows: it needs"),
        (
            {"metric": '"latency_p99"', "stream": '"steps"'},
            r"metric: latency_p99 is not measured by rows: behind a barrier",
        ),
        ({"metric": '"usable_iops"'}, r"metric: usable_iops is not measured .* \[load\]"),
        ({"at": "{ queue_depth = 4 }"}, r"at\.queue_depth: is no parameter .*reads\.block_size"),
        (
            {"at": '{ "reads.block_size" = "1KiB" }'},
            r"at\.reads\.block_size: '1KiB' is not among .*512, 4096",
        ),
        ({"at_least": ""}, r"needs one of at_least and at_most"),
        ({"at_most": "5"}, r"needs one of at_least and at_most"),
        ({"at_least": "", "at_most": "5"}, r"at_most: does not fit iops, of which higher"),
        ({"at_least": '"1ms"'}, r"at_least: is no limit for iops: '1ms' \(write e\.g\. 0\.9"),
        (
            {"metric": '"bandwidth"', "at_least": '"5.4GB"'},
            r"at_least: is no limit for bandwidth: '5\.4GB' \(write e\.g\. 5\.4GB/s\)",
        ),
        (
            {"metric": '"latency_p99"', "at_least": "", "at_most": "5"},
            r"at_most: is no limit for latency_p99: 5 \(write e\.g\. 1ms\)",
        ),
        ({"at_least": "0"}, r"at_least: must be above 0"),
        ({"at_least": "nan"}, r"at_least: must be above 0"),
        ({"of": '"mean"'}, r"of: must be one of worst, best"),
        ({"evidence": '"certain"'}, r"evidence: must be one of shipping, trace"),
        ({"controller": '"speed"'}, r"controller: must be one of small-io-rate"),
        ({"workload": '"guess"'}, r"evidence: must be projected, as the workload guess is"),
        ({"whi": '"w"'}, r"requirement\[1\]: unknown key 'whi' \(did you mean 'why'\?\)"),
        ({"why": ""}, r"the key 'why' is missing"),
        ({"top": TOP.replace("memory", "capacity")}, r"role: is capacity in a file named 'memory'"),
        ({"level": LEVEL + "[[level.requirement]]\n"}, r"the key 'workload' is missing"),
        ({"level": LEVEL.replace("one", "../x")}, r"name: "),
    ],
)
def test_a_wrong_card_is_refused_with_file_key_and_hint(
    tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    assert re.search(said, refused(tmp_path, **changes))


def test_two_levels_of_one_name_are_refused(tmp_path: Path) -> None:
    rows = "\n".join(f"{key} = {value}" for key, value in ROW.items())
    twice = f"{TOP}{LEVEL}[[level.requirement]]\n{rows}\n" + f"{LEVEL}[[level.requirement]]\n{rows}"
    with pytest.raises(UsageError, match="level: has 'one' twice"):
        load_role_card(write(tmp_path, twice, "memory.toml"), find)


def test_a_card_cannot_name_a_path_as_its_workload() -> None:
    with pytest.raises(UsageError, match="there is no workload"):
        cards.finder()("./workloads/iops-ladder.toml")


def test_a_missing_controller_requirement_is_named(tmp_path: Path) -> None:
    probe = '[[requirement.probe]]\nworkload = "rows"\nstream = "reads"\nmetric = "iops"\n'
    text = (
        'format = 1\n[[requirement]]\nkey = "map-growth"\ntitle = "t"\nasks = "a"\n'
        f'confounders = "c"\ncannot_prove = "p"\nsource = "s"\n{probe}tells = "t"\n'
    )
    with pytest.raises(UsageError, match="requirement: lacks small-io-rate, latency-spread"):
        load_controller(write(tmp_path, text, "controller.toml"), find)


def test_every_key_of_a_card_and_of_the_controller_file_is_documented() -> None:
    text = (catalog.data_folder() / "README.md").read_text(encoding="utf-8")
    section = text[text.index("## Role cards") :]
    quoted = re.findall(r"`([^`]+)`", section)
    documented = {word for text in quoted for word in re.findall("[a-z_]+", text)}
    keys = {
        *role_files.CARD_KEYS,
        *role_files.LEVEL_KEYS,
        *role_files.REQUIREMENT_KEYS,
        *role_files.CONTROLLER_ENTRY_KEYS,
        *role_files.PROBE_KEYS,
    }
    assert not keys - documented
    assert set(CONTROLLER_KEYS) <= set(quoted)
