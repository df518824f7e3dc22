"""JUnit XML: counts that agree, messages with both values, text that XML can hold."""

from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from kvbench.compare.policy import Policy, RequiredLevel, find_policy
from kvbench.gate.decide import decide
from kvbench.gate.junit import junit
from kvbench.measure.roles import Judgement
from tests.compare.runs import THREE, a_run

GOOD = {"iops": [100.0, 101, 102, 99, 98, 100], "latency_p99": [1.0, 1.01, 0.99, 1, 1.02, 0.98]}
BAD = {"iops": [v / 2 for v in GOOD["iops"]], "latency_p99": [0.9, 1.12, 1.0, 0.92, 1.1, 1.05]}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return find_policy(None, "gate")


def document(
    policy: Policy, base: dict[str, list[float]], new: dict[str, list[float]]
) -> ElementTree.Element:
    gate = decide(a_run("base", base), a_run("new", new), policy, Judgement())
    return ElementTree.fromstring(junit(gate, policy))  # noqa: S314 - our own text


def counts(root: ElementTree.Element) -> dict[str, int]:
    suite = root.find("testsuite")
    assert suite is not None
    return {n: int(suite.attrib[n]) for n in ("tests", "failures", "errors", "skipped")}


def test_a_green_gate_has_no_failure_and_no_error(policy: Policy) -> None:
    found = document(policy, GOOD, GOOD)
    assert counts(found) == {"tests": 3, "failures": 0, "errors": 0, "skipped": 0}


def test_worse_is_a_failure_and_unclear_an_error(policy: Policy) -> None:
    found = document(policy, GOOD, BAD)
    assert counts(found) == {"tests": 3, "failures": 2, "errors": 1, "skipped": 0}
    kinds = {case.attrib["name"]: [child.tag for child in case] for case in found.iter("testcase")}
    assert kinds["reads.iops"] == ["failure"]
    assert kinds["verdict"] == ["failure"]


def test_the_message_has_both_values_with_n_and_interval(policy: Policy) -> None:
    (failure, _) = document(policy, GOOD, BAD).iter("failure")
    message = failure.attrib["message"]
    assert message.startswith("WORSE: baseline 100 (95 % interval 98.0 to 102, n=6)")
    assert "candidate 50.0 (95 % interval 49.0 to 51.0, n=6)" in message
    assert "-50.0 %" in message


@pytest.mark.parametrize(("missing", "tag"), [("fail", "failure"), ("unclear", "error")])
def test_a_missing_number_is_what_the_policy_says(policy: Policy, missing: str, tag: str) -> None:
    other = replace(policy, missing=missing)
    found = document(other, GOOD, {"iops": GOOD["iops"]})
    kinds = {case.attrib["name"]: [child.tag for child in case] for case in found.iter("testcase")}
    assert kinds["reads.latency_p99"] == [tag]
    assert kinds["verdict"] == [tag]


def test_a_number_that_is_not_gated_is_skipped(policy: Policy) -> None:
    few = {"iops": GOOD["iops"], "latency_p99": []}
    assert counts(document(policy, few, few))["skipped"] == 1


def test_a_required_level_is_a_case_of_its_own(policy: Policy) -> None:
    asking = replace(policy, require=(RequiredLevel(role="memory", level="vector-index"),))
    found = document(asking, GOOD, GOOD)
    (error, _) = found.iter("error")
    assert "cannot say" in error.attrib["message"]


def test_what_xml_cannot_hold_becomes_a_question_mark(policy: Policy) -> None:
    hostile = replace(THREE, name='<a&"\x00\x1b\ufffe]]>')
    gate = decide(
        a_run("base", GOOD, workload=hostile),
        a_run('new<>"&', GOOD, workload=hostile),
        policy,
        Judgement(),
    )
    text = junit(gate, policy)
    text.encode()
    root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    names = {case.attrib["classname"] for case in root.iter("testcase")}
    assert 'kvbench.<a&"???]]>' in names
