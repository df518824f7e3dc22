"""How a purge is chosen, and what sampled reads make of it; on loop devices of the tests' own."""

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from kvbench.errors import EnvironmentMissing, ExitCode, Refused, UsageError
from kvbench.host.model import EraseAbilities
from kvbench.host.probe import erase_abilities, identify
from kvbench.prepare import marks
from kvbench.prepare.purge import choose, purge, sanitize_status
from kvbench.store.preparation import Purge, PurgeMethod
from tests.host.loops import fingerprint, loop_over, make_backing, needs_loops

NVME = EraseAbilities(
    nvme_tool="/usr/sbin/nvme",
    whole_namespace=True,
    namespaces=1,
    format_hits_all=True,
    discards=True,
)


@pytest.mark.parametrize(
    ("abilities", "method"),
    [
        (NVME, "format"),
        (replace(NVME, namespaces=2, format_hits_all=False), "format"),
        (replace(NVME, namespaces=2), "discard"),
        (replace(NVME, namespaces=None), "discard"),
        (replace(NVME, format_hits_all=None), "discard"),
        (replace(NVME, nvme_tool=""), "discard"),
        (replace(NVME, whole_namespace=False), "discard"),
        (replace(NVME, nvme_tool="", discards=False), "none"),
        (EraseAbilities(), "none"),
    ],
)
def test_a_method_that_may_hit_other_namespaces_is_never_chosen(
    abilities: EraseAbilities, method: PurgeMethod
) -> None:
    assert choose(None, abilities)[0] == method


@pytest.mark.parametrize(
    ("asked", "abilities", "why"),
    [
        ("sanitize", replace(NVME, namespaces=2), "every namespace"),
        ("sanitize", replace(NVME, namespaces=None), "every namespace"),
        ("sanitize", replace(NVME, whole_namespace=False), "whole NVMe drive"),
        ("format", replace(NVME, namespaces=2), "all of its namespaces"),
        ("format", replace(NVME, nvme_tool=""), "no nvme-cli"),
        ("discard", EraseAbilities(), "no discards"),
    ],
)
def test_what_would_hit_more_than_the_target_is_refused_when_asked_for(
    asked: PurgeMethod, abilities: EraseAbilities, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        choose(asked, abilities)


def test_a_sanitize_is_only_done_when_asked_for() -> None:
    assert choose("sanitize", NVME)[0] == "sanitize"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"nvme0": {"sprog": 65535, "sstat": {"media_verification_canceled": 257}}}', 1),
        ('{"sprog": 100, "sstat": 2}', 2),
        ('{"nvme0": {"sstat": "259"}}', 3),
    ],
)
def test_a_sanitize_status_is_read_in_either_shape(text: str, status: int) -> None:
    assert sanitize_status(text) == status


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"sstat": null}', '{"sstat": {}}'])
def test_a_sanitize_status_that_is_not_told_is_an_error(text: str) -> None:
    with pytest.raises(EnvironmentMissing, match="sanitize goes"):
        sanitize_status(text)


def purged(device: str, method: PurgeMethod, folder: Path) -> Purge:
    identity = identify(device)
    return purge(
        identity,
        method,
        erase_abilities(identity),
        why="test",
        seed=3,
        folder=folder,
        stop=threading.Event(),
    )


@needs_loops
@pytest.mark.blockdev
def test_a_discard_of_a_loop_device_is_verified_by_what_is_gone(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        found = purged(device, "discard", tmp_path)
        assert found.verified
        assert (found.held, found.empty) == (0, found.sampled)
        assert found.sampled == 256
    assert (tmp_path / "back").read_bytes().count(0) == (tmp_path / "back").stat().st_size


@needs_loops
@pytest.mark.blockdev
def test_a_purge_that_leaves_data_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvbench.prepare.purge._discard", lambda *_: None)  # a drive that lies
    with loop_over(make_backing(tmp_path / "back")) as device:
        found = purged(device, "discard", tmp_path)
    assert not found.verified
    assert found.held == found.sampled
    assert found.text.startswith("not purged: after the discard, 256 of 256")


@needs_loops
@pytest.mark.blockdev
def test_a_purge_that_the_device_refuses_is_told(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        found = purged(device, "format", tmp_path)  # nvme-cli is not there, or finds no NVMe
    assert not found.verified
    assert found.text.startswith("not purged: format failed")


@needs_loops
@pytest.mark.blockdev
def test_a_block_that_no_fill_reached_is_known_by_its_mark(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        identity = identify(device)
        offsets = (0, 8192, 4096 * 100)
        marks.write_marks(identity, offsets, 5)
        assert marks.look(identity, offsets, 5).marked == 3
        assert marks.look(identity, offsets, 6).marked == 0  # another seed, another mark
        assert marks.look(identity, (4096,), 5).marked == 0


def nvme_that_notes(folder: Path) -> tuple[EraseAbilities, Path]:
    """An nvme-cli that only notes what it was called with, and where."""
    tool, log = folder / "nvme", folder / "called"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
    tool.chmod(0o755)
    return replace(NVME, nvme_tool=str(tool)), log


@needs_loops
@pytest.mark.blockdev
@pytest.mark.parametrize("method", ["format", "sanitize"])
@pytest.mark.parametrize("looks", [0, 1])
def test_a_namespace_that_is_made_after_the_purge_was_chosen_is_not_erased(
    method: PurgeMethod, looks: int, tmp_path: Path
) -> None:
    abilities, log = nvme_that_notes(tmp_path)
    answers = [abilities] * looks + [replace(abilities, namespaces=2)]
    with loop_over(make_backing(tmp_path / "back")) as device:
        before = fingerprint(device)
        with pytest.raises(Refused, match="namespaces was 1, is 2") as refused:
            purge(
                identify(device),
                method,
                abilities,
                why="test",
                seed=3,
                folder=tmp_path,
                stop=threading.Event(),
                look_again=lambda _: answers.pop(0),
            )
        assert refused.value.exit_code == ExitCode.REFUSED
        assert (fingerprint(device) == before) is (looks == 0)  # the marks come after the first
    assert not log.exists()


@needs_loops
@pytest.mark.blockdev
def test_a_purge_whose_reach_is_not_known_any_more_is_refused(tmp_path: Path) -> None:
    abilities, log = nvme_that_notes(tmp_path)
    with (
        loop_over(make_backing(tmp_path / "back")) as device,
        pytest.raises(Refused, match="format hits all was yes, is unknown"),
    ):
        purge(
            identify(device),
            "format",
            abilities,
            why="test",
            seed=3,
            folder=tmp_path,
            stop=threading.Event(),
            look_again=lambda _: replace(abilities, format_hits_all=None),
        )
    assert not log.exists()
