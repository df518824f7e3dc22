import errno
import os
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from kvbench.errors import EnvironmentMissing, ExitCode, Refused, UsageError
from kvbench.fio import probe
from kvbench.fio.output import parse
from kvbench.fio.probe import (
    FioTool,
    check_engine,
    engines_fact,
    explain_refusal,
    find_fio,
    supports,
)
from tests import direct_io

CASE = Path(__file__).resolve().parents[1] / "fixtures" / "cases" / "22-io-uring-unavailable"
SECCOMP = Path(__file__).with_name("seccomp.py")
HAS_FIO = shutil.which("fio") is not None
needs_fio = [pytest.mark.fio, pytest.mark.skipif(not HAS_FIO, reason="fio is not installed")]


def script(folder: Path, text: str, name: str = "fio") -> str:
    """An executable that stands for fio."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def recorded(
    name: str, *, disabled: int | None = None, memlock_bytes: int | None = None
) -> EnvironmentMissing:
    """What is said about a recorded refusal of case 22."""
    said = parse(
        (CASE / f"{name}.stdout").read_text(), stderr=(CASE / f"{name}.stderr").read_text()
    )
    return explain_refusal(
        "io_uring", said, io_uring_disabled=disabled, memlock_bytes=memlock_bytes
    )


# --- finding fio ----------------------------------------------------------------------------


def test_no_fio_is_told_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissing) as caught:
        find_fio()
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert caught.value.hint == "apt-get install fio"


def test_a_named_fio_that_is_not_there_is_named() -> None:
    with pytest.raises(EnvironmentMissing, match="/no/such/fio"):
        find_fio("/no/such/fio")


@pytest.mark.parametrize(
    ("text", "version"),
    [("fio-3.28", (3, 28)), ("fio-3.42-13-gabcdef", (3, 42)), ("fio-4.0-dirty", (4, 0))],
)
def test_a_fio_that_is_new_enough_is_returned(
    tmp_path: Path, text: str, version: tuple[int, int]
) -> None:
    path = script(tmp_path, f"echo {text}")
    assert find_fio(path) == FioTool(path=path, version_text=text, version=version)


def test_the_engines_of_a_fio_are_named_or_unknown(tmp_path: Path) -> None:
    listing = script(tmp_path, r"printf 'Available IO engines:\n\tsync\n\tio_uring\n'")
    tool = FioTool(path=listing, version_text="fio-3.33", version=(3, 33))
    assert engines_fact(tool).value == "sync, io_uring"
    silent = engines_fact(msgspec.structs.replace(tool, path=script(tmp_path, "exit 1", "none")))
    assert silent.value is None
    assert silent.reason


@pytest.mark.parametrize("text", ["fio-3.27", "fio-3.9", "fio-2.21"])
def test_an_old_fio_is_refused_with_both_versions(tmp_path: Path, text: str) -> None:
    with pytest.raises(EnvironmentMissing, match=rf"is {text}, and kvbench needs fio 3\.28"):
        find_fio(script(tmp_path, f"echo {text}"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("echo Fiona 1.9.5", "Fiona 1.9.5"),
        ("true", "does not tell its version"),
        ("echo fio-3.33; exit 1", "does not tell its version"),
        (r"printf '\377\376'", "does not tell its version"),
        ("echo 'libaio.so.1: cannot open shared object file' >&2; exit 127", "libaio.so.1"),
    ],
)
def test_a_program_without_a_version_is_refused_with_its_answer(
    tmp_path: Path, text: str, shown: str
) -> None:
    with pytest.raises(EnvironmentMissing, match=shown):
        find_fio(script(tmp_path, text))


def test_a_fio_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_ASK_S", 0.2)
    with pytest.raises(EnvironmentMissing, match="no answer"):
        find_fio(script(tmp_path, "exec sleep 30"))


# --- options --------------------------------------------------------------------------------


def tool(path: str) -> FioTool:
    return FioTool(path=path, version_text="fio-3.33", version=(3, 33))


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("                  bs: Block size unit\n               alias: blocksize", True),
        ("           blocksize: Block size unit\n               alias: bs\n", True),
        (" - showing closest match\n                  bs: Block size unit", False),
        ("                 bsz: Block size unit", False),
        ("               absbs: Block size unit", False),
        ("", False),
    ],
)
def test_an_option_is_known_by_its_own_name_only(tmp_path: Path, said: str, known: bool) -> None:
    path = script(tmp_path, f"cat <<'END'\n{said}\nEND")
    assert supports(tool(path), "bs") is known


class TestRealFio:
    pytestmark = needs_fio

    def test_the_installed_fio_is_found(self) -> None:
        found = find_fio()
        assert found.version >= (3, 28)
        assert found.version_text.startswith(f"fio-{found.version[0]}.{found.version[1]}")
        assert Path(found.path).is_absolute()

    @pytest.mark.parametrize(
        ("option", "engine", "known"),
        [
            ("rw", None, True),
            ("readwrite", None, True),
            ("lat_percentiles", None, True),
            ("random_generatr", None, False),
            ("registerfiles", None, False),
            ("registerfiles", "io_uring", True),
            ("registerfyles", "io_uring", False),
            ("registerfiles", "psync", False),
            ("registerfiles", "no_such_engine", False),
        ],
    )
    def test_options_are_asked_of_fio_itself(
        self, option: str, engine: str | None, known: bool
    ) -> None:
        if engine == "io_uring" and not supports(find_fio(), "fixedbufs", engine="io_uring"):
            pytest.skip("this fio has no io_uring")
        assert supports(find_fio(), option, engine=engine) is known


# --- why an engine is refused ---------------------------------------------------------------


@pytest.mark.parametrize("disabled", [0, None])
def test_eperm_with_io_uring_switched_on_is_a_profile(disabled: int | None) -> None:
    error = recorded("errno1", disabled=disabled)
    assert error.exit_code is ExitCode.ENVIRONMENT
    assert "seccomp" in error.message
    assert "seccomp=unconfined" in error.hint
    assert "Operation not permitted" in error.message


def test_eperm_with_the_sysctl_at_2_names_the_sysctl() -> None:
    error = recorded("errno1", disabled=2)
    assert "kernel.io_uring_disabled is 2" in error.message
    assert error.hint.startswith("sysctl -w kernel.io_uring_disabled=0")


def test_eperm_with_the_sysctl_at_1_names_the_group() -> None:
    error = recorded("errno1", disabled=1)
    assert "kernel.io_uring_disabled is 1" in error.message
    assert "io_uring_group" in error.hint


def test_enosys_of_a_kernel_that_has_io_uring_is_a_profile() -> None:
    assert "profile" in recorded("errno38", disabled=0).message


def test_enosys_of_a_kernel_that_may_not_have_io_uring_says_so() -> None:
    error = recorded("errno38", disabled=None)
    assert "has no io_uring" in error.message
    assert "newer kernel" in error.hint


@pytest.mark.parametrize(
    ("memlock_bytes", "shown"),
    [
        (65536, "RLIMIT_MEMLOCK is 64 KiB"),
        (-1, "RLIMIT_MEMLOCK is unlimited"),
        (None, "RLIMIT_MEMLOCK is too low"),
    ],
)
def test_enomem_tells_the_limit_of_locked_memory(memlock_bytes: int | None, shown: str) -> None:
    error = recorded("memlock-errno12", memlock_bytes=memlock_bytes)
    assert shown in error.message
    assert error.hint.startswith("ulimit -l unlimited")
    assert "LimitMEMLOCK" in error.hint


def explained(engine: str, said: str) -> EnvironmentMissing:
    return explain_refusal(engine, said, io_uring_disabled=0, memlock_bytes=65536)


def test_an_engine_that_is_not_built_in_is_told() -> None:
    said = "".join((CASE / f"engine-not-built-in.{s}").read_text() for s in ("stdout", "stderr"))
    assert "built without the engine io_uring" in explained("io_uring", said).message


@pytest.mark.parametrize(
    ("engine", "line", "shown", "hint"),
    [
        (
            "io_uring",
            "fio: pid=1, err=22/file:engines/io_uring.c:998, func=io_queue_init, error=Invalid",
            "does not know what fio asks",
            "newer kernel",
        ),
        (
            "libaio",
            "fio: pid=1, err=11/file:engines/libaio.c:4, func=io_queue_init, error=Resource t",
            "no asynchronous I/O contexts",
            "fs.aio-max-nr",
        ),
        (
            "libaio",
            "fio: pid=1, err=38/file:engines/libaio.c:4, func=io_queue_init, error=Function n",
            "libaio is refused",
            "psync",
        ),
        (
            "io_uring",
            "fio: pid=1, err=13/file:filesetup.c:805, func=open(/dev/sdb), error=Permission d",
            "no permission to read the target",
            "root",
        ),
        (
            "psync",
            "fio: pid=1, err=22/file:io_u.c:1876, func=io_u error, error=Invalid argument",
            "smaller than its logical block",
            "--getss",
        ),
        (
            "io_uring",
            "fio: pid=1, err=22/file:filesetup.c:805, func=open(/x), error=Invalid argument\n"
            "fio: destination does not support O_DIRECT",
            "O_DIRECT",
            "--buffered",
        ),
        (
            "io_uring",
            "fio: pid=1, err=5/file:io_u.c:1876, func=io_u error, error=Input/output error",
            "I/O errors",
            "dmesg",
        ),
        (
            "io_uring",
            "fio: pid=1, err=2/file:filesetup.c:805, func=open(/dev/x), error=No such file",
            "not there",
            "",
        ),
        ("io_uring", "fio: pid=1, err=75/file:a.c:1, func=xyz, error=Odd", "EOVERFLOW", ""),
        ("io_uring", "", "fio gave no reason", ""),
    ],
)
def test_every_other_refusal_has_its_cause(engine: str, line: str, shown: str, hint: str) -> None:
    error = explained(engine, line)
    assert shown in error.message
    assert hint in error.hint


# --- real reads -----------------------------------------------------------------------------


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file of 1 MiB with data in it, under a name that fio would split."""
    path = tmp_path / "a:b.dat"
    path.write_bytes(os.urandom(2**20))
    return path


