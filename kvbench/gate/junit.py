"""Gate -> JUnit XML as Jenkins and GitLab read it: one test case per gated number.

WORSE and MISSING are failures, what could not be decided is an error: both stop a pipeline, and a
reader sees which it was.  A number that the policy lets pass is a plain case with its values.
"""

import re
from xml.etree import ElementTree

from kvbench.compare.policy import Policy
from kvbench.compare.words import key_words
from kvbench.gate.model import Gate, GateRow
from kvbench.gate.words import headline_parts, row_words

_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(gate: Gate, policy: Policy) -> str:
    """Return the document, encoded as text with an XML declaration."""
    suites = ElementTree.Element("testsuites", name="kvbench gate")
    cases: list[tuple[str, ElementTree.Element]] = []
    for row in gate.rows:
        cases.append(_case(row, policy))
    for required in gate.required:
        case = ElementTree.Element(
            "testcase",
            classname=f"kvbench.role.{required.required.role}",
            name=_fit(required.required.level),
        )
        kind = {"met": "", "missed": "failure", "cannot say": "error"}[required.verdict]
        if kind:
            message = f"{required.verdict}: {required.reason}"
            ElementTree.SubElement(case, kind, message=_fit(message), type=required.verdict)
        cases.append((kind, case))
    for ungated in gate.ungated:
        case = ElementTree.Element(
            "testcase", classname=_class(ungated.key.workload), name=_fit(key_words(ungated.key))
        )
        ElementTree.SubElement(case, "skipped", message=_fit(ungated.reason))
        cases.append(("skipped", case))
    kind = {"PASS": "", "FAIL": "failure"}.get(gate.outcome, "error")
    whole = ElementTree.Element("testcase", classname="kvbench", name="verdict")
    if kind:
        text = f"{gate.outcome}: {'; '.join(headline_parts(gate))}"
        ElementTree.SubElement(whole, kind, message=_fit(text), type=gate.outcome)
    cases.append((kind, whole))
    kinds = [kind for kind, _ in cases]
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name=_fit(f"kvbench gate {gate.sides[0].run_id} {gate.sides[1].run_id}"),
        tests=str(len(cases)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
        timestamp=_fit(gate.sides[1].created_at[:19]),
    )
    suite.extend(case for _, case in cases)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def junit_of_error(message: str) -> str:
    """Return a document that says that the gate came to no verdict, so that no old one is read."""
    suites = ElementTree.Element("testsuites", name="kvbench gate")
    suite = ElementTree.SubElement(
        suites, "testsuite", name="kvbench gate", tests="1", failures="0", errors="1", skipped="0"
    )
    case = ElementTree.SubElement(suite, "testcase", classname="kvbench", name="verdict")
    ElementTree.SubElement(case, "error", message=_fit(message), type="error")
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(row: GateRow, policy: Policy) -> tuple[str, ElementTree.Element]:
    case = ElementTree.Element(
        "testcase", classname=_class(row.key.workload), name=_fit(key_words(row.key))
    )
    kind = ""
    if row.verdict == "WORSE":
        kind = "failure"
    elif row.verdict == "MISSING":
        kind = {"fail": "failure", "unclear": "error", "ignore": "skipped"}[policy.missing]
    elif row.verdict == "UNCLEAR":
        kind = {"fail": "failure", "unclear": "error", "pass": ""}[policy.unclear]
    elif row.verdict == "INCOMPARABLE":
        kind = "error"
    words = _fit(f"{row.verdict}: {row_words(row)}")
    if kind == "skipped":
        ElementTree.SubElement(case, kind, message=words)
    elif kind:
        ElementTree.SubElement(case, kind, message=words, type=row.verdict).text = words
    else:
        ElementTree.SubElement(case, "system-out").text = words
    return kind, case


def _class(workload: str) -> str:
    return f"kvbench.{_fit(workload)}"


def _fit(text: str) -> str:
    """Return ``text`` without what XML cannot hold."""
    return _UNFIT.sub("?", text)
