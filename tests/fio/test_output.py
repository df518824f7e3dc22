import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvbench.errors import CellFailed, ExitCode
from kvbench.fio.diagnostics import classify
from kvbench.fio.model import FioResult
from kvbench.fio.output import FioOutputError, parse

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CASES = FIXTURES / "cases"
SHARED_SAMPLES = Path(__file__).resolve().parents[2] / ".." / "shared" / "fio-samples" / "3.42"

NOISE = "01-noise-before-json"
REFUSED = "04-refused-run-exit-zero"
NO_SAMPLES = "09-no-samples-is-not-zero-latency"
UNITS = "10-units-and-version-keys"
CLIENT = "13-client-stats-shape"
INTERRUPTED = "14-interrupted-run-looks-complete"
STALE = "15-stale-or-help-text-output"
FAILED_IO = "16-failed-io-counted-as-iops"
GROUPED = "17-group-reporting-mislabel"
OPTIONS = "18-missing-job-options-key"
SQPOLL = "21-sqpoll-clat-bogus"

# Every kind of complete document, to be cut and surrounded.
COMPLETE = [
    f"cases/{NOISE}/outfile-json-plus-normal-text-both-sides.txt",
    f"cases/{NOISE}/outfile-path-with-braces.txt",
    f"cases/{NOISE}/outfile-status-interval-4-documents.txt",
    f"cases/{NOISE}/synthetic-json-like-noise.txt",
    f"cases/{INTERRUPTED}/sigINT.stdout",
    f"cases/{UNITS}/fio-2.16-style.json",
    f"cases/{OPTIONS}/all-in-global.json",
    "fio-3.42/randread-jsonplus.json",
    "fio-3.42/sigterm.json",
]


def case(name: str, file: str) -> str:
    return (CASES / name / file).read_text(encoding="utf-8")


def sample(name: str) -> str:
    return (FIXTURES / "fio-3.42" / name).read_text(encoding="utf-8")


def levels(result: FioResult) -> list[str]:
    return [line.level for line in result.diagnostics]


def numbers(result: FioResult) -> list[Any]:
    """Everything that a result says but for its diagnostics, comparable with ==."""
    rows: list[Any] = [result.version, result.timestamp_ms, result.disk_util]
    for job in result.jobs:
        rows += [job.name, job.group_id, job.error, job.total_err, job.options, job.depth_percent]
        for name, way in job.directions().items():
            rows += [name, way.io_bytes, way.total_ios, way.iops, way.bandwidth_bytes_per_s]
            for part in (way.slat, way.clat, way.lat):
                if part is not None:
                    rows += [part.count, part.mean_ns, part.percentiles_ns]
                    rows += [] if part.bin_ns is None else [part.bin_ns.tolist()]
                    rows += [] if part.bin_counts is None else [part.bin_counts.tolist()]
    return rows


def changed(text: str, *path: str | int, to: object) -> str:
    """The document in ``text`` with one value replaced."""
    document = json.loads(text)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(document, indent=1)


# --- text around the document ---------------------------------------------------------------


def test_a_warning_before_the_document_is_kept_as_a_warning() -> None:
    result = parse(case(NOISE, "stdout-rng-warning.txt"))
    assert levels(result) == ["warning", "warning"]
    assert "exceeds 32-bit tausworthe" in result.diagnostics[0].text
    assert result.jobs[0].read is not None
    assert result.jobs[0].read.total_ios == 2081492


def test_a_note_before_the_document_is_kept_as_a_note() -> None:
    result = parse(case(NOISE, "stdout-sync-engine-note.txt"))
    assert levels(result) == ["note"]
    assert "queue depth will be capped at 1" in result.diagnostics[0].text


def test_an_error_before_the_document_is_kept_as_an_error() -> None:
    result = parse(case(NOISE, "stdout-enospc.txt"))
    assert levels(result) == ["error"]
    assert "No space left on device" in result.diagnostics[0].text
    assert result.jobs[0].error == 28


def test_a_path_with_braces_is_no_document() -> None:
    result = parse(case(NOISE, "outfile-path-with-braces.txt"))
    assert levels(result) == ["error", "error"]
    assert result.jobs[0].write is not None
    assert result.jobs[0].write.total_ios == 17


