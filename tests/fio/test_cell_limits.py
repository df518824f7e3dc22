"""A cell may come from a stored plan that a stranger wrote: nothing of it becomes an option."""

import re
from collections.abc import Callable, Mapping
from math import inf, nan

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvbench.document import printable
from kvbench.errors import Refused
from kvbench.fio.cell_limits import refuse_unfit_plan
from kvbench.fio.jobfile import render
from kvbench.plan import Cell
from kvbench.workload import catalog
from kvbench.workload.schema import BlockShare, Timing
from tests.fio.jobs import cells, measured
from tests.records import a_run_record, a_stream, a_workload

EVIL = "x]\nexec_prerun=touch /tmp/never\n[y"
OPTIONS = re.compile(
    "thread|ioengine|direct|iomem|iomem_align|filename|allow_file_create|create_on_open|unlink"
    "|time_based|runtime|ramp_time|randrepeat|norandommap|lat_percentiles|clat_percentiles"
    "|end_fsync|fsync_on_close|new_group|numjobs|rw|blockalign|rwmixread|bs|bssplit|offset"
    "|offset_increment|size|iodepth|iodepth_batch_submit|iodepth_batch_complete_min"
    "|iodepth_batch_complete_max|fixedbufs|registerfiles|hugepage-size|rate_iops|rate_process"
    "|random_generator|random_distribution|randseed|refill_buffers|sync|fsync|write_lat_log"
    "|log_avg_msec|log_offset|per_job_logs|thinktime|thinktime_blocks|thinktime_blocks_type"
    "|invalidate|verify|do_verify|verify_fatal|continue_on_error|verify_dump|verify_state_save"
    "|clocksource|write_hist_log|log_hist_msec|log_hist_coarseness"
)
FIO_LINE_MAX = 4095  # bytes that fio reads as one line


def check_text(text: str, cell: Cell) -> None:
    """Every line is a comment, one of the expected sections, or an option that kvbench writes."""
    sections = []
    for raw in text.encode().split(b"\n"):
        assert len(raw) <= FIO_LINE_MAX
    for line in re.split(r"[\r\n\v\f\x85\u2028\u2029]", text):
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            sections.append(line)
        else:
            assert OPTIONS.fullmatch(line.partition("=")[0]), line
            assert line.isprintable()
    assert sections == ["[global]", *(f"[{p.stream.name}]" for p in cell.placed)]
    assert len(set(sections)) == len(sections)


@pytest.mark.parametrize("workload", [w.name for w in catalog.list_workloads()])
def test_the_catalogs_jobs_hold_known_options_only(workload: str) -> None:
    for cell in cells(catalog.find_workload(workload)):
        check_text(render(cell, "/data/target"), cell)


STRANGE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [EVIL, "global", "globals", "", "ok-name", "x" * 5000, "\u2028", "\ud800", "a\r"]
    ),
    st.sampled_from(["io_uring", "libaio", "psync", "null", "measure", "ceiling", "read", "write"]),
)
CELL_TEXTS = ["cell_id", "point_id", "purpose", "workload", "workload_digest", "role", "engine"]
STREAM_TEXTS = ["name", "direction", "pattern", "shape", "write_policy", "buffers"]


@settings(max_examples=300)
@given(
    st.dictionaries(st.sampled_from([*CELL_TEXTS, "alone"]), STRANGE, max_size=3),
    st.dictionaries(st.sampled_from(STREAM_TEXTS), STRANGE, max_size=2),
    st.dictionaries(STRANGE, STRANGE, max_size=3),
)
def test_no_text_of_a_cell_becomes_an_option_or_a_section(
    of_cell: dict[str, str], of_stream: dict[str, str], parameters: dict[str, str]
) -> None:
    cell = forged(**of_cell, parameters=parameters, stream=of_stream)
    try:
        text = render(cell, "/data/target")
    except Refused as error:
        said = str(error)
        assert printable(said) == said
        return
    check_text(text, cell)


@settings(max_examples=100)
@given(st.dictionaries(st.text("abc ", max_size=210), st.text("x=", max_size=210), max_size=40))
def test_long_parameters_do_not_run_over_the_line_that_fio_reads(
    parameters: dict[str, str],
) -> None:
    cell = forged(parameters=parameters)
    try:
        text = render(cell, "/data/target")
    except Refused:
        return
    check_text(text, cell)


def forged(*, stream: Mapping[str, object] | None = None, **changes: object) -> Cell:
    """A small cell whose fields, or those of its stream, are changed unchecked."""
    cell = measured(a_workload(sweep=()))[0]
    placed = cell.placed[0]
    changed = msgspec.structs.replace(placed.stream, **(stream or {}))
    changes.setdefault("placed", (msgspec.structs.replace(placed, stream=changed),))
    return msgspec.structs.replace(cell, **changes)


def placed(**changes: int) -> Cell:
    cell = forged()
    return forged(placed=(msgspec.structs.replace(cell.placed[0], **changes),))


