"""tools/check_layers.py accepts the house as it stands, and finds each planted violation."""

import importlib.util
import os
import pathlib
import shutil
import tempfile
import unittest

TOP = pathlib.Path(os.environ.get("RAPT_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

spec = importlib.util.spec_from_file_location("check_layers", TOP / "tools/check_layers.py")
check_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_layers)

# file, the line put at its end, a part of the complaint
PLANTED = [
    ("src/rapt/kernels/planted.cpp", '#include "rapt/tensor/tensor.h"', "kernels/ may not include tensor/"),
    ("src/rapt/kernels/x86/planted.cpp", '#include "rapt/ops/planted.h"', "kernels/ may not include ops/"),
    ("src/rapt/nn/planted.cpp", '#include "rapt/kernels/types.h"', "nn/ may not include kernels/"),
    ("src/rapt/base/planted.cpp", '#include "rapt/kernels/types.h"', "base/ may not include kernels/"),
    ("src/rapt/text/planted.cpp", '#include "rapt/tensor/tensor.h"', "text/ may not include tensor/"),
    ("src/rapt/tensor/planted.cpp", '#include "rapt/ops/planted.h"', "tensor/ may not include ops/"),
    ("src/rapt/optim/planted.cpp", '#include "rapt/ops/planted.h"', "optim/ may not include ops/"),
    ("src/rapt/planted.h", '#include "rapt/kernels/types.h"', "may not include kernels/"),
    ("src/rapt/attic/planted.cpp", "#include <vector>", "'attic' is no room of the house"),
    ("src/rapt/base/planted.cpp", '#include "error.h"', 'starts with "rapt/"'),
    ("src/rapt/base/planted.cpp", '#include "../base/error.h"', 'starts with "rapt/"'),
    ("src/rapt/base/planted.cpp", '#include "tests/testing/testing.h"', 'starts with "rapt/"'),
    ("src/rapt/base/planted.cpp", '#include "cli/main.h"', 'starts with "rapt/"'),
    ("src/rapt/base/planted.cpp", '  #  include "bench/planted.h"', 'starts with "rapt/"'),
    ("src/rapt/base/planted.cpp", '#include "rapt/base/gone.h"', "does not exist"),
    ("src/rapt/base/planted.cpp", "#include <iostream>", "only cli/ prints"),
    ("src/rapt/base/planted.cpp", "#include <CLI/CLI.hpp>", "belongs to no library"),
    ("src/rapt/base/planted.cpp", "#include <boost/any.hpp>", "belongs to no library"),
    ("src/rapt/base/planted.cpp", "#include <nlohmann/json.hpp>", "<nlohmann/json.hpp>: only"),
    ("src/rapt/nn/planted.cpp", "#include <nlohmann/json.hpp>", "<nlohmann/json.hpp>: only"),
    ("src/rapt/ops/planted.cpp", "#include <hwy/highway.h>", "only base kernels may use it"),
    ("src/rapt/ops/planted.cpp", "#include <oneapi/dnnl/dnnl.hpp>", "only base kernels may use it"),
    ("src/rapt/show/planted.cpp", "#include FT_FREETYPE_H\n#include <immintrin.h>", "<immintrin.h>: only"),
    ("src/rapt/train/planted.cpp", "#include <ft2build.h>", "only show may use it"),
    ("src/rapt/base/error.h", "#include <fmt/format.h>", "is no C++ standard header"),
    ("src/rapt/base/error.h", "#include <unistd.h>", "is no C++ standard header"),
    ("src/rapt/base/error.h", '#include "rapt/base/check.h"', "rapt/base/check.h is not installed"),
    ("src/rapt/tensor/planted.h", '#include "rapt/kernels/planted.h"', "is not installed"),
    ("src/rapt/kernels/types.h", "#include <hwy/highway.h>", "is no C++ standard header"),
    ("src/rapt/ops/planted.h", '#include "rapt/tensor/planted-inl.h"', "is not installed"),
    ("tests/base/planted_test.cpp", '#include "testing/testing.h"', "starts with one of rapt tests"),
    ("tests/base/planted_test.cpp", '#include "cli/main.h"', "starts with one of rapt tests"),
    ("tests/base/planted_test.cpp", "#include <CLI/CLI.hpp>", "tests/ may use"),
    ("bench/base/planted_bench.cpp", '#include "tests/testing/testing.h"', "starts with one of bench rapt"),
    ("cli/planted.cpp", '#include "tests/testing/testing.h"', "starts with one of cli rapt"),
    ("cli/planted.cpp", "#include <oneapi/dnnl/dnnl.hpp>", "cli/ may use"),
]

# Lines that are no violation, although each looks like one.
ALLOWED = [
    ("src/rapt/base/planted.cpp", '#include "rapt/base/check.h"'),
    ("src/rapt/base/planted.cpp", '// #include "rapt/kernels/types.h"'),
    ("src/rapt/base/planted.cpp", "#include <unistd.h>"),
    ("src/rapt/kernels/planted-inl.h", '#include <hwy/highway.h>\n#include "rapt/base/check.h"'),
    ("src/rapt/kernels/planted.h", '#include "rapt/base/check.h"'),
    ("src/rapt/show/planted.cpp", "#include <ft2build.h>\n#include FT_FREETYPE_H"),
    ("src/rapt/planted.h", '#include "rapt/base/error.h"'),
    ("cli/planted.cpp", '#include <CLI/CLI.hpp>\n#include <iostream>\n#include "rapt/base/error.h"'),
]


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rapt-layers-")
        self.top = pathlib.Path(self.folder.name)
        for name in ["src", "cli", "tests", "bench"]:
            if (TOP / name).is_dir():
                shutil.copytree(TOP / name, self.top / name)
        for room in ["tensor", "ops", "kernels"]:
            header = self.top / f"src/rapt/{room}/planted.h"
            header.parent.mkdir(exist_ok=True)
            header.write_text("#pragma once\n")
        (self.top / "src/rapt/tensor/planted-inl.h").touch()

    def tearDown(self):
        self.folder.cleanup()

    def violations_with(self, path, line):
        """What the check says when `line` stands at the end of `path`; the file is put back."""
        file = self.top / path
        before = file.read_text() if file.exists() else None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((before or "") + "\n" + line + "\n")
        found = check_layers.Checker(self.top).run()
        if before is None:
            file.unlink()
        else:
            file.write_text(before)
        return found

    def test_the_house_as_it_stands_has_no_violation(self):
        self.assertEqual(check_layers.Checker(TOP).run(), [])

    def test_each_planted_violation_is_found_where_it_stands(self):
        for path, line, complaint in PLANTED:
            with self.subTest(path=path, line=line):
                found = self.violations_with(path, line)
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(path + ":"), found[0])
                self.assertIn(complaint, found[0])

    def test_what_is_allowed_is_not_reported(self):
        for path, line in ALLOWED:
            with self.subTest(path=path, line=line):
                self.assertEqual(self.violations_with(path, line), [])

    def test_the_program_fails_on_a_violation_and_on_a_folder_that_is_no_project(self):
        self.assertEqual(check_layers.main([str(self.top)]), 0)
        (self.top / "src/rapt/base/planted.cpp").write_text('#include "rapt/kernels/types.h"\n')
        self.assertEqual(check_layers.main([str(self.top)]), 1)
        self.assertEqual(check_layers.main([str(self.top / "src")]), 1)


if __name__ == "__main__":
    unittest.main()