def test_a_text_report_around_the_document_is_kept_and_is_no_error() -> None:
    result = parse(case(NOISE, "outfile-json-plus-normal-text-both-sides.txt"))
    assert set(levels(result)) == {"note"}
    assert len(result.diagnostics) > 20
    assert result.jobs[0].read is not None
    assert result.jobs[0].read.io_bytes == 6794018816


def test_the_last_of_several_cumulative_documents_is_the_result() -> None:
    result = parse(case(NOISE, "outfile-status-interval-4-documents.txt"))
    assert result.jobs[0].read is not None
    assert result.jobs[0].read.total_ios == 5638860


def test_noise_that_looks_like_json_is_kept_as_lines() -> None:
    result = parse(case(NOISE, "synthetic-json-like-noise.txt"))
    assert levels(result) == ["note", "warning", "note"]
    assert result.diagnostics[2].text == 'helper: {"done": true}'


REAL_DOCUMENT = case(NOISE, "stdout-enospc.txt").partition("\n")[2]


@pytest.mark.parametrize(
    "text",
    [
        f"fio: a notice without its end of line {REAL_DOCUMENT}",
        f"Jobs: 1 (f=1): [r(1)][50.0%]\r{REAL_DOCUMENT}",
        f"\ufeff{REAL_DOCUMENT}",
        REAL_DOCUMENT.replace("\n", "\r\n"),
        f"{REAL_DOCUMENT.rstrip()}fio: terminating on signal 2\n",
        REAL_DOCUMENT.replace('\n      "groupid"', '\nfio: io_u error on file /a\n      "groupid"'),
    ],
    ids=["no end of line", "progress", "byte order mark", "crlf", "directly after", "inside"],
)
def test_text_on_the_lines_of_the_document_does_not_lose_it(text: str) -> None:
    result = parse(text)
    assert numbers(result) == numbers(parse(REAL_DOCUMENT))
    strange = text.replace("\r\n", "\n") != REAL_DOCUMENT
    assert len(result.diagnostics) == (1 if strange else 0)
    if "signal" in text or "io_u" in text:
        assert levels(result) == ["error"]


def test_stderr_is_judged_like_stdout_and_a_line_on_both_is_told_once() -> None:
    result = parse(sample("missing-file.json"), stderr=sample("missing-file.stderr"))
    assert [(line.level, line.text) for line in result.diagnostics] == [
        ("error", "fio: file creation disallowed by allow_file_create=0")
    ]
    assert not result.jobs[0].directions()


def test_the_reason_of_a_refused_run_is_an_error_although_fio_says_error_0() -> None:
    result = parse(case(REFUSED, "stdout.json"), stderr=case(REFUSED, "stderr.txt"))
    assert levels(result) == ["error"]
    assert result.jobs[0].error == 0
    assert not result.jobs[0].directions()


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("fio: pid=4278, err=28/file:io_u.c:1876, func=io_u error, error=No space left", "error"),
        ("fio: io_u error on file /a: Input/output error: read offset=0, buflen=4096", "error"),
        ("fio: terminating on signal 2", "error"),
        ("fio: unrecognized option '--nosuchopt=1'", "error"),
        ("fio: failed parsing rw=reed", "error"),
        ("fio: job global dropped", "error"),
        ("Bad option <nosuch=1>", "error"),
        ("probe: you need to specify size=", "error"),
        ("setpriv: failed to execute /opt/fio: Exec format error", "error"),
        ("x: (groupid=0, jobs=1): err= 5 (file:io_u.c:1876, func=io_u error): pid=9", "error"),
        ("     errors    : total=8192, first_error=5/<Input/output error>", "error"),
        ("fio: Switching to tausworthe64. Use the random_generator= option to ...", "warning"),
        ("fio: verification read phase will never start because ...", "warning"),
        ("fio: a line that no version prints so far", "warning"),
        ("note: both iodepth >= 1 and synchronous I/O engine are selected", "note"),
        ("x: (groupid=0, jobs=1): err= 0: pid=19128: Sun Nov 29 23:08:18 2026", "note"),
        ("     errors    : total=0, first_error=0/<Success>", "note"),
        ("Starting 1 process", "note"),
    ],
)
def test_a_line_is_as_grave_as_fio_means_it(line: str, level: str) -> None:
    assert classify(line) == level


