"""What a run cost the drive: bytes from the host, bytes on the medium, and their ratio.  Pure."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from kvbench.host.health_model import DriveHealth, RunHealth, SessionHealth
from kvbench.units import GIB, format_size

HOST_BYTES_MIN = GIB  # of less than this the drive's own housekeeping is too large a part


class WriteAmplification(Struct, frozen=True, kw_only=True):
    """Bytes written to the medium over bytes written by the host, over all sessions of a run.

    ``value`` is None with a ``reason``; the bytes are None where the drive does not tell them.
    """

    value: float | None
    host_bytes: int | None
    media_bytes: int | None
    reason: str = ""


def write_amplification(health: RunHealth | None) -> WriteAmplification:
    """Return the write amplification of a run: only where the drive counts both sides."""
    sessions = health.sessions if health is not None else ()
    if not sessions:
        return _none("the drive was not looked at")
    host, why_host = _rise(sessions, _host_bytes)
    media, why_media = _rise(sessions, _media_bytes)
    if host is None or media is None:
        return _none(why_host or why_media, host, media)
    if host < HOST_BYTES_MIN:
        reason = f"only {format_size(host)} were written, and {format_size(HOST_BYTES_MIN)} tell"
        return _none(reason, host, media)
    return WriteAmplification(value=media / host, host_bytes=host, media_bytes=media)


def _none(reason: str, host: int | None = None, media: int | None = None) -> WriteAmplification:
    return WriteAmplification(value=None, host_bytes=host, media_bytes=media, reason=reason)


def _host_bytes(told: DriveHealth) -> tuple[int | None, str]:
    if told.smart is None:
        return None, told.unknown.get("smart", "the drive tells no SMART log")
    reason = told.smart.unknown.get("written_bytes", "the drive does not tell what it was sent")
    return told.smart.written_bytes, reason


def _media_bytes(told: DriveHealth) -> tuple[int | None, str]:
    if told.extended is None:
        return None, told.unknown.get("extended", "the drive does not tell what its medium took")
    return told.extended.media_written_bytes, ""


def _rise(
    sessions: Iterable[SessionHealth],
    read: Callable[[DriveHealth], tuple[int | None, str]],
) -> tuple[int | None, str]:
    """Return what a counter rose by in all sessions, or why that is not known."""
    total = 0
    for session in sessions:
        if session.after is None:
            return (
                None,
                "a session of this run has no end, so its last look at the drive is missing",
            )
        first, why = read(session.before)
        last, why_last = read(session.after)
        if first is None or last is None:
            return None, why if first is None else why_last
        if last < first:
            return None, "the drive's counter went back"
        total += last - first
    return total, ""
