"""fio's words for blocks that are not as they were written, as fio 3.33 printed them."""

from kvbench.fio.diagnostics import classify
from kvbench.fio.verify_messages import is_verify_line, verify_errors

SAID = """\
crc32c: verify failed at file /data/a b offset 7, length 4096 (requested block: x offset 409600, length 4096 (requested block: offset=409600, length=4096, flags=88)
       Expected CRC: c3aa6f5e
       Received CRC: 8c6bc05f
verify: bad header crc 93f484c5, calculated cd7d4bc3 at file /t.dat offset 1638400, length 4096 (requested block: offset=1638400, length=4096)
verify: bad header offset 819200, wanted 1228800 at file /t.dat offset 1228800, length 4096 (requested block: offset=1228800, length=4096)
verify: bad magic header 0, wanted acca at file /t.dat offset 0, length 8192 (requested block: offset=0, length=8192)
verify: bad magic header 0, wanted acca at file /t.dat offset 0, length 8192 (requested block: offset=0, length=8192)
verify: bad header rand_seed 5, wanted 6 at file /t.dat offset 12288, length 4096 (requested block: offset=12288, length=4096)
""".splitlines()  # noqa: E501 - one line each


def test_every_place_is_told_once_and_in_order_with_what_is_wrong() -> None:
    found = [(e.offset_bytes, e.length_bytes, e.what) for e in verify_errors(SAID)]
    assert found == [
        (0, 8192, "it has no header"),
        (12288, 4096, "it is of another generation"),
        (409600, 4096, "its checksum is wrong"),  # a name may look like the rest of the line
        (1228800, 4096, "it holds the block of offset 819200"),
        (1638400, 4096, "its header is damaged"),
    ]


def test_all_of_these_lines_belong_together_and_the_bad_ones_are_errors() -> None:
    assert all(is_verify_line(line) for line in SAID)
    levels = [classify(line) for line in SAID]
    assert [level for level in levels if level == "error"] == ["error"] * 6


def test_other_lines_are_none_of_these() -> None:
    for line in ("fio: verification read phase will never start", "verify=crc32c", "", "CRC: 1"):
        assert not is_verify_line(line)
        assert verify_errors([line]) == ()