# --- no document ----------------------------------------------------------------------------


def refusal(text: str, stderr: str = "") -> FioOutputError:
    with pytest.raises(FioOutputError) as caught:
        parse(text, stderr=stderr)
    assert isinstance(caught.value, CellFailed)
    assert caught.value.exit_code is ExitCode.CELL_FAILED
    return caught.value


def test_an_empty_file_says_that_fio_was_killed() -> None:
    assert "killed" in refusal(case(INTERRUPTED, "sigkill-zero-bytes.json")).message


def test_a_document_cut_in_the_middle_is_an_error() -> None:
    assert "breaks off" in refusal(case(INTERRUPTED, "cut-in-the-middle.json")).message


def test_help_text_instead_of_a_result_names_the_option() -> None:
    error = refusal(case(STALE, "help-text-in-json-file.json"))
    assert "help instead of a result" in error.message
    assert error.hint == "fio: failed parsing rw=reed"
    assert [line.text for line in error.diagnostics if line.level == "error"] == [error.hint]


def test_an_unknown_option_is_quoted() -> None:
    error = refusal(case(STALE, "empty-after-unknown-option.json"))
    assert "unrecognized option" in error.hint


def test_a_file_that_fio_never_printed_is_no_result() -> None:
    error = refusal(case(STALE, "after-bad-option.json"), case(STALE, "after-bad-option.stderr"))
    assert error.hint == "fio: failed parsing rw=reed"


def test_an_engine_that_is_not_built_in_leaves_its_reason() -> None:
    name = "22-io-uring-unavailable"
    error = refusal(
        case(name, "engine-not-built-in.stdout"), case(name, "engine-not-built-in.stderr")
    )
    assert "no_such_engine" in error.hint


@pytest.mark.parametrize(
    "file", ["two-hosts.out", "two-hosts-global-options-list.json", "same-jobname-two-hosts.json"]
)
def test_client_and_server_output_is_another_document(file: str) -> None:
    assert "client/server" in refusal(case(CLIENT, file)).message


def test_a_document_without_jobs_says_that_nothing_ran() -> None:
    assert "no job" in refusal('{\n"fio version": "fio-3.33",\n"jobs": []\n}\n').message


# --- units and versions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "file", ["fio-2.16-style.json", "fio-3.33-style.json", "fio-3.41-style.json"]
)
def test_the_same_run_has_the_same_numbers_in_every_version(file: str) -> None:
    (job,) = parse(case(UNITS, file)).jobs
    assert (job.read is None, job.write, job.trim) == (False, None, None)
    assert job.read is not None
    assert job.read.io_bytes == 2**30
    assert job.read.total_ios == 262144
    assert job.read.iops == 26214.4
    assert job.read.runtime_ms == 10000
    assert job.read.bandwidth_bytes_per_s == pytest.approx(107374182.4, rel=1e-5)
    assert job.read.clat is not None
    assert job.read.clat.count == 262144
    assert job.read.clat.mean_ns == 148500
    assert job.read.clat.min_ns == 60000
    assert job.read.clat.percentiles_ns[99.0] == pytest.approx(310_000, rel=0.01)
    assert set(job.read.clat.percentiles_ns) == {1.0, 50.0, 99.0, 99.9}
    assert job.read.lat is not None
    assert job.read.lat.mean_ns == 151800
    assert job.read.slat is not None
    assert job.read.slat.mean_ns == 3100


def as_version(version: str) -> str:
    """The same run as the versions between the recorded ones print it."""
    number = tuple(int(part) for part in version.split("."))
    document = json.loads(
        case(UNITS, "fio-2.16-style.json" if number < (2, 99) else "fio-3.33-style.json")
    )
    document["fio version"] = f"fio-{version}"
    for job in document["jobs"]:
        for direction in (job[name] for name in ("read", "write") if name in job):
            if (2, 21) <= number < (2, 99):
                direction["io_kbytes"] = direction["io_bytes"]
                direction["io_bytes"] *= 1024
            if number < (3, 2):
                direction.pop("bw_bytes", None)
    return json.dumps(document, indent=1)


