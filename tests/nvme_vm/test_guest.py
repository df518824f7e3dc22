"""How the answers of a guest are read; no guest is booted."""

import os
import sys
import time
from pathlib import Path

import msgspec
import pytest

from kvbench.workload.load import load_workload
from tests import direct_io
from tests.nvme_vm import drives
from tests.nvme_vm.guest import Seen
from tests.nvme_vm.inside.driver import ANSWERS_FILE, Answer, digest, run, wait_for
from tests.nvme_vm.inside.loads import write_load


def seen(folder: Path, *answers: Answer) -> Seen:
    lines = [msgspec.json.encode(answer) + b"\n" for answer in answers]
    (folder / ANSWERS_FILE).write_bytes(b"".join(lines))
    return Seen(folder, 0.0)


def test_answers_are_found_by_their_names(tmp_path: Path) -> None:
    found = seen(tmp_path, Answer(name="a", exit_code=7), Answer(name="b"))
    assert (found["a"].exit_code, list(found)) == (7, ["a", "b"])


def test_a_missing_answer_tells_what_broke(tmp_path: Path) -> None:
    found = seen(tmp_path, Answer(name="broken lvm", exit_code=99, stderr="no pvcreate"))
    with pytest.raises(AssertionError, match="no answer 'LUKS'; no pvcreate"):
        found["LUKS"]


def test_a_guest_that_wrote_nothing_has_no_answers(tmp_path: Path) -> None:
    assert len(Seen(tmp_path, 0.0)) == 0


def test_a_tool_that_fails_tells_what_it_said() -> None:
    with pytest.raises(RuntimeError, match="3: said"):
        run(sys.executable, "-c", "import sys; sys.stdout.write('said'); sys.exit(3)")


def test_the_digest_of_a_drive_tells_every_byte_and_its_place(tmp_path: Path) -> None:
    path = tmp_path / "drive"
    path.write_bytes(bytes(1 << 20))
    if not direct_io.works(path):
        pytest.skip("no O_DIRECT where temporary files are")
    digests = set()
    for place in (None, 0, 1, (1 << 20) - 1, 1 << 20, (3 << 20) - 1):
        data = bytearray(3 << 20)
        if place is not None:
            data[place] = 1
        path.write_bytes(data)
        digests.add(digest(str(path)))
        assert digest(str(path)) in digests
    assert len(digests) == 6
    path.write_bytes(bytes(2 << 20))
    assert digest(str(path)) not in digests


def test_a_child_that_hangs_is_killed() -> None:
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
    began = time.monotonic()
    assert wait_for(pid, limit_s=0.1) == -9
    assert time.monotonic() - began < 30


def test_a_small_workload_is_one_that_kvbench_takes(tmp_path: Path) -> None:
    path = write_load(tmp_path / "read.toml", block_size="8KiB", span_percent="25")
    (stream,) = load_workload(Path(path)).streams
    assert (stream.direction, stream.max_block_bytes, stream.span_percent) == ("read", 8192, 25)


def test_drives_that_keep_their_data_have_the_same_files_in_every_boot(tmp_path: Path) -> None:
    def files(specs: tuple[str, ...]) -> set[str]:
        return {spec.split("file=")[1] for spec in specs if "file=" in spec}

    assert files(drives.runs(tmp_path)) < files(drives.after(tmp_path))
    assert files(drives.after(tmp_path)) == files(drives.verified(tmp_path))
