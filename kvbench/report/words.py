"""Numbers, parameters and names -> the words that a reader sees.  Pure."""

import re
import unicodedata
from collections.abc import Mapping
from math import isfinite

from kvbench.measure.model import Measurement, Summary
from kvbench.metrics import METRICS
from kvbench.units import format_size, format_value
from kvbench.workload.schema import Evidence, Role, Stream, SweepValue

DASH = "\N{EN DASH}"  # between two numbers, and for "nothing here"
IN_DOUBT = "(doubtful)"  # where a mark has no place
NAME_CHARS_MAX = 60
TEXT_CHARS_MAX = 600  # of a sentence from an archive
_MICROSECONDS = re.compile(r"(?<=\d) us\b")
COMBINING_MAX = 2  # marks stacked on one letter before they are spelled out

ROLE_WORDS: dict[Role, str] = {
    "memory": "The SSD as an extension of memory: small reads that a computation waits for.",
    "performance": "The SSD as a cache tier: KV blocks and chunks that are reloaded, not computed.",
    "capacity": "The SSD as a large store: much data written and read in bulk.",
}
EVIDENCE_WORDS: dict[Evidence, str] = {
    "shipping": "what shipping software does",
    "trace": "taken from a recorded trace",
    "probe": "a probe of the device, not an application",
    "projected": "a projection of software that does not ship yet",
}
_LABELS = {
    "iops": "IOPS",
    "bandwidth": "Bandwidth",
    "latency_mean": "Mean latency",
    "request_rate": "Request rate",
    "cpu_per_io": "CPU time per I/O",
    "depth_mean": "I/Os in flight",
    "device_requests_per_io": "Device requests per I/O",
    "device_request_bytes": "Mean device request",
    "device_byte_share": "Bytes from the device",
    "device_latency_mean": "Block layer and device",
    "host_latency_mean": "Above the block layer",
    "read_amplification": "Read amplification",
    "host_ceiling_share": "Of host ceiling",
    "latency_p99_mixed_over_alone": "p99 mixed / alone",
    "latency_p99.9_mixed_over_alone": "p99.9 mixed / alone",
    "iops_mixed_over_alone": "Rate mixed / alone",
    "jain_index": "Jain's index",
    "deadline_hit_share": "Requests in time",
    "deadline_step_share": "Steps in time",
    "usable_iops": "Usable IOPS",
    "usable_share": "Usable, of peak",
    "iops_over_4kib": "IOPS over 4 KiB",
    "iops_over_fewer_jobs": "IOPS over fewer jobs",
    "latency_over_smallest_span": "p50 over smallest span",
    "span_knee": "Span of the knee",
    "span_slope": "p50 per doubling",
}
SIZES = {  # swept sizes and the words before them
    **dict.fromkeys(("block_size", "chunk_size", "chunk_bytes", "chunk"), ""),
    **dict.fromkeys(("span_size", "span_limit_bytes"), "in "),
}
_TIMES = {"latency": "latency", "request": "request time", "step": "step time", "stall": "stall"}
_SUFFIXES = {
    "iops": " IOPS",
    "request_rate": " requests/s",
    "latency_p99_mixed_over_alone": " x",
    "latency_p99.9_mixed_over_alone": " x",
    "iops_mixed_over_alone": " x",
    "iops_over_4kib": " x",
    "iops_over_fewer_jobs": " x",
    "latency_over_smallest_span": " x",
    "read_amplification": " x",
    "usable_iops": " IOPS",
    "device_requests_per_io": " requests",
    "depth_mean": " I/Os",
}


def visible(text: str) -> str:
    """Return ``text`` in one line with every character that hides or reorders made visible.

    Control, format and direction characters and piled-up combining marks become their number,
    as in ⟨U+202E⟩: every font and every terminal shows that.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    stacked = 0
    for character in text:
        stacked = stacked + 1 if unicodedata.combining(character) else 0
        if character.isprintable() and stacked <= COMBINING_MAX:
            shown.append(character)
        else:
            shown.append(f"\u27e8U+{ord(character):04X}\u27e9")
    return "".join(shown)


def visible_lines(text: str) -> str:
    """Return a text of several lines with each made visible; tabs stay."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(visible(part) for part in line.split("\t")) for line in lines)


def short(text: str, limit: int = NAME_CHARS_MAX) -> str:
    """Return ``text`` made visible and cut in its middle to ``limit`` characters."""
    shown = visible(text if len(text) <= 4 * limit else f"{text[: 2 * limit]}{text[-2 * limit :]}")
    if len(shown) <= limit:
        return shown
    tail = limit // 3
    return f"{shown[: limit - tail - 1]}…{shown[-tail:]}"


def sentence(text: str) -> str:
    """Return a sentence of an archive, visible, in one line and of bounded length."""
    return micro(short(text, TEXT_CHARS_MAX))