@pytest.mark.parametrize("version", ["2.1.11", "2.20", "2.21", "2.99", "3.1", "3.2", "3.42"])
def test_versions_between_have_the_same_numbers_too(version: str) -> None:
    (job,) = parse(as_version(version)).jobs
    assert job.read is not None
    assert job.read.io_bytes == 2**30
    assert job.read.bandwidth_bytes_per_s == pytest.approx(107374182.4, rel=1e-5)
    assert job.read.clat is not None
    assert job.read.clat.mean_ns == 148500


def test_read_sectors_are_told_by_versions_that_know_them() -> None:
    (disk,) = parse(case(UNITS, "fio-3.41-style.json")).disk_util
    assert (disk.name, disk.read_ios, disk.read_sectors) == ("nvme0n1", 262144, 2097152)


@pytest.mark.parametrize("version", ["", "fio", "fio-git", "3.33", "nvme-3.33"])
def test_an_unknown_version_is_an_error(version: str) -> None:
    text = changed(case(UNITS, "fio-3.33-style.json"), "fio version", to=version)
    assert "not certain" in refusal(text).message


@pytest.mark.parametrize("version", ["fio-3.33-12-gabcdef", "fio-3.42-dirty", "fio-4.0", "fio-3.5"])
def test_a_version_between_or_after_releases_is_read_by_its_keys(version: str) -> None:
    text = changed(case(UNITS, "fio-3.33-style.json"), "fio version", to=version)
    assert parse(text).version == version


def test_old_keys_under_a_new_version_are_an_error() -> None:
    text = changed(case(UNITS, "fio-2.16-style.json"), "fio version", to="fio-3.33")
    assert "not certain" in refusal(text).message


def test_new_keys_under_an_old_version_are_an_error_when_their_units_cannot_be() -> None:
    old = case(UNITS, "fio-2.16-style.json")
    # Bytes where this version has KiB: the rate is its witness.
    text = changed(old, "jobs", 0, "read", "io_bytes", to=2**30)
    assert "not certain" in refusal(text).message


def test_both_units_of_one_latency_are_an_error() -> None:
    text = changed(
        case(UNITS, "fio-3.33-style.json"), "jobs", 0, "read", "clat", to={"mean": 1, "max": 1}
    )
    assert "without the unit" in refusal(text).message


def test_kibibytes_in_a_field_of_bytes_are_an_error() -> None:
    text = changed(case(UNITS, "fio-3.33-style.json"), "jobs", 0, "read", "io_bytes", to=2**20)
    assert "contradict" in refusal(text).message


# --- what was not measured ------------------------------------------------------------------


@pytest.mark.parametrize("file", ["gtod-reduce.json", "disable-clat.json"])
def test_a_latency_without_samples_is_none_and_never_zero(file: str) -> None:
    (job,) = parse(case(NO_SAMPLES, file)).jobs
    assert job.read is not None
    assert job.read.clat is None
    assert job.read.iops > 1000  # iops_mean is 0 here


def test_a_synchronous_engine_has_no_submission_latency() -> None:
    (job,) = parse(case(NO_SAMPLES, "psync-no-slat-read-only.json")).jobs
    assert job.read is not None
    assert job.read.slat is None
    assert job.read.clat is not None
    assert job.write is None


def test_jobs_without_io_have_no_direction() -> None:
    jobs = parse(case(REFUSED, "offset-increment-2-of-4-jobs-idle.json")).jobs
    assert sorted(len(job.directions()) for job in jobs) == [0, 0, 1, 1]
    assert [job.index for job in jobs] == [0, 1, 2, 3]


IMPOSSIBLE = ["NaN", "nan", "-nan", "inf", "Infinity", "-Infinity", "18446744073709551615", "-1"]