def check(path: Path, engine: str = "io_uring", *, fio: str = "fio", **options: int) -> None:
    check_engine(
        tool(shutil.which(fio) or fio),
        engine,
        target_path=str(path),
        direct=direct_io.works(path),
        workdir=path.parent,
        registered=True,
        **options,
    )


def behind(folder: Path, *words: str) -> str:
    """The real fio, started behind other programs."""
    return script(folder, f'exec {" ".join(words)} {shutil.which("fio")} "$@"', name="behind")


class TestRealReads:
    pytestmark = needs_fio

    @pytest.mark.parametrize("engine", ["io_uring", "libaio", "psync"])
    def test_an_engine_that_works_says_nothing_and_leaves_nothing(
        self, target: Path, engine: str
    ) -> None:
        try:
            check(target, engine)
        except EnvironmentMissing as error:
            pytest.skip(f"{engine} does not work here: {error}")
        assert [path.name for path in target.parent.iterdir()] == [target.name]

    @pytest.mark.parametrize(
        ("number", "shown"),
        [
            (errno.EPERM, "seccomp"),
            (errno.ENOSYS, "io_uring"),
            (errno.ENOMEM, "RLIMIT_MEMLOCK"),
            (errno.EINVAL, "this kernel's io_uring does not know"),
        ],
    )
    def test_a_refused_io_uring_is_explained_and_not_replaced(
        self,
        target: Path,
        number: int,
        shown: str,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        sysctl = tmp_path / "io_uring_disabled"
        sysctl.write_text("0\n")
        monkeypatch.setattr(probe, "_IO_URING_DISABLED", sysctl)
        fio = behind(tmp_path, sys.executable, str(SECCOMP), str(number))
        with pytest.raises(EnvironmentMissing, match=shown) as caught:
            check(target, fio=fio)
        assert caught.value.hint

    def test_other_engines_work_where_io_uring_is_refused(
        self, target: Path, tmp_path: Path
    ) -> None:
        check(target, "psync", fio=behind(tmp_path, sys.executable, str(SECCOMP), "1"))

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up CAP_IPC_LOCK here")
    @pytest.mark.skipif(not shutil.which("prlimit"), reason="prlimit is not installed")
    def test_too_little_locked_memory_is_explained(self, target: Path, tmp_path: Path) -> None:
        fio = behind(
            tmp_path,
            "prlimit --memlock=65536",
            "setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock",
        )
        try:
            check(target, fio=fio)  # a few small buffers fit
        except EnvironmentMissing as error:
            pytest.skip(f"io_uring does not work here at all: {error}")
        with pytest.raises(EnvironmentMissing, match="RLIMIT_MEMLOCK"):
            check(target, fio=fio, block_bytes=131072, queue_depth=64)

    def test_an_engine_that_fio_does_not_have_is_told(self, target: Path) -> None:
        with pytest.raises(EnvironmentMissing, match="built without the engine io_urinq"):
            check(target, "io_urinq")

    def test_reads_below_the_logical_block_are_told(self, target: Path) -> None:
        if not direct_io.works(target):
            pytest.skip("the temporary folder has no O_DIRECT")
        with pytest.raises(EnvironmentMissing, match="smaller than its logical block"):
            check(target, "psync", block_bytes=100)

    @pytest.mark.parametrize("size_bytes", [0, 100])
    def test_a_target_that_is_too_small_is_told_and_not_replaced(
        self, tmp_path: Path, size_bytes: int
    ) -> None:
        path = tmp_path / "small"
        path.write_bytes(b"x" * size_bytes)
        before = path.stat()
        with pytest.raises(EnvironmentMissing, match="less than one block"):
            check(path)
        after = path.stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert path.read_bytes() == b"x" * size_bytes

    def test_a_missing_target_is_not_made(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no such file"):
            check(tmp_path / "none")
        assert not (tmp_path / "none").exists()

    def test_a_path_that_fio_would_read_otherwise_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a$b"
        path.write_bytes(b"x" * 4096)
        with pytest.raises(Refused):
            check(path)


def test_a_probe_that_hangs_is_told(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_PROBE_S", 0.2)
    with pytest.raises(EnvironmentMissing, match="did not end in"):
        check(target, fio=script(tmp_path, "exec sleep 30"))


def test_a_fio_that_reads_nothing_with_exit_code_0_is_not_believed(
    target: Path, tmp_path: Path
) -> None:
    idle = CASE.parent / "04-refused-run-exit-zero" / "offset-past-end-stdout.json"
    with pytest.raises(EnvironmentMissing, match="read nothing through psync"):
        check(target, "psync", fio=script(tmp_path, f"cat {idle}"))
