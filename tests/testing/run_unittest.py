"""Runs the unittest file that is named on the command line.

Writes the report that GTEST_OUTPUT=xml:FILE asks for, like the C++ tests, with each skip's reason.
A file without tests fails.
"""

import importlib.util
import os
import sys
import unittest
import xml.etree.ElementTree as xml


def write_report(result, path):
    suites = xml.Element("testsuites", tests=str(result.testsRun))
    suite = xml.SubElement(suites, "testsuite", name="unittest")
    for test, reason in result.skipped:
        case = xml.SubElement(suite, "testcase", name=str(test), result="skipped")
        xml.SubElement(case, "skipped", message=reason)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    xml.ElementTree(suites).write(path, encoding="utf-8")


def main(path):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    result = unittest.TextTestRunner(verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromModule(module))
    report = os.environ.get("GTEST_OUTPUT", "")
    if report.startswith("xml:"):
        write_report(result, report[len("xml:"):])
    if result.testsRun == 0 and not result.skipped:
        print(f"{path}: no test in it (expected classes derived from unittest.TestCase)")
        return 1
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
