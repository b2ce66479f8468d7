"""Installs the build into an empty folder; the README's example finds it there, builds and runs."""

import importlib.util
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(os.environ.get("RAPT_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("RAPT_BINARY_DIR", TOP / "build"))

spec = importlib.util.spec_from_file_location("check_layers", TOP / "tools/check_layers.py")
check_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_layers)


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def readme(language):
    """The README's one block in this language."""
    page = (TOP / "README.md").read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, f"{len(blocks)} blocks of {language}"
    return blocks[0]


def cache_entry(name):
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    raise AssertionError(f"{BUILD}/CMakeCache.txt has no {name}")


class Consumer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rapt-consumer-")
        cls.work = pathlib.Path(cls.folder.name)
        cls.prefix = cls.work / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.include = cls.prefix / "include"
        cls.installed = sorted(path.relative_to(cls.include).as_posix()
                               for path in cls.include.rglob("*.h"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_installed_headers_are_the_public_ones(self):
        public = sorted(path.relative_to(TOP / "src").as_posix()
                        for path in (TOP / "src/rapt").rglob("*.h")
                        if check_layers.is_public_header(path.relative_to(TOP).as_posix()))
        self.assertIn("rapt/base/error.h", public)
        self.assertEqual(self.installed, public)

    def test_a_project_finds_builds_and_runs_what_is_installed(self):
        source, build = self.work / "source", self.work / "build"
        source.mkdir()
        # Every installed header is included beside what the example needs.
        (source / "CMakeLists.txt").write_text(
            readme("cmake") + "target_sources(hello PRIVATE headers.cpp)\n")
        (source / "hello.cpp").write_text(readme("cpp"))
        (source / "headers.cpp").write_text(
            "".join(f"#include <{name}>\n" for name in self.installed))
        run("cmake", "-G", "Ninja", "-S", source, "-B", build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={cache_entry('CMAKE_CXX_COMPILER')}")
        # Found in the prefix, not in the folder that it was built in.
        self.assertIn(f"rapt_DIR:PATH={self.prefix}", (build / "CMakeCache.txt").read_text())
        for file in (self.prefix / "lib").rglob("rapt-targets*.cmake"):
            self.assertNotIn(str(TOP), file.read_text(), f"{file.name} points into the source tree")
        run("cmake", "--build", build)
        # It runs, and the library's error names the folder and carries the exit code of a model.
        done = subprocess.run([build / "hello", "no-such-model", "a sentence"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("no-such-model", done.stderr)


if __name__ == "__main__":
    unittest.main()