@pytest.mark.parametrize("value", [*IMPOSSIBLE, str(2**63), str(2**80), "1e300"])
@pytest.mark.parametrize("key", ["min", "max", "mean", "stddev"])
def test_an_impossible_latency_counts_as_not_measured(key: str, value: str) -> None:
    text = changed(case(UNITS, "fio-3.33-style.json"), "jobs", 0, "read", "clat_ns", key, to="@")
    result = parse(text.replace('"@"', value))
    assert result.jobs[0].read is not None
    assert result.jobs[0].read.clat is None
    assert result.jobs[0].read.lat is not None
    assert [line.level for line in result.diagnostics] == ["warning"]


@pytest.mark.parametrize(("key", "value"), [("min", 10**16), ("max", 1), ("mean", 1.5)])
def test_a_mean_outside_the_smallest_and_the_largest_counts_as_not_measured(
    key: str, value: float
) -> None:
    text = changed(case(UNITS, "fio-3.33-style.json"), "jobs", 0, "read", "clat_ns", key, to=value)
    result = parse(text)
    assert result.jobs[0].read is not None
    assert result.jobs[0].read.clat is None
    assert [line.level for line in result.diagnostics] == ["warning"]


@pytest.mark.parametrize("value", IMPOSSIBLE)
@pytest.mark.parametrize("key", ["io_bytes", "bw_bytes", "iops", "runtime", "total_ios"])
def test_an_impossible_count_or_rate_is_an_error(key: str, value: str) -> None:
    text = changed(case(UNITS, "fio-3.33-style.json"), "jobs", 0, "read", key, to="@")
    assert key in refusal(text.replace('"@"', value)).message


def test_a_word_where_a_number_belongs_is_an_error() -> None:
    text = changed(case(UNITS, "fio-3.33-style.json"), "jobs", 0, "read", "iops", to="many")
    assert "not as fio writes it" in refusal(text).message


def test_percentiles_that_fio_repeats_as_0_are_left_out() -> None:
    (job,) = parse(case(UNITS, "fio-2.16-style.json")).jobs
    assert job.read is not None
    assert job.read.clat is not None
    assert 0.0 not in job.read.clat.percentiles_ns


# --- jobs, options, errors ------------------------------------------------------------------


def test_failed_ios_are_told_with_the_numbers() -> None:
    (job,) = parse(case(FAILED_IO, "stdout.json")).jobs
    assert (job.error, job.total_err) == (5, 8192)
    assert job.first_error == 5
    assert job.read is not None
    assert (job.read.total_ios, job.read.io_bytes) == (16384, 32 * 2**20)


def test_a_run_that_stopped_at_its_first_error_says_so_twice() -> None:
    result = parse(case(FAILED_IO, "stop-at-first-error.stdout"))
    assert levels(result) == ["error"]
    assert result.jobs[0].error == 5


@pytest.mark.parametrize(("file", "number"), [("sigINT.stdout", 2), ("sigTERM.stdout", 15)])
def test_an_interrupted_run_is_told_by_an_error_line(file: str, number: int) -> None:
    result = parse(case(INTERRUPTED, file))
    assert [line.text for line in result.diagnostics] == [f"fio: terminating on signal {number}"]
    assert levels(result) == ["error"]
    assert len(result.jobs) == 2


def test_a_melted_row_keeps_both_directions() -> None:
    (job,) = parse(case(GROUPED, "gr.json")).jobs
    assert set(job.directions()) == {"read", "write"}


def test_options_are_those_of_global_and_of_the_job() -> None:
    jobs = parse(case(OPTIONS, "all-in-global.json")).jobs
    assert [job.name for job in jobs] == ["a", "b"]
    assert all(job.options["iodepth"] == "8" for job in jobs)


def test_a_later_global_section_does_not_stop_the_reading() -> None:
    jobs = parse(case(OPTIONS, "second-global-section.json")).jobs
    assert [job.name for job in jobs] == ["a", "b"]


def test_jobs_of_one_name_stay_apart() -> None:
    jobs = parse(case(OPTIONS, "same-name-twice.json")).jobs
    assert [(job.index, job.name, job.group_id) for job in jobs] == [(0, "r", 0), (1, "r", 1)]
    assert [job.options["bs"] for job in jobs] == ["4k", "64k"]
    assert all(job.options["ioengine"] == "null" for job in jobs)


