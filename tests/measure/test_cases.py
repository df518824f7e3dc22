"""Real faults, recorded: each gives the right value, or is refused for the right reason."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from kvbench.fio import output
from kvbench.measure.checks import findings_of
from kvbench.measure.model import MeasuredCell
from kvbench.stats import histogram
from tests.measure.builders import (
    CASES,
    UNPROVEN,
    cell,
    checks,
    counters,
    direction,
    evidence,
    finding,
    job,
    latency,
    measure,
    recorded,
    stream,
    value,
)

FAST_READS = "02-unwritten-data-fast-reads"
REFUSED = "04-refused-run-exit-zero"
NO_SAMPLES = "09-no-samples-is-not-zero-latency"
INTERRUPTED = "14-interrupted-run-looks-complete"
STALE = "15-stale-or-help-text-output"
DEPTH = "23-queue-depth-not-reached"


def read_256_mib(folder: Path, what: str, runtime_s: float, device_bytes: int) -> MeasuredCell:
    reads = stream(f"read-{what}", 131072, queue_depth=8)
    before, after = counters(device_bytes, requests=2048)
    return measure(
        folder,
        cell(reads, runtime_s=runtime_s),
        recorded(f"{FAST_READS}/read-{what}.json"),
        device="vda",
        before=before,
        after=after,
    )


@pytest.mark.parametrize(("what", "runtime_s"), [("sp", 0.019), ("un", 0.021)])
def test_reads_that_never_reached_the_device_are_invalid(
    tmp_path: Path, what: str, runtime_s: float
) -> None:
    found = read_256_mib(tmp_path, what, runtime_s, 0)
    assert found.outcome == "invalid"
    assert checks(found) == {"never-written"}
    text = finding(found, "never-written").text
    assert "256 MiB" in text
    assert "vda saw 0 B" in text


def test_a_file_written_in_part_is_invalid_as_well(tmp_path: Path) -> None:
    before, after = counters(4 * 2**20)
    found = measure(
        tmp_path,
        cell(stream("read-partly", queue_depth=8), runtime_s=0.102),
        recorded(f"{FAST_READS}/read-partly-written.json"),
        device="vda",
        before=before,
        after=after,
    )
    assert checks(found) == {"never-written"}


def test_reads_that_the_device_saw_are_valid(tmp_path: Path) -> None:
    found = read_256_mib(tmp_path, "wr", 0.55, 256 * 2**20)
    assert found.outcome == "valid"
    assert value(found, "bandwidth").value == pytest.approx(488064465, rel=1e-6)
    assert value(found, "device_requests_per_io").value == pytest.approx(1.0)


def test_without_counters_a_device_nobody_filled_is_doubted(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("read-wr", 131072, queue_depth=8), runtime_s=0.55),
        recorded(f"{FAST_READS}/read-wr.json"),
        written=UNPROVEN,
    )
    assert found.outcome == "doubtful"
    assert checks(found, "doubt") == {"never-written"}
    assert "no record of a fill" in finding(found, "never-written").text
    assert checks(found, "note") == {"device-counters"}


def test_a_refusal_with_exit_code_zero_is_a_failed_cell(tmp_path: Path) -> None:
    writes = stream("x", 65536, direction="write")
    found = measure(
        tmp_path,
        cell(writes),
        recorded(f"{REFUSED}/stdout.json"),
        stderr=recorded(f"{REFUSED}/stderr.txt"),
    )
    assert found.outcome == "failed"
    assert {"idle", "fio-said"} <= checks(found)
    assert "appears mounted" in finding(found, "fio-said").text
    assert value(found, "iops", direction="write").value is None
    assert value(found, "iops", direction="write").reason == "no I/O was done"


def test_an_offset_past_the_end_is_a_failed_cell(tmp_path: Path) -> None:
    found = measure(tmp_path, cell(stream("x")), recorded(f"{REFUSED}/offset-past-end-stdout.json"))
    assert found.outcome == "failed"
    assert "1 of 1 jobs did no I/O" in finding(found, "idle").text


def test_idle_jobs_beside_busy_ones_fail_the_cell_and_are_named(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("x", jobs=4), runtime_s=0.2),
        recorded(f"{REFUSED}/offset-increment-2-of-4-jobs-idle.json"),
    )
    assert found.outcome == "failed"
    assert finding(found, "idle").text == "2 of 4 jobs did no I/O (fio's job 2, 3)"


def test_percentiles_of_jobs_are_merged_and_not_averaged(tmp_path: Path) -> None:
    # The two rows are of two sections; here they stand for two jobs of one stream.
    text = recorded("08-averaged-percentiles/two-jobs-jsonplus.json")
    text = text.replace('"jobname" : "slow"', '"jobname" : "fast"')
    mixed_blocks = stream(
        "fast", jobs=2, block_mix=(*stream().block_mix, *stream(block_bytes=2**20).block_mix)
    )
    found = measure(tmp_path, cell(mixed_blocks, runtime_s=4.0), text)
    assert found.outcome == "valid", found.findings
    assert value(found, "latency_p99").value == pytest.approx(322e-6, rel=0.01)
    assert value(found, "latency_p50").value == pytest.approx(24e-6, rel=0.02)
    assert value(found, "latency_p99").io_count == 52157 + 160
    assert checks(found, "note") >= {"latency-section"}
    assert value(found, "latency_p99.999").reason == "too few I/Os: 52,317 of 1,000,000 needed"


@pytest.mark.parametrize(
    "name",
    [
        "cases/08-averaged-percentiles/two-jobs-jsonplus.json",
        "cases/08-averaged-percentiles/group-reporting-jsonplus.json",
        "fio-3.42/randread-jsonplus.json",
        "fio-3.42/two-jobs-grouped-jsonplus.json",
        "fio-3.42/write-jsonplus.json",
        "fio-3.42/sigterm.json",
    ],
)
def test_percentiles_of_one_job_are_those_that_fio_computes(name: str) -> None:
    result = output.parse((CASES.parent / name).read_text())
    sections = [row.clat for job in result.jobs for row in job.directions().values()]
    assert sections
    for stats in sections:
        assert stats is not None
        assert stats.bin_ns is not None
        assert stats.bin_counts is not None
        ours = {
            percent: histogram.quantile(stats.bin_ns, stats.bin_counts, percent / 100)
            for percent in stats.percentiles_ns
        }
        assert len(ours) > 10
        assert ours == stats.percentiles_ns


def test_a_run_of_fio_3_42_is_measured_like_any_other(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("r", queue_depth=16), runtime_s=2.0),
        (CASES.parent / "fio-3.42" / "randread-jsonplus.json").read_text(),
    )
    assert found.outcome == "valid", found.findings
    assert value(found, "iops").value == pytest.approx(64908.5, rel=1e-5)
    assert value(found, "bandwidth").value == pytest.approx(531996672 / 2.001, rel=1e-5)
    assert value(found, "latency_p50").value == pytest.approx(158720e-9)
    assert value(found, "latency_p99").value == pytest.approx(831488e-9)
    assert value(found, "depth_mean").value == pytest.approx(16, rel=0.02)


def test_a_job_without_bins_leaves_no_percentile_of_all(tmp_path: Path) -> None:
    document = json.loads(recorded("08-averaged-percentiles/two-jobs-jsonplus.json"))
    fast, slow = document["jobs"]
    slow["jobname"] = "fast"
    document["jobs"].append(slow | {"read": slow["read"] | {"clat_ns": fast["read"]["clat_ns"]}})
    for section in ("clat_ns", "lat_ns"):
        slow["read"][section].pop("bins", None)
    mixed_blocks = stream(
        "fast", jobs=3, block_mix=(*stream().block_mix, *stream(block_bytes=2**20).block_mix)
    )
    found = measure(tmp_path, cell(mixed_blocks, runtime_s=4.0), json.dumps(document, indent=1))
    p99 = value(found, "latency_p99")
    assert p99.value is None
    assert "cannot be merged" in p99.reason
    assert not found.histograms


@pytest.mark.parametrize(
    ("name", "job_name", "reason"),
    [
        ("gtod-reduce.json", "s", "fio measured no latency"),
        ("disable-clat.json", "s", "fio gave no histogram"),
    ],
)
def test_what_was_not_measured_is_none_with_a_reason(
    tmp_path: Path, name: str, job_name: str, reason: str
) -> None:
    found = measure(
        tmp_path,
        cell(stream(job_name), runtime_s=0.009, engine="null", direct=False, purpose="ceiling"),
        recorded(f"{NO_SAMPLES}/{name}"),
    )
    p99 = value(found, "latency_p99")
    assert p99.value is None
    assert p99.reason.startswith(reason)
    assert not found.histograms
    assert value(found, "iops").value is not None


def test_a_latency_that_was_not_measured_is_never_zero(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("s"), runtime_s=0.009, engine="null", direct=False, purpose="ceiling"),
        recorded(f"{NO_SAMPLES}/gtod-reduce.json"),
    )
    assert value(found, "latency_mean").value is None
    assert value(found, "depth_mean").value is None
    assert value(found, "iops").value == pytest.approx(1820444.44)


def test_a_sync_engine_has_a_latency_without_a_submission_latency(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("x"), runtime_s=0.031, engine="psync"),
        recorded(f"{NO_SAMPLES}/psync-no-slat-read-only.json"),
    )
    assert found.outcome == "valid", found.findings
    assert value(found, "latency_mean").value == pytest.approx(112.9e-6, rel=1e-3)


@pytest.mark.parametrize("signal", ["INT", "TERM"])
def test_an_interrupted_cell_is_failed_and_keeps_its_numbers(tmp_path: Path, signal: str) -> None:
    found = measure(
        tmp_path,
        cell(stream("k", jobs=2, rate_iops=1000.0), runtime_s=60.0, engine="psync"),
        recorded(f"{INTERRUPTED}/sig{signal}.stdout"),
        exit_code=int(recorded(f"{INTERRUPTED}/sig{signal}.exitcode")),
        wall_s=2.3,
    )
    assert found.outcome == "failed"
    assert {"end", "runtime"} <= checks(found)
    assert "exit code 128" in finding(found, "end").text
    assert value(found, "iops").value == pytest.approx(990, rel=0.02)


@pytest.mark.parametrize("name", ["sigkill-zero-bytes.json", "cut-in-the-middle.json"])
def test_no_document_or_half_of_one_is_a_failed_cell(tmp_path: Path, name: str) -> None:
    found = measure(tmp_path, cell(stream()), recorded(f"{INTERRUPTED}/{name}"), exit_code=-9)
    assert found.outcome == "failed"
    assert {"end", "output"} <= checks(found)
    assert "SIGKILL" in finding(found, "end").text
    assert found.measurements == ()


def test_an_output_left_over_from_another_day_is_not_todays_result(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("read"), runtime_s=60.0),
        recorded(f"{STALE}/after-bad-option.json"),
        stderr=recorded(f"{STALE}/after-bad-option.stderr"),
        exit_code=1,
    )
    assert found.outcome == "failed"
    assert "end" in checks(found)


def test_a_good_output_of_another_launch_is_invalid(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("read-wr", 131072, queue_depth=8), runtime_s=0.55),
        recorded(f"{FAST_READS}/read-wr.json"),
        started_at="2026-12-01T00:00:00+00:00",
    )
    assert found.outcome == "invalid"
    assert checks(found) == {"stale"}


@pytest.mark.parametrize("name", ["help-text-in-json-file.json", "empty-after-unknown-option.json"])
def test_help_text_is_a_failed_cell(tmp_path: Path, name: str) -> None:
    found = measure(tmp_path, cell(stream()), recorded(f"{STALE}/{name}"), exit_code=1)
    assert found.outcome == "failed"
    assert {"end", "output"} <= checks(found)


def test_failed_ios_do_not_count_as_iops(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("x", queue_depth=4), runtime_s=0.418),
        recorded("16-failed-io-counted-as-iops/stdout.json"),
    )
    assert found.outcome == "failed"
    assert finding(found, "errors").text == "8192 of 16384 I/Os failed, errno 5"
    assert value(found, "iops").value == pytest.approx(80273760 / 4096, rel=1e-4)


def test_a_stop_at_the_first_error_is_a_failed_cell(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("x", queue_depth=4)),
        recorded("16-failed-io-counted-as-iops/stop-at-first-error.stdout"),
        exit_code=1,
    )
    assert found.outcome == "failed"
    assert {"errors", "end", "fio-said"} <= checks(found)
    assert value(found, "iops").value == pytest.approx(3000)


def test_a_row_of_two_sections_does_not_pass_for_one(tmp_path: Path) -> None:
    text = recorded("17-group-reporting-mislabel/gr.json")
    alone = cell(stream("seqread", 131072), runtime_s=0.001, engine="null", direct=False)
    found = measure(tmp_path / "a", alone, text)
    assert found.outcome == "invalid"
    assert "asked for read only, fio reports write as well" in finding(found, "direction").text

    both = cell(
        stream("seqread", 131072),
        stream("randwrite", direction="write"),
        runtime_s=0.001,
        engine="null",
        direct=False,
    )
    found = measure(tmp_path / "b", both, text)
    assert found.outcome == "failed"
    assert finding(found, "rows").stream == "randwrite"
    assert value(found, "iops", "randwrite", "write").value is None


def test_two_reading_sections_in_one_row_do_not_pass_for_either(tmp_path: Path) -> None:
    document = json.loads(recorded("17-group-reporting-mislabel/gr.json"))
    (row,) = document["jobs"]
    read, write = row["read"], row["write"]
    for key in ("io_bytes", "io_kbytes", "total_ios"):
        read[key] += write[key]
        write[key] = 0
    for section in ("slat_ns", "clat_ns", "lat_ns"):
        read[section]["N"] = read["total_ios"]
    read |= {"runtime": 5, "iops": read["total_ios"] * 200, "bw_bytes": read["io_bytes"] * 200}
    for label, block_bytes in (("seqread", 131072), ("seqread", 4096)):
        found = measure(
            tmp_path / str(block_bytes),
            cell(stream(label, block_bytes), runtime_s=0.005, engine="null", direct=False),
            json.dumps(document, indent=1),
        )
        assert "block-size" in checks(found)


def test_sections_that_share_a_group_do_not_pass_for_two_streams(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("a"), stream("b"), runtime_s=0.007, engine="null", direct=False),
        recorded("18-missing-job-options-key/all-in-global.json"),
    )
    assert found.outcome == "failed"
    assert "asked for 1 jobs, fio reports 2" in finding(found, "rows").text


def test_sections_are_told_apart_by_group_where_their_names_are_equal(tmp_path: Path) -> None:
    names = ("small", "large")
    text = recorded("18-missing-job-options-key/same-name-twice.json")
    document = json.loads(text)
    for row, name in zip(document["jobs"], names, strict=True):
        row["jobname"] = name
    document["jobs"].reverse()  # the order of rows says nothing either
    streams = (stream("small", 4096), stream("large", 65536))
    asked = cell(*streams, runtime_s=0.002, engine="null", direct=False, purpose="ceiling")
    found = measure(tmp_path, asked, json.dumps(document, indent=1))
    rates = [value(found, "iops", name).value for name in names]
    assert rates == [pytest.approx(2_048_000), pytest.approx(256_000)]
    twice = measure(tmp_path / "twice", asked, text)
    assert "r, r" in finding(twice, "rows").text


@pytest.mark.parametrize("asked_s", [0.5, 1.0, 5.0, 30.0])
def test_a_job_that_ended_early_is_invalid_whatever_was_asked(
    tmp_path: Path, asked_s: float
) -> None:
    found = measure(
        tmp_path,
        cell(stream("s", 2**20), runtime_s=asked_s, engine="psync"),
        recorded("19-early-finish-no-time-based/asked-30s-ran-0.1s.json"),
    )
    assert found.outcome == "invalid"
    assert checks(found) == {"runtime"}
    assert f"asked for {asked_s:g} s, ran 0.114 s" in finding(found, "runtime").text


def test_one_io_is_no_percentile(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("s"), runtime_s=0.001, engine="null", direct=False, purpose="ceiling"),
        recorded("19-early-finish-no-time-based/one-io-run.json"),
    )
    assert value(found, "latency_p50").value is None


def test_an_impossible_completion_latency_is_invalid(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("x", queue_depth=4), runtime_s=3.335),
        recorded("21-sqpoll-clat-bogus/sqpoll.json"),
    )
    assert found.outcome == "invalid"
    assert checks(found) == {"clat-over-lat", "latency-over-runtime", "little-law"}
    assert "asked for were 4" in finding(found, "little-law").text


BOGUS = latency(1.6e9, 10_000)  # 27 minutes, in a run of one second


@pytest.mark.parametrize("way", ["read", "write"])
@pytest.mark.parametrize("jobs", [1, 3])
def test_an_impossible_latency_of_one_job_is_found_in_either_direction(way: str, jobs: int) -> None:
    rows = []
    for n in range(jobs):
        done: dict[str, object] = {way: direction(clat=BOGUS) if n == 0 else direction()}
        rows.append(job(0, n, "reads", **done))
    given = evidence(cell(stream(direction=way, jobs=jobs)), *rows)
    assert {f.check for f in findings_of(given) if f.severity == "invalid"} >= {
        "clat-over-lat",
        "latency-over-runtime",
        "little-law",
    }


def test_an_impossible_latency_is_found_without_the_whole_latency_beside_it() -> None:
    given = evidence(cell(stream()), job(read=direction(lat=None, clat=BOGUS)))
    assert {f.check for f in findings_of(given)} >= {"latency-over-runtime", "little-law"}


def test_the_same_job_without_the_bug_is_valid(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("x", queue_depth=4), runtime_s=0.129),
        recorded("21-sqpoll-clat-bogus/plain.json"),
    )
    assert found.outcome == "valid", found.findings


def test_a_sync_engine_that_ignores_the_depth_is_invalid(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("s", queue_depth=32), runtime_s=0.069, engine="psync"),
        recorded(f"{DEPTH}/psync-asked-32.stdout"),
    )
    assert checks(found) == {"depth"}
    assert "asked for depth 32, 100 % of the I/Os were alone" in finding(found, "depth").text
    assert value(found, "depth_mean").value == pytest.approx(0.957, abs=0.01)
    assert "fio-said" in checks(found, "note")


def test_a_full_queue_that_blocks_in_submission_is_invalid(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("s", queue_depth=32), runtime_s=0.083, engine="libaio", direct=False),
        recorded(f"{DEPTH}/libaio-buffered-asked-32.json"),
    )
    assert checks(found) == {"submission-bound"}
    assert checks(found, "doubt") == {"page-cache"}


def test_a_depth_that_was_reached_is_valid(tmp_path: Path) -> None:
    found = measure(
        tmp_path,
        cell(stream("s", queue_depth=32), runtime_s=0.024, engine="libaio"),
        recorded(f"{DEPTH}/libaio-direct-asked-32.json"),
    )
    assert found.outcome == "valid", found.findings


def test_another_engine_than_asked_is_invalid(tmp_path: Path) -> None:
    wanted = cell(stream("s", queue_depth=32), runtime_s=0.024, engine="libaio")
    found = measure(
        tmp_path,
        structs.replace(wanted, engine="io_uring"),
        recorded(f"{DEPTH}/libaio-direct-asked-32.json"),
    )
    assert checks(found) == {"engine"}
