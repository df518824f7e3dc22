"""fio's JSON as it is: the keys that are read, with fio's own names and without any judgement.

Every number may also be None: that stands for what no JSON number can say (NaN, infinity).
"""

from typing import Any

import msgspec
from msgspec import Struct, field

Number = int | float | None
Options = dict[str, Any]


class RawLatency(Struct):
    """slat, clat or lat; ``bins`` only in json+."""

    min: Number = None
    max: Number = None
    mean: Number = None
    stddev: Number = None
    count: Number = field(name="N", default=None)
    percentile: dict[str, Number] = {}
    bins: dict[str, int] = {}


class RawDirection(Struct):
    """read, write or trim."""

    io_bytes: Number = None
    io_kbytes: Number = None
    bw_bytes: Number = None
    bw: Number = None
    iops: Number = None
    runtime: Number = None
    total_ios: Number = None
    short_ios: Number = 0
    drop_ios: Number = 0
    slat_ns: RawLatency | None = None
    clat_ns: RawLatency | None = None
    lat_ns: RawLatency | None = None
    slat: RawLatency | None = None
    clat: RawLatency | None = None
    lat: RawLatency | None = None


class RawJob(Struct):
    """One row of ``jobs``."""

    jobname: str
    groupid: int
    error: int
    total_err: Number = 0
    first_error: Number = 0
    options: Options = field(name="job options", default_factory=dict)
    read: RawDirection | None = None
    write: RawDirection | None = None
    trim: RawDirection | None = None
    mixed: RawDirection | None = None
    job_runtime: Number = None
    usr_cpu: Number = None
    sys_cpu: Number = None
    iodepth_level: dict[str, Number] = {}


class RawDisk(Struct):
    """One row of ``disk_util``."""

    name: str
    read_ios: Number = None
    write_ios: Number = None
    read_sectors: Number = None


class RawDocument(Struct):
    """The whole."""

    version: str = field(name="fio version")
    timestamp_ms: Number = None
    options: Options | list[Options] = field(name="global options", default_factory=dict)
    jobs: list[RawJob] | None = None
    client_stats: list[msgspec.Raw] | None = None
    disk_util: list[RawDisk] = []
