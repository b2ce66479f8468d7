#!/usr/bin/env python3
"""Adds up what the suites left in their build folders, as the last lines of `./run test`.

    tools/test_summary.py BUILD_FOLDER...

Reads test-reports/ctest.junit (CTest's count) and the test programs' own reports beside it (the
skips with their reasons). Exit 1 if a test failed, or none ran.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree as xml


def count(folder):
    """(tests, failures) of CTest in one build folder."""
    suite = xml.parse(folder / "test-reports/ctest.junit").getroot()
    return int(suite.get("tests")), int(suite.get("failures"))


def skips(folder):
    """The reason of each skipped case of one build folder."""
    for report in sorted((folder / "test-reports").glob("*.xml")):
        for skipped in xml.parse(report).getroot().iter("skipped"):
            # GoogleTest puts "file:line" on a line before the reason.
            yield (skipped.get("message", "").strip() or "no reason given").splitlines()[-1]


def main(folders):
    folders = [pathlib.Path(folder) for folder in folders]
    tests, failures = map(sum, zip(*map(count, folders)))
    reasons = collections.Counter(reason for folder in folders for reason in skips(folder))
    passed = 100 * (tests - failures) // tests if tests else 0
    print(f"\n{passed}% tests passed, {failures} tests failed out of {tests}")
    print(f"{sum(reasons.values())} cases skipped" + (":" if reasons else ""))
    for reason, times in reasons.most_common():
        print(f"{times:6} {reason}")
    return 0 if tests and not failures else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