REFUSED: dict[str, Callable[[], Cell]] = {
    "a section that ends early": lambda: forged(stream={"name": EVIL}),
    "a section of defaults": lambda: forged(stream={"name": "global-x"}),
    "an engine with a second line": lambda: forged(engine=f"io_uring\n{EVIL}"),
    "an engine that fio has and kvbench not": lambda: forged(engine="rbd"),
    "a ceiling on the target": lambda: forged(purpose="ceiling"),
    "a measurement of nothing": lambda: forged(engine="null"),
    "a control character in a comment": lambda: forged(workload="a\nb"),
    "a digest of two lines": lambda: forged(workload_digest="a\nb"),
    "a parameter of two lines": lambda: forged(parameters={"a": "b\nc"}),
    "a key of two lines": lambda: forged(parameters={"a\nb": 1}),
    "a lone stream of two lines": lambda: forged(alone="a\rb"),
    "a cell id of two lines": lambda: forged(cell_id="0001\n"),
    "a parameter longer than fio's lines": lambda: forged(parameters={"a": "b" * 5000}),
    "many parameters": lambda: forged(parameters={f"{n:0200}": "b" * 200 for n in range(20)}),
    "a number without end": lambda: forged(parameters={"a": 10**5000}),
    "the same stream twice": lambda: forged(placed=forged().placed * 2),
    "no stream": lambda: forged(placed=()),
    "a negative offset": lambda: placed(offset_bytes=-4096),
    "no size": lambda: placed(size_bytes=0),
    "an end beyond 2^63": lambda: placed(offset_bytes=2**62, size_bytes=2**62),
    "no job": lambda: forged(stream={"jobs": 0}),
    "no depth": lambda: forged(stream={"queue_depth": 0}),
    "a depth that fio rounds": lambda: forged(stream={"queue_depth": 3}),
    "no block": lambda: forged(stream={"block_mix": ()}),
    "an empty block": lambda: forged(
        stream={"block_mix": (BlockShare(size_bytes=0, percent=100),)}
    ),
    "a chunk of nothing": lambda: forged(stream={"pattern": "chunk", "chunk_bytes": 0}),
    "no runtime": lambda: forged(timing=Timing(runtime_s=0.0)),
    "a runtime that rounds to none": lambda: forged(timing=Timing(runtime_s=0.0001)),
    "a runtime without end": lambda: forged(timing=Timing(runtime_s=inf)),
    "a runtime that is no number": lambda: forged(timing=Timing(runtime_s=nan)),
    "a negative ramp": lambda: forged(timing=Timing(ramp_s=-1.0)),
    "a skew that is no number": lambda: forged(stream={"zipf_theta": nan}),
    "a rate below one": lambda: forged(stream={"rate_iops": 0.5}),
    "a depth that is a text": lambda: forged(stream={"queue_depth": "1\nexec_prerun=id"}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_no_job_is_made_of_a_cell_that_no_workload_file_could_ask_for(what: str) -> None:
    with pytest.raises(Refused) as caught:
        render(REFUSED[what](), "/data/target")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_a_path_of_colons_does_not_run_over_the_line_that_fio_reads() -> None:
    with pytest.raises(Refused, match="longer than"):
        render(forged(), "/" + ":" * 2040)


def test_a_stored_cell_with_an_unknown_engine_is_not_decoded() -> None:
    raw = msgspec.json.encode(forged(engine="io_uring\nexec_prerun=id"))
    with pytest.raises(msgspec.ValidationError, match="engine"):
        msgspec.json.decode(raw, type=Cell)


def test_a_stored_cell_is_rendered_as_it_was_before() -> None:
    stored = msgspec.json.decode(msgspec.json.encode(forged()), type=Cell)
    assert render(stored, "/d") == render(forged(), "/d")


def test_a_forged_ceiling_still_counts_as_writing() -> None:
    cell = measured(a_workload(streams=(a_stream(direction="write"),), sweep=()))[0]
    assert cell.writes
    assert msgspec.structs.replace(cell, purpose="ceiling").writes
    assert not msgspec.structs.replace(cell, purpose="ceiling", engine="null").writes


def test_a_stored_plan_is_refused_for_one_unfit_cell_before_anything_is_done() -> None:
    record = a_run_record()
    refuse_unfit_plan(record.plan, record.identity)
    *others, last = record.plan.cells
    nothing = msgspec.structs.replace(last.placed[0].stream, block_mix=())
    unfit = msgspec.structs.replace(
        last, placed=(msgspec.structs.replace(last.placed[0], stream=nothing),)
    )
    with pytest.raises(Refused, match="no block size"):
        refuse_unfit_plan(
            msgspec.structs.replace(record.plan, cells=(*others, unfit)), record.identity
        )
    with pytest.raises(Refused, match="stored plan"):
        refuse_unfit_plan(msgspec.structs.replace(record.plan, cells=()), record.identity)
