import pytest

from kvbench import errors
from kvbench.errors import KvbenchError

CODES = {
    errors.UsageError: 2,
    errors.EnvironmentMissing: 3,
    errors.CellFailed: 4,
    errors.StoreError: 5,
    errors.Refused: 7,
    errors.Interrupted: 130,
}


def test_every_class_has_the_exit_code_of_the_documented_table() -> None:
    assert {kind: int(kind.exit_code) for kind in CODES} == CODES
    assert set(KvbenchError.__subclasses__()) >= set(CODES)
    assert int(KvbenchError.exit_code) == 70


def test_exit_codes_do_not_repeat() -> None:
    assert len(set(CODES.values())) == len(CODES)


@pytest.mark.parametrize(
    ("where", "hint", "text"),
    [
        ("", "", "not a size"),
        ("a.toml: size", "", "a.toml: size: not a size"),
        ("", "write 64MiB", "not a size (write 64MiB)"),
        ("a.toml: size", "write 64MiB", "a.toml: size: not a size (write 64MiB)"),
    ],
)
def test_an_error_is_one_sentence_with_place_and_hint(where: str, hint: str, text: str) -> None:
    assert str(errors.UsageError("not a size", where=where, hint=hint)) == text