def test_global_options_may_be_a_list() -> None:
    text = changed(
        case(UNITS, "fio-3.41-style.json"), "global options", to=[{"bs": "64k", "size": "1G"}]
    )
    assert parse(text).jobs[0].options == {"bs": "4k", "size": "1G", "name": "rr", "rw": "randread"}


def test_names_are_given_without_fios_escapes() -> None:
    text = changed(case(UNITS, "fio-3.33-style.json"), "jobs", 0, "jobname", to=r"usb-0\:0")
    text = changed(text, "jobs", 0, "job options", "filename", to=r"/dev/usb-0\:0")
    (job,) = parse(text).jobs
    assert job.name == "usb-0:0"
    assert job.options["filename"] == "/dev/usb-0:0"


def test_a_backslash_that_fio_forgot_to_escape_is_read() -> None:
    text = case(UNITS, "fio-3.33-style.json").replace('"rr"', r'"usb-0\:0"')
    assert parse(text).jobs[0].name == "usb-0:0"


def test_reads_and_writes_melted_into_one_row_are_an_error() -> None:
    document = json.loads(case(UNITS, "fio-3.33-style.json"))
    document["jobs"][0]["mixed"] = document["jobs"][0].pop("read")
    assert "melted" in refusal(json.dumps(document, indent=1)).message


def test_a_bogus_completion_latency_is_passed_on_for_the_checks() -> None:
    (job,) = parse(case(SQPOLL, "sqpoll.json")).jobs
    assert job.read is not None
    assert job.read.clat is not None
    assert job.read.lat is not None
    assert job.read.clat.mean_ns > job.read.lat.mean_ns * 1000


# --- bins -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["randread-jsonplus.json", "two-jobs-grouped-jsonplus.json"])
def test_bins_ascend_and_add_up_to_the_samples(name: str) -> None:
    (job,) = parse(sample(name)).jobs
    assert job.read is not None
    clat = job.read.clat
    assert clat is not None
    assert clat.bin_ns is not None
    assert clat.bin_counts is not None
    assert clat.bin_ns.shape == clat.bin_counts.shape
    assert (clat.bin_ns[1:] > clat.bin_ns[:-1]).all()
    assert clat.bin_counts.sum() == clat.count == job.read.total_ios
    assert clat.min_ns <= clat.bin_ns[-1]


def test_plain_json_has_no_bins() -> None:
    (job,) = parse(case(UNITS, "fio-3.33-style.json")).jobs
    assert job.read is not None
    assert job.read.clat is not None
    assert job.read.clat.bin_ns is None
    assert job.read.clat.bin_counts is None


@pytest.mark.parametrize(
    ("bins", "times", "counts"),
    [({"900": 2, "20": 1}, [20, 900], [1, 2]), ({"20": 1, "30": 0, "40": 5}, [20, 40], [1, 5])],
)
def test_bins_are_sorted_and_empty_ones_left_out(
    bins: dict[str, int], times: list[int], counts: list[int]
) -> None:
    text = changed(
        case(UNITS, "fio-3.33-style.json"), "jobs", 0, "read", "clat_ns", "bins", to=bins
    )
    (job,) = parse(text).jobs
    assert job.read is not None
    assert job.read.clat is not None
    assert job.read.clat.bin_ns is not None
    assert job.read.clat.bin_counts is not None
    assert job.read.clat.bin_ns.tolist() == times
    assert job.read.clat.bin_counts.tolist() == counts


@pytest.mark.parametrize(
    "bins", [{"fast": 1}, {"20": -1}, {"-20": 1}, {"20": 2**70}, {"20": 1.5}, {"20": None}]
)
def test_broken_bins_are_an_error(bins: dict[str, Any]) -> None:
    text = changed(
        case(UNITS, "fio-3.33-style.json"), "jobs", 0, "read", "clat_ns", "bins", to=bins
    )
    refusal(text)


# --- fio 3.42 -------------------------------------------------------------------------------


