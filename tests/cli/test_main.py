"""The entry: verbs, exit codes, one sentence for every failure and never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from kvbench.cli import main as entry
from kvbench.cli.main import EXIT_CODES, VERBS, main, verb_parser
from kvbench.errors import ExitCode, KvbenchError

ROOT = Path(__file__).resolve().parents[2]


def test_help_names_every_verb_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for verb in VERBS:
        assert verb in said
    for code in ExitCode:
        assert f"{int(code)} " in EXIT_CODES


def test_every_verb_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in VERBS:
        parser, _ = verb_parser(verb)
        with pytest.raises(SystemExit):
            parser.parse_args(["--help"])
        assert VERBS[verb].split()[0] in capsys.readouterr().out.lower()


def test_no_verb_is_usage_and_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.USAGE
    assert "verbs" in capsys.readouterr().err


def test_an_unknown_verb_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rum"])
    assert ended.value.code == ExitCode.USAGE
    assert "rum" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KvbenchError.__subclasses__())
def test_each_error_class_is_one_sentence_and_its_exit_code(
    kind: type[KvbenchError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_name: str, _argv: list[str]) -> int:
        raise kind("it went wrong", where="here", hint="do that")

    monkeypatch.setattr(entry, "_run_verb", fail)
    assert main(["run"]) == kind.exit_code
    assert capsys.readouterr().err == "kvbench: error: here: it went wrong (do that)\n"


def test_a_bug_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_name: str, _argv: list[str]) -> int:
        return 1 // 0

    monkeypatch.setattr(entry, "_run_verb", fail)
    monkeypatch.delenv("KVBENCH_TRACEBACK", raising=False)
    assert main(["run"]) == ExitCode.BUG
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "Traceback" not in said


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m kvbench list workloads | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from kvbench.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'matplotlib', 'jinja2', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_name_may_stand_behind_the_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["compare", "one", "--results", str(tmp_path), "two"])
    assert code == ExitCode.STORE  # both names were taken, and neither is a run
    assert "no run 'one'" in capsys.readouterr().err


def test_a_span_of_nothing_is_told_and_is_not_taken_for_none_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["plan", "--workload", "vllm-block", "--results", str(tmp_path), "--span", "0"]
    assert main(argv) == ExitCode.USAGE
    assert "a span of no bytes holds no I/O" in capsys.readouterr().err