def micro(text: str) -> str:
    """Return ``text`` with microseconds as pages write them; stored texts have plain ``us``."""
    return _MICROSECONDS.sub(" \N{MICRO SIGN}s", text) if " us" in text else text


def metric_label(metric: str) -> str:
    """Return a metric's name as a heading: ``p99 latency``."""
    kind, _, percentile = metric.partition("_p")
    if metric in METRICS and METRICS[metric].percentile is not None:
        return f"p{percentile} {_TIMES.get(kind, kind)}"
    return _LABELS.get(metric, short(metric.replace("_", " ")))


def metric_meaning(metric: str) -> str:
    """Return what a metric means, "" for one of another version of kvbench."""
    return METRICS[metric].meaning if metric in METRICS else ""


def quantity(metric: str, unit: str, value: float, *, censored: bool = False) -> str:
    """Return a value with its unit: ``3.12 GB/s``, ``19.1k IOPS``, ``≥ 17.1 s``."""
    if not isfinite(value):
        return "not a number"
    if unit == "%" and 0 < value < 1:
        return f"{value:.2g} %"  # one decimal would say 0.0
    text = f"{format_value(value, unit)}{_SUFFIXES.get(metric, '')}"
    text = micro(text)
    return f"≥ {text}" if censored else text


def spread(
    metric: str,
    unit: str,
    low: float,
    median: float,
    high: float,
    *,
    censored_from: float | None = None,
) -> str:
    """Return low and high joined by a dash, without their unit where it is that of the median.

    From ``censored_from`` on a value is at least what stands there.
    """
    texts = [quantity(metric, unit, value) for value in (low, median, high)]
    if censored_from is not None and high >= censored_from:
        return f"{texts[0]}{DASH}{quantity(metric, unit, high, censored=True)}"
    numbers, units = zip(*((t.partition(" ")[0], t.partition(" ")[2]) for t in texts), strict=True)
    first, _, last = numbers if len(set(units)) == 1 else texts
    return f"{first}{DASH}{last}"


def summary_text(summary: Summary) -> str:
    """Return the median with its unit, or the words that stand for it."""
    if summary.median is None:
        return missing_text(summary.reason)
    return quantity(summary.metric, summary.unit, summary.median, censored=summary.censored)


def summary_detail(summary: Summary) -> str:
    """Return the interval or range with its n, or why there is no number.

    What is missing stays visible: the repetitions left out, and those without a number.
    """
    if summary.median is None:
        head, _, rest = sentence(summary.reason).partition(": ")
        return (rest if head == missing_text(summary.reason) else sentence(summary.reason)) or (
            "no reason is given"
        )
    n = f"n={summary.n}"
    if summary.excluded:
        n += f" of {summary.n + summary.excluded}"
    if summary.censored:
        text = f"beyond what fio sees, {n}"
    elif not _has_spread(summary):
        text = f"{n}, no interval"
    else:
        low, high = summary.low or 0.0, summary.high or 0.0
        range_text = spread(
            summary.metric,
            summary.unit,
            low,
            summary.median,
            high,
            censored_from=summary.censored_from,
        )
        what = "95 % interval, " if summary.interval == "95 %" else "range of "
        text = f"{range_text}, {what}{n}"
    return f"{text}; {sentence(summary.reason)}" if summary.reason else text


def _has_spread(summary: Summary) -> bool:
    if summary.interval == "none" or summary.low is None or summary.high is None:
        return False
    return isfinite(summary.low) and isfinite(summary.high)


def measurement_text(measurement: Measurement) -> str:
    """Return one cell's number: ``p99 latency 412 µs``."""
    label = metric_label(measurement.metric)
    if measurement.value is None:
        return f"{label}: {missing_text(measurement.reason)}"
    known = METRICS.get(measurement.metric)
    unit = known.unit if known else "1"
    value = quantity(measurement.metric, unit, measurement.value, censored=measurement.censored)
    return value if label == "IOPS" else f"{label} {value}"


def missing_text(reason: str) -> str:
    """Return the short words in place of a number: ``too few I/Os``, ``not measured``."""
    head = reason.partition(": ")[0]
    if head in ("too few I/Os", "too few requests", "too few steps"):
        return head
    return "no valid cell" if head == "no repetition counts" else "not measured"


def stream_words(stream: Stream, *, paced: bool = False, had_bytes: int | None = None) -> str:
    """Return what a stream does: ``4 KiB random reads, depth 32, 2 jobs``.

    ``paced`` is for an open loop whose rate is set while the run goes on.  ``had_bytes`` is what
    the stream really had of the target, where that may be less than was asked.
    """
    parts = [_pattern_words(stream)]
    if stream.read_percent is not None:
        parts.append(f"{stream.read_percent} % reads")
    if stream.rate_iops is not None or paced:
        rate = "" if stream.rate_iops is None else f" {stream.rate_iops:,.0f} IOPS"
        parts += [f"open loop{rate}", f"depth up to {stream.queue_depth}"]
    elif stream.barrier:
        parts += _request_words(stream)
    else:
        parts.append(f"depth {stream.queue_depth}")
    if stream.span_limit_bytes is not None:
        parts.append(_limited(stream.span_limit_bytes, had_bytes))
    elif stream.span_percent != 100:
        parts.append(_span(stream.span_percent))
    parts.append(_jobs(stream.jobs))
    parts += _extra_words(stream)
    return ", ".join(parts)