def test_fio_3_42_parses_to_the_same_model() -> None:
    result = parse(sample("randread-jsonplus.json"))
    (job,) = result.jobs
    assert result.version == "fio-3.42"
    assert job.read is not None
    assert (job.read.total_ios, job.read.io_bytes) == (129882, 531996672)
    assert job.read.iops == pytest.approx(64908.545727)
    (disk,) = result.disk_util
    assert (disk.name, disk.read_ios, disk.read_sectors) == ("vda", 124239, 995000)
    assert job.user_cpu_percent is not None
    assert job.depth_percent["16"] > 90


def test_fio_3_42_ended_by_a_signal_says_so() -> None:
    result = parse(sample("sigterm.json"))
    assert [line.text for line in result.diagnostics] == ["fio: terminating on signal 15"]


def test_fio_3_42_writes_parse() -> None:
    (job,) = parse(sample("write-jsonplus.json")).jobs
    assert set(job.directions()) == {"write"}


@pytest.mark.skipif(
    not SHARED_SAMPLES.is_dir(), reason="the large samples of fio 3.42 are not here"
)
def test_fio_3_42_mixed_jobs_and_two_hosts_parse_or_are_refused() -> None:
    jobs = parse((SHARED_SAMPLES / "two-jobs-mixed-jsonplus.json").read_text()).jobs
    assert [set(job.directions()) for job in jobs] == [{"read", "write"}] * 2
    assert "client/server" in refusal((SHARED_SAMPLES / "two-hosts.json").read_text()).message


# --- properties -----------------------------------------------------------------------------

# Any lines but a lone "{", which at the very end is how a next document would begin.
LINE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), max_size=60)
GARBAGE = st.lists(LINE.filter(lambda line: line.rstrip() != "{"), max_size=6)
BEFORE = st.lists(st.one_of(LINE, st.just("{"), st.just("}"), st.just('{"a": 1}')), max_size=6)


@settings(max_examples=40)
@given(name=st.sampled_from(COMPLETE), before=BEFORE, after=GARBAGE)
def test_garbage_around_a_document_does_not_change_the_result(
    name: str, before: list[str], after: list[str]
) -> None:
    text = (FIXTURES / name).read_text()
    result = parse("\n".join([*before, text, *after]))
    assert numbers(result) == numbers(parse(text))
    kept = {line.text for line in result.diagnostics}
    assert {line.rstrip() for line in [*before, *after] if line.strip()} <= kept


def document_ends(text: str) -> list[int]:
    """Where each complete document of ``text`` ends: the only places where a cut cannot show."""
    ends, place = [], 0
    for line in text.splitlines(keepends=True):
        place += len(line)
        if line.rstrip() == "}":
            ends.append(place - len(line) + 1)
    return ends


@pytest.mark.parametrize(
    "name", [f"cases/{NOISE}/synthetic-json-like-noise.txt", f"cases/{UNITS}/fio-3.33-style.json"]
)
def test_a_cut_at_any_byte_is_an_error(name: str) -> None:
    text = (FIXTURES / name).read_text()
    for length in range(document_ends(text)[0]):
        with pytest.raises(FioOutputError):
            parse(text[:length])


@settings(max_examples=100)
@given(name=st.sampled_from(COMPLETE), data=st.data())
def test_a_cut_inside_a_document_is_an_error(name: str, data: st.DataObject) -> None:
    text = (FIXTURES / name).read_text()
    ends = document_ends(text)
    spans = [(a, b) for a, b in pairwise([0, *ends])]
    begin, end = data.draw(st.sampled_from(spans))
    # Up to one newline behind a document the text is complete as it stands.
    length = data.draw(st.integers(begin + 2 if begin else 0, end - 1))
    with pytest.raises(FioOutputError):
        parse(text[:length])


@settings(max_examples=100)
@given(st.text())
def test_text_that_is_not_fios_is_always_refused_in_words(text: str) -> None:
    with pytest.raises(FioOutputError):
        parse(text)


@settings(max_examples=100)
@given(data=st.data())
def test_a_damaged_byte_is_read_or_refused_but_never_a_crash(data: st.DataObject) -> None:
    text = sample("missing-file.json") if data.draw(st.booleans()) else sample("sigterm.json")
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.characters(codec="utf-8")) + text[place + 1 :]
    with suppress(FioOutputError):
        parse(damaged)
