"""A workload file is data from strangers: nothing in it becomes an option of fio or a path."""

import json
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.errors import Refused, UsageError
from kvbench.fio.jobfile import render
from kvbench.plan import TargetSpec, make_plan
from kvbench.units import GIB
from kvbench.workload.load import load_workload
from kvbench.workload.schema import Workload
from kvbench.workload.streams import STREAM_KEYS

HOSTILE = [
    "x\nexec_prerun=touch /tmp/owned",
    "x\r\n[evil]\nioengine=external:/x.so",
    "]\n[global]",
    "a:b",
    "../../etc",
    "${HOME}",
    "`id`",
    "exec_postrun=id",
    "x\x00y",
    "x\u2028exec=id",
    "x\x85exec=id",
    "include /etc/passwd",
]
TARGET = TargetSpec(path="/data/file", kind="file", size_bytes=GIB, own_file=True)


def workload_text(**fields: str) -> str:
    """The smallest workload, with the text fields given as TOML strings."""
    values = {
        "summary": "a test",
        "source": "a test",
        "cannot_express": "nothing",
        "name": "reads",
        "primary": "reads.iops",
    } | fields
    quoted = {key: json.dumps(value).replace("\x7f", "\\u007F") for key, value in values.items()}
    return f"""
format = 1
summary = {quoted["summary"]}
role = "memory"
source = {quoted["source"]}
evidence = "probe"
cannot_express = {quoted["cannot_express"]}
primary = [{quoted["primary"]}]
[[stream]]
name = {quoted["name"]}
direction = "read"
pattern = "random"
block_size = 4096
"""


def accepted(text: str) -> Workload | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.toml"
        path.write_text(text, encoding="utf-8", newline="")
        try:
            return load_workload(path)
        except UsageError:
            return None


def job_of(workload: Workload) -> str:
    return render(
        make_plan([workload], TARGET, repetitions=1, seed=1, may_write=True).cells[-1], "/data/file"
    )


def lines_that_count(job: str) -> list[str]:
    return [line.split("=")[0] for line in job.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("field", ["name", "summary", "source", "cannot_express", "primary"])
def test_hostile_text_never_adds_a_line_to_the_job(field: str, value: str) -> None:
    plain = accepted(workload_text())
    assert plain is not None
    workload = accepted(workload_text(**{field: value}))
    if workload is not None:
        assert lines_that_count(job_of(workload)) == lines_that_count(job_of(plain))
    if field in ("name", "primary"):
        assert workload is None


@given(
    field=st.sampled_from(["name", "summary", "source", "cannot_express", "primary"]),
    value=st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
)
def test_no_text_at_all_adds_an_option_or_a_section(field: str, value: str) -> None:
    plain = accepted(workload_text())
    assert plain is not None
    workload = accepted(workload_text(**{field: value}))
    if workload is None:
        return
    got, want = job_of(workload), job_of(plain)
    if field == "name":
        got = got.replace(f"[{value}]", "[reads]")
        assert lines_that_count(got) == lines_that_count(want)
    else:
        assert got == want


@given(value=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80))
def test_a_cell_read_from_an_archive_cannot_add_a_line_either(value: str) -> None:
    plain = accepted(workload_text())
    assert plain is not None
    named = make_plan([plain], TARGET, repetitions=1, seed=1, may_write=True).cells[-1]
    cell = msgspec.structs.replace(named, alone=value, parameters={value: value})
    try:
        text = render(cell, "/data/file")
    except Refused:
        return
    assert lines_that_count(text) == lines_that_count(render(named, "/data/file"))


@given(key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_an_unknown_key_is_refused_whatever_it_is(key: str) -> None:
    if key in STREAM_KEYS:
        return
    quoted = json.dumps(key).replace("\x7f", "\\u007F")
    assert accepted(f"{workload_text()}{quoted} = 1\n") is None
