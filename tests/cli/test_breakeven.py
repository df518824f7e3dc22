"""``kvbench breakeven`` through the command line, on an archive whose numbers are known."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kvbench.cli.main import main
from kvbench.errors import ExitCode
from kvbench.kv.breakeven import Interval
from kvbench.measure.breakeven import Context, ContextReload, Winning
from kvbench.measure.reload import Figure, LeftOut
from kvbench.plan import make_plan
from kvbench.report.breakeven import Answer, PointAnswer
from kvbench.store import layout
from kvbench.store.write import RunWriter
from kvbench.units import GIB, KIB, MIB
from kvbench.workload.schema import Timing
from tests import direct_io, records
from tests.measure.builders import UNPROVEN, launch
from tests.measure.reloads import a_block_stream, a_reload, blocks

ROOT = Path(__file__).resolve().parents[2]
MEAN_S = 1e-3  # a thousand of them, one after the other, in a second
P50_S, P99_S = 960_000 / 1e9, 2_500_000 / 1e9
BINS = {"960000": 980, "2500000": 20}  # 0.991 s of I/O in a second at depth 1

Said = Callable[..., str]


def fio_output(size_bytes: int, bins: dict[str, int]) -> str:
    """What fio prints of one job at depth 1 that read for a second."""
    count = sum(bins.values())
    times = [int(ns) for ns in bins]
    mean = sum(int(ns) * n for ns, n in bins.items()) / count
    section = {
        "min": min(times),
        "max": max(times),
        "mean": mean,
        "stddev": 1.0,
        "N": count,
        "bins": bins,
    }
    read = {
        "io_bytes": count * size_bytes,
        "io_kbytes": count * size_bytes // KIB,
        "bw_bytes": count * size_bytes,
        "iops": float(count),
        "runtime": 1000,
        "total_ios": count,
        "short_ios": 0,
        "drop_ios": 0,
        "lat_ns": section,
        "clat_ns": section,
    }
    job = {
        "jobname": "load",
        "groupid": 0,
        "error": 0,
        "job_runtime": 1000,
        "usr_cpu": 1.0,
        "sys_cpu": 2.0,
        "iodepth_level": {"1": 100.0},
        "read": read,
    }
    document = {"fio version": "fio-3.33", "timestamp_ms": 1_782_907_202_000, "jobs": [job]}
    return json.dumps(document, indent=1)


def store_run(
    results: Path,
    *,
    size_bytes: int = 2 * MIB,
    bins: dict[str, int] | None = None,
    proven: bool = True,
) -> Path:
    """Archive two repetitions of ``blocks`` and one of the projected ``maybe``."""
    timing = Timing(runtime_s=1.0, ramp_s=0.0)
    stream = a_block_stream(block_mix=blocks(size_bytes))
    plan = make_plan(
        (
            a_reload(stream, timing=timing),
            a_reload(stream, name="maybe", digest="other", evidence="projected", timing=timing),
        ),
        records.a_target(size_bytes=GIB),
        repetitions=2,
        seed=1,
        may_write=False,
    )
    text = fio_output(size_bytes, BINS if bins is None else bins)
    record = records.a_run_record(plan, run_id="known")
    if not proven:
        record = msgspec.structs.replace(record, written=UNPROVEN)
    writer = RunWriter.create(results, record)
    for cell in plan.cells:
        folder = writer.begin_cell(cell.cell_id, "")
        (folder / layout.OUTPUT_FILE).write_text(text)
        writer.commit_cell(launch(cell, '"timestamp_ms": 1782907202000'))
    writer.finish(records.an_end_record(cells_done=len(plan.cells)))
    return results / "known"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_run(tmp_path_factory.mktemp("stored"))


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    """A copy of the known run, which a test may damage."""
    return Path(shutil.copytree(stored, tmp_path / "known"))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], run: Path) -> Said:
    """What the verb prints about the known run."""

    def ask(*argv: str) -> str:
        assert main(["breakeven", str(run), *argv]) == ExitCode.OK
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return ask


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], run: Path) -> Said:
    def ask(*argv: str, of: Path | str = run, code: ExitCode = ExitCode.USAGE) -> str:
        assert main(["breakeven", str(of), *argv]) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return ask


LLAMA = ("--model", "llama-3.1-8b", "--gpu", "h100")


def test_the_numbers_are_those_of_the_archive(said: Said) -> None:
    answer = json.loads(said(*LLAMA, "--json"))
    assert (answer["model"], answer["gpu"], answer["tp"]) == ("llama-3.1-8b", "h100", 1)
    (point,) = answer["points"]
    assert (point["workload"], point["evidence"], point["stream"]) == ("blocks", "shipping", "load")
    assert (point["request_bytes"], point["request_tokens"], point["in_flight"]) == (2 * MIB, 16, 1)
    assert point["mean"]["value"] == pytest.approx(MEAN_S)
    assert (point["p50"]["value"], point["p50"]["n"]) == (pytest.approx(P50_S), 2)
    assert point["p99"]["value"] == pytest.approx(P99_S)
    assert point["bandwidth"]["value"] == pytest.approx(2_097_152_000)
    at_8k = next(row for row in point["reloads"] if row["tokens"] == 8192)
    assert at_8k["requests"] == 512
    assert at_8k["reload_mean_s"] == pytest.approx(512 * MEAN_S)
    assert at_8k["reload_p99_s"] == pytest.approx(512 * P99_S)
    assert (at_8k["winner_mean"], at_8k["winner_p99"]) == ("recompute", "recompute")
    assert at_8k["users"] is None


@pytest.mark.parametrize(
    ("model", "gpu", "tp", "expected"),
    [
        ("llama-3.1-8b", "h100", "1", 5.4),
        ("qwen3-32b", "b200", "4", 14.9),
        ("deepseek-v3", "h100", "8", 1.08),
    ],
)
def test_the_bandwidth_needed_at_8k_is_the_published_one(
    said: Said, model: str, gpu: str, tp: str, expected: float
) -> None:
    answer = json.loads(said("--model", model, "--gpu", gpu, "--tp", tp, "--json"))
    at_8k = next(row for row in answer["contexts"] if row["tokens"] == 8192)
    assert at_8k["prefill_basis"] == "table"
    needed = at_8k["bandwidth_needed_bytes_per_s"] / 1e9
    assert needed == pytest.approx(expected, abs=0.005 if expected < 2 else 0.05)


def test_the_overhead_is_part_of_the_bandwidth_needed(said: Said) -> None:
    own = ("--model", "llama-3.1-8b", "--prefill-tok-s", "10240", "--overhead-ms", "200")
    first, second, *_ = json.loads(said(*own, "--json"))["contexts"]
    assert first["bandwidth_needed_bytes_per_s"] is None  # 1,024 tokens are computed in 100 ms
    assert (second["prefill_s"], second["bandwidth_needed_bytes_per_s"]) == (0.2, None)
    argv = (*own[:-1], "100")
    _, second, *_ = json.loads(said(*argv, "--json"))["contexts"]
    assert second["bandwidth_needed_bytes_per_s"] == pytest.approx(second["kv_bytes"] / 0.1)
    text = " ".join(said(*argv).split())
    assert "1,024 128 MiB 100 ms given never" in text
    assert "BW*: KV over recompute less 100 ms of overhead" in text


def test_your_own_rate_replaces_the_table_and_needs_no_gpu(said: Said) -> None:
    own = ("--model", "llama-3.1-8b", "--prefill-tok-s", "10000")
    answer = json.loads(said(*own, "--json"))
    assert answer["gpu"] is None
    assert {row["prefill_basis"] for row in answer["contexts"]} == {"given"}
    at_8k = next(r for r in answer["points"][0]["reloads"] if r["tokens"] == 8192)
    assert (at_8k["winner_mean"], at_8k["winner_p99"]) == ("reload", "recompute")
    text = said(*own)
    assert "at the mean reloading wins at every length from 1,024 to 131,072 tokens" in text
    assert "at p99 reloading wins at no length" in text
    assert "recompute: given: 10000 tokens/s at every length" in text
    assert "aiconfigurator" not in text


CONFIG = {
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "torch_dtype": "bfloat16",
}


def test_a_config_file_stands_for_a_model_that_is_not_listed(
    said: Said, refused: Said, tmp_path: Path
) -> None:
    config = tmp_path / "mine" / "config.json"
    config.parent.mkdir()
    config.write_text(json.dumps(CONFIG))
    own = ("--config", str(config), "--prefill-tok-s", "10000")
    answer = json.loads(said(*own, "--json"))
    assert (answer["model"], answer["bytes_per_token"]) == ("mine", 131_072)
    told = refused("--config", str(config), "--gpu", "h100")
    assert "nothing is known about the FLOPs of mine" in told
    assert "tokens per second" in told


def test_the_report_answers_for_the_model_that_is_named(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["report", str(run), "--text"]
    assert main(argv) == ExitCode.OK
    assert "llama-3.1-8b with bf16 KV of 131,072 B per token" in capsys.readouterr().out
    assert main([*argv, "--model", "deepseek-v3", "--ttft-ms", "1000"]) == ExitCode.OK
    text = " ".join(capsys.readouterr().out.split())
    assert "deepseek-v3 with bf16 KV of 70,272 B per token on 8 x h100" in text
    assert main([*argv, "--model", "nobody"]) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert "nobody" in captured.err
    assert captured.out == ""


def test_the_text_says_how_a_reload_is_modelled_and_what_the_p99_is(said: Said) -> None:
    text = " ".join(said(*LLAMA).split())
    assert "a context of B bytes is ceil(B / request bytes) requests of a size that was" in text
    assert "ceil(B / 2,097,152) requests, 1 at a time" in text
    assert "It is neither the p99 of a reload nor a bound" in text
    assert "upper bound" not in text
    assert "estimate: table of llama-3.1-8b on h100" in text
    assert "recompute: the table is of aiconfigurator" in text
    assert "extrapolated" in text


def test_doubts_and_alerts_stand_beside_the_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unproven = store_run(tmp_path / "unproven", proven=False)
    assert main(["breakeven", str(unproven), *LLAMA]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "!! nothing proves that the 1 GiB under test were ever written" in text
    assert "  ! " in text
    main(["breakeven", str(unproven), *LLAMA, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["alerts"]
    assert answer["points"][0]["doubts"]


def test_where_it_wins_is_told_at_both_ends_of_what_was_measured(said: Said) -> None:
    own = ("--model", "llama-3.1-8b", "--prefill-tok-s", "10000")
    text = " ".join(said(*own).split())
    assert "from 1,024 to 131,072 tokens (as at the ends of its range)" in text
    for winning in json.loads(said(*own, "--json"))["points"][0]["winning"]:
        assert winning["low"] == winning["intervals"] == winning["high"]


def test_users_are_counted_within_the_budget(said: Said) -> None:
    argv = (*LLAMA, "--ttft-ms", "500", "--overhead-ms", "10")
    answer = json.loads(said(*argv, "--json"))
    assert (answer["ttft_s"], answer["overhead_s"]) == (0.5, 0.01)
    users = {row["tokens"]: row["users"] for row in answer["points"][0]["reloads"]}
    assert users[1024] == 7  # 0.49 s x 2.097 GB/s / 128 MiB = 7.66
    assert users[8192] == 0  # one alone takes 0.50 s
    text = said(*argv)
    assert "users" in text
    assert "within 500 ms" in text
    assert "10.0 ms of overhead" in text


def test_the_formula_is_an_estimate_with_its_range(said: Said) -> None:
    argv = ("--model", "mistral-7b", "--gpu", "h100")
    answer = json.loads(said(*argv, "--json"))
    for row in answer["contexts"]:
        assert row["prefill_basis"] == "formula"
        assert row["prefill_low_s"] < row["prefill_s"] < row["prefill_high_s"]
    text = " ".join(said(*argv).split())
    assert "low to high" in text
    assert "rough estimate: FLOPs formula" in text
    assert "by the low estimate" in text


def test_projected_evidence_is_left_out_until_it_is_named(said: Said) -> None:
    assert "maybe, stream load: it rests on projected evidence" in said(*LLAMA)
    named = said(*LLAMA, "--workload", "maybe")
    assert "maybe [PROJECTED, performance]" in named
    assert "blocks" not in named
    assert json.loads(said(*LLAMA, "--workload", "maybe", "--json"))["points"][0]["evidence"] == (
        "projected"
    )


def test_a_percentile_that_was_not_measured_has_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = store_run(tmp_path / "few", bins={"9600000": 100})
    assert main(["breakeven", str(few), *LLAMA]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "p99 not measured: too few I/Os: 100 of 1,000 needed" in text
    assert "at p99 reloading was not measured" in text
    main(["breakeven", str(few), *LLAMA, "--json"])
    (point,) = json.loads(capsys.readouterr().out)["points"]
    assert point["p99"]["value"] is None
    assert point["p99"]["reason"]
    assert {row["reload_p99_s"] for row in point["reloads"]} == {None}
    assert [w["intervals"] for w in point["winning"] if w["pace"] == "p99"] == [None]


@pytest.mark.parametrize("model", ["llama-3.1-8b", "mistral-7b", "deepseek-v3.2"])
def test_the_text_fits_100_columns_and_an_ascii_terminal(
    said: Said, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    argv = ("--model", model, "--gpu", "h100", "--tp", "8", "--ttft-ms", "1e6")
    text = said(*argv)
    assert max(map(len, text.splitlines())) <= 100
    monkeypatch.setattr("kvbench.cli.output.speaks_unicode", lambda _: False)
    plain = said(*argv)
    assert plain.isascii()
    assert "?" not in plain


def test_sizes_in_json_are_integers_and_times_are_floats(said: Said) -> None:
    answer = json.loads(said(*LLAMA, "--ttft-ms", "500", "--json"))
    for row in answer["contexts"]:
        assert isinstance(row["kv_bytes"], int)
        assert isinstance(row["prefill_s"], float)
    assert isinstance(answer["points"][0]["request_bytes"], int)
    assert isinstance(answer["bytes_per_token"], int)


@pytest.mark.parametrize(
    "kind", [Answer, PointAnswer, Context, Figure, ContextReload, Winning, Interval, LeftOut]
)
def test_every_key_of_the_document_is_described(kind: type[msgspec.Struct]) -> None:
    readme = (ROOT / "README.md").read_text()
    for field in msgspec.structs.fields(kind):
        assert f"`{field.name}`" in readme, field.name


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--model", "lama-3.1-8b", "--gpu", "h100"), "did you mean 'llama-3.1-8b'?"),
        (("--model", "llama-3.1-8b", "--gpu", "h1000"), "did you mean 'h100'?"),
        (("--gpu", "h100"), "name a model with --model, or give --config FILE"),
        ((*LLAMA, "--config", "config.json"), "give --model or --config, not both"),
        (("--config", "no/such/file", "--gpu", "h100"), "no/such/file"),
        (("--model", "llama-3.1-8b"), "name a GPU with --gpu, or give --prefill-tok-s"),
        ((*LLAMA, "--tp", "3"), "--tp: 3 ranks do not divide the 32 query heads"),
        ((*LLAMA, "--tp", "two"), "--tp: not a whole number: 'two'"),
        ((*LLAMA, "--dtype", "fp17"), "--dtype: unknown dtype 'fp17'"),
        ((*LLAMA, "--dtype", "nvfp4"), "states no row of nvfp4"),
        ((*LLAMA, "--overhead-ms", "-1"), "--overhead-ms: must be 0 or more"),
        ((*LLAMA, "--overhead-ms", "much"), "--overhead-ms: not a number: 'much'"),
        ((*LLAMA, "--ttft-ms", "0"), "--ttft-ms: must be above 0"),
        ((*LLAMA, "--ttft-ms", "inf"), "--ttft-ms: not a number"),
        ((*LLAMA, "--ttft-ms", "1e300"), "--ttft-ms: must be at most 1e+12"),
        ((*LLAMA, "--prefill-tok-s", "nan"), "--prefill-tok-s: not a number"),
        ((*LLAMA, "--prefill-tok-s", "1" * 5000), "--prefill-tok-s: not a number"),
        ((*LLAMA, "--workload", "block"), "no workload 'block' (did you mean 'blocks'?)"),
        ((*LLAMA, "--workload", "a\nb"), "the run has no workload"),
        (("--model", "deepseek-v3", "--gpu", "a100", "--tp", "8"), "give your own figure"),
    ],
)
def test_what_is_wrong_is_one_sentence(refused: Said, argv: tuple[str, ...], message: str) -> None:
    assert message in refused(*argv)


def test_a_run_without_a_reload_says_what_it_has_instead(refused: Said, tmp_path: Path) -> None:
    small = store_run(tmp_path / "small", size_bytes=4 * KIB)
    told = refused(*LLAMA, of=small)
    assert "no reload of a block or chunk was measured" in told
    assert "blocks: load: its reads are smaller than 64 KiB" in told


def test_cells_that_do_not_count_are_no_reload(refused: Said, tmp_path: Path) -> None:
    wrong = store_run(tmp_path / "wrong", bins={"960000": 980, "25000000": 900})  # 23 s in 1 s
    assert "no repetition counts: 2 invalid" in refused(*LLAMA, of=wrong)


def test_a_missing_or_damaged_run_is_exit_5(refused: Said, run: Path) -> None:
    assert "no run 'nowhere'" in refused(*LLAMA, of="nowhere", code=ExitCode.STORE)
    (run / layout.RUN_FILE).write_text("{")
    assert "is damaged" in refused(*LLAMA, code=ExitCode.STORE)


def test_a_damaged_cell_is_told_and_the_others_count(run: Path, said: Said) -> None:
    cell = next(
        path
        for path in sorted((run / layout.CELLS_FOLDER).iterdir())
        if '"purpose": "measure"' in (path / layout.CELL_FILE).read_text()
        and '"workload": "blocks"' in (path / layout.CELL_FILE).read_text()
    )
    (cell / layout.CELL_FILE).write_text("{")
    text = said(*LLAMA)
    assert "the archive is damaged: 1 part could not be read" in " ".join(text.split())
    answer = json.loads(said(*LLAMA, "--json"))
    assert len(answer["damage"]) == 1
    assert answer["points"][0]["p50"]["n"] == 1


BLOCKS_FILE = """
format = 1
summary = "blocks of a small target"
role = "performance"
source = "a test"
evidence = "shipping"
cannot_express = "nothing"
primary = ["load.latency_p50"]
[[stream]]
name = "load"
direction = "read"
pattern = "random"
block_size = "256KiB"
[sweep]
jobs = [1, 4]
"""


@pytest.mark.fio
def test_a_real_run_of_blocks_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    target = tmp_path / "target.dat"
    target.write_bytes(os.urandom(64 * MIB))
    if not direct_io.works(target):
        pytest.skip(f"{tmp_path} does not support O_DIRECT")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blocks.toml").write_text(BLOCKS_FILE)
    argv = ["--workload", "blocks.toml", "--repetitions", "1", "--runtime", "0.3"]
    assert main(["run", str(target), *argv, "--json"]) == ExitCode.OK
    capsys.readouterr()
    assert main(["breakeven", "latest", *LLAMA, "--json"]) == ExitCode.OK
    answer = json.loads(capsys.readouterr().out)
    assert [p["in_flight"] for p in answer["points"]] == [1, 4]
    for point in answer["points"]:
        assert point["reloads"][0]["reload_mean_s"] > 0
        assert (point["p99"]["value"] is None) == bool(point["p99"]["reason"])