def _limited(asked_bytes: int, had_bytes: int | None) -> str:
    asked, had = format_size(asked_bytes), format_size(had_bytes or asked_bytes)
    return f"in {had}" if asked == had else f"in {had} (asked for {asked})"


def _pattern_words(stream: Stream) -> str:
    sizes = " + ".join(
        format_size(share.size_bytes)
        + (f" ({share.percent} %)" if len(stream.block_mix) > 1 else "")
        for share in stream.block_mix
    )
    whats = {"read": "reads", "write": "writes", "mixed": "reads and writes", "trim": "trims"}
    what = whats[stream.direction]
    if stream.pattern == "chunk" and stream.chunk_bytes:
        return f"{sizes} {what} in random {format_size(stream.chunk_bytes)} chunks"
    words = f"{sizes} {stream.pattern} {what}"
    if stream.stride_bytes is not None:
        words += f", one every {format_size(stream.stride_bytes)}"
    return words


def _request_words(stream: Stream) -> list[str]:
    if stream.request_steps > 1:
        depth = "" if stream.queue_depth == 1 else f" of {stream.queue_depth}"
        return [f"{stream.request_steps} steps{depth} per request, one after the other"]
    return [f"{stream.queue_depth} per request, barrier"]


def _extra_words(stream: Stream) -> list[str]:
    """Return what few streams have, each in a few words."""
    found = {
        f"deadline {format_value(stream.deadline_s or 0, 's')}": stream.deadline_s is not None,
        f"{format_value(stream.compute_s or 0, 's')} of computing per step": (
            stream.compute_s is not None
        ),
        f"{stream.prefetch_steps} steps ahead": (
            stream.compute_s is not None and stream.prefetch_steps is not None
        ),
        f"bursts of {stream.burst_ios}, pause {format_value(stream.pause_s or 0, 's')}": (
            stream.burst_ios is not None
        ),
        f"zipf {stream.zipf_theta or 0:g}": stream.zipf_theta is not None,
        "each write durable (dsync)": stream.write_policy == "dsync",
        f"fsync every {stream.fsync_every or 1}": stream.write_policy == "fsync",
        "through the page cache": stream.buffered,
        f"{stream.buffers}-page buffers": stream.buffers == "huge",
        "contiguous buffers": stream.buffers == "contiguous",
    }
    return [micro(words) for words, there in found.items() if there]


def parameter_words(parameters: Mapping[str, SweepValue]) -> str:
    """Return the swept parameters: ``4 KiB, depth 32, 2 jobs``; "" when nothing is swept."""
    rest = dict(parameters)
    parts = []
    if "victim" in rest and "aggressor" in rest:
        victim, aggressor = (short(str(rest.pop(side)), 24) for side in ("victim", "aggressor"))
        parts.append(f"{victim} beside {aggressor}")
    parts += [_parameter(key, value) for key, value in rest.items()]
    return ", ".join(parts)


def load_words(load: SweepValue) -> str:
    """Return where a point of a load curve stands: ``peak``, ``30 % of the peak``."""
    text = short(str(load), 24)
    return f"{text} of the peak" if text.endswith("%") else text


def _parameter(key: str, value: SweepValue) -> str:
    stream, _, field = key.rpartition(".")
    prefix = f"{short(stream, 24)} " if stream else ""
    number = value if isinstance(value, (int, float)) else None
    if key == "load":
        return load_words(value)
    if number is not None and field in SIZES:
        return f"{prefix}{SIZES[field]}{format_size(number)}"
    if field == "queue_depth":
        return f"{prefix}depth {value}"
    if number is not None and field == "jobs":
        return f"{prefix}{_jobs(number)}"
    if field == "request_steps":
        return f"{prefix}{value} steps per request"
    if field == "prefetch_steps":
        return f"{prefix}{value} steps ahead"
    if number is not None and field == "pause":
        return f"{prefix}pause {micro(format_value(number, 's'))}"
    if number is not None and field == "span_percent":
        return f"{prefix}{_span(number)}"
    if number is not None and field == "rate_iops":
        return f"{prefix}{number:,.0f} IOPS asked"
    return f"{prefix}{short(field.replace('_', ' '), 24)} {short(str(value), 24)}"


def _span(percent: float) -> str:
    return f"in {percent:g} % of the target"


def _jobs(count: float) -> str:
    return "1 job" if count == 1 else f"{count:g} jobs"
