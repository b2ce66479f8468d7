#!/usr/bin/env python3
"""Holds the house's include rules against the code.

    tools/check_layers.py [FOLDER]     the project's folder; default: the one above this file

One line a violation on stdout, exit 1 if there is any. The rules:

- a room of src/rapt/ includes itself and the rooms that ROOMS names for it, by full path
  ("rapt/ops/softmax.h"); nothing in src/ includes cli/, tests/, bench/ or examples/;
- public headers (those that are installed) include other public ones and the C++ standard library;
- the others (PRIVATE, every *-inl.h, rooms that are not public) are for sources and one another;
- a third-party library is included only where LIBRARIES says;
- only cli/ prints and parses flags: no <iostream> and no CLI11 in src/.
"""

import pathlib
import re
import sys

# Each room with the rooms that it may include, all of them above it.
ROOMS = {
    "base": "",
    "kernels": "base",
    "tensor": "base kernels",
    "ops": "base kernels tensor",
    "nn": "base tensor ops",
    "models": "base tensor ops nn",
    "text": "base",
    "data": "base tensor text",
    "optim": "base kernels tensor",
    "decode": "base tensor ops nn models text data",
    "eval": "base text",
    "train": "base tensor ops nn models text data optim decode eval",
    "show": "base tensor text",
    "doctor": "base tensor ops nn models text data decode",
    "measure": "base kernels tensor ops nn models text data optim decode train",
    "serve": "base tensor text data models decode show",
    "config": "base",
}
ROOMS = {room: set(may.split()) for room, may in ROOMS.items()}

# The whole library's header, src/rapt/rapt.h, includes rooms for users only.
ROOT_MAY_INCLUDE = set(ROOMS) - {"kernels", "measure", "doctor", "serve", "config"}

# The headers that users include and that are installed: these rooms' but the private ones, and those
# of src/rapt itself. CMakeLists.txt has the same list (tests/house/consumer_test.py compares them).
PUBLIC_ROOMS = {"base", "tensor", "ops", "nn", "models", "text", "data", "optim", "decode", "eval",
                "train", "show"}
PUBLIC_BESIDE = {"src/rapt/kernels/types.h", "src/rapt/kernels/attention.h"}
# Headers for the library's own sources, beside every *-inl.h.
PRIVATE = {"src/rapt/base/check.h", "src/rapt/base/checked.h", "src/rapt/base/futex.h", "src/rapt/base/names.h",
           "src/rapt/tensor/dispatch.h", "src/rapt/models/json.h",
           "src/rapt/models/safetensors_header.h", "src/rapt/models/safetensors_convert.h",
           "src/rapt/models/torch_kinds.h",
           "src/rapt/text/byte_trie.h", "src/rapt/text/gzip.h", "src/rapt/text/normaliser.h", "src/rapt/text/protobuf.h",
           "src/rapt/text/segment.h", "src/rapt/text/subword_file.h",
           "src/rapt/show/characters.h", "src/rapt/show/color_map.h",
           "src/rapt/show/curves_layout.h", "src/rapt/show/figure.h",
           "src/rapt/show/heat_map_layout.h", "src/rapt/show/image.h", "src/rapt/show/png.h"}

# Third-party headers by the start of their path, and the rooms whose sources may include them.
KNOW_FORMATS = set(ROOMS) - {"base", "kernels", "tensor", "ops", "nn", "optim"}
LIBRARIES = {
    "fmt/": set(ROOMS),
    "hwy/": {"base", "kernels"},
    "oneapi/": {"base", "kernels"},
    "dnnl": {"base", "kernels"},
    "omp.h": {"base", "kernels"},
    "immintrin.h": {"base", "kernels"},
    "x86intrin.h": {"base", "kernels"},
    "cpuid.h": {"base", "kernels"},
    "sanitizer/": {"base"},
    "nlohmann/": KNOW_FORMATS,
    "utf8proc.h": {"text"},
    "zlib.h": {"text"},
    "sentencepiece_": {"text"},
    "yaml-cpp/": {"config"},
    "png.h": {"show", "data"},
    "ft2build.h": {"show"},
    "freetype/": {"show"},
    "FT_": {"show"},
}
# Beside src/, what else each folder may include; the library itself they all may.
BESIDE = {
    "cli": {"folders": {"cli"}, "libraries": {"CLI/", "fmt/", "nlohmann/"}},
    "tests": {"folders": {"tests"}, "libraries": {"gtest/", "fmt/", "nlohmann/", "hwy/", "oneapi/",
                                                  "dnnl", "omp.h", "png.h", "ft2build.h", "FT_",
                                                  "sanitizer/", "sentencepiece_", "zlib.h"}},
    "bench": {"folders": {"bench"}, "libraries": {"benchmark/", "fmt/", "oneapi/", "dnnl"}},
    "examples": {"folders": set(), "libraries": set()},
}

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine
csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
exception execution filesystem forward_list fstream functional future initializer_list iomanip ios
iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new
numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set
shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set
utility valarray variant vector version
""".split())
SYSTEM = re.compile(r"(sys|linux|netinet|arpa|asm)/|"
                    r"(unistd|fcntl|sched|pthread|dirent|errno|signal|dlfcn|termios|poll|netdb|"
                    r"malloc|alloca|time|stdio|stdlib|string)\.h$")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.MULTILINE)
INCLUDE_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
SOURCES = {".h", ".hpp", ".cpp", ".cc", ".inc"}


class Checker:
    def __init__(self, top):
        self.top = top
        self.violations = []
        self.includes = {}  # path below the project -> [(line, quote, path)]

    def say(self, path, line, message):
        self.violations.append(f"{path}:{line}: {message}")

    def run(self):
        for folder in ["src/rapt", *BESIDE]:
            for file in sorted((self.top / folder).rglob("*")):
                if file.suffix in SOURCES and file.is_file():
                    path = file.relative_to(self.top).as_posix()
                    self.includes[path] = read_includes(file)
        for path, includes in self.includes.items():
            check = self.check_source if path.startswith("src/") else self.check_beside
            for line, quote, name in includes:
                check(path, line, quote, name)
        return self.violations

    # One include of a file of src/rapt/.
    def check_source(self, path, line, quote, name):
        room = room_of(path)
        if room is not None and room not in ROOMS:
            return self.say(path, line, f"'{room}' is no room of the house: add it to ROOMS in "
                                        "tools/check_layers.py, with what it may include")
        if quote == '"' or name.startswith("rapt/"):
            return self.check_own(path, line, name, room)
        if name == "iostream":
            return self.say(path, line, "<iostream>: only cli/ prints; take a std::ostream, or log")
        if name in STANDARD:
            return None
        if is_public_header(path):
            return self.say(path, line, f"<{name}> is no C++ standard header, and {path} is for users")
        if SYSTEM.match(name):
            return None
        library = library_of(name, LIBRARIES)
        if library is None:
            return self.say(path, line, f"<{name}> belongs to no library that src/ may use "
                                        "(LIBRARIES in tools/check_layers.py)")
        if room not in LIBRARIES[library]:
            return self.say(path, line, f"<{name}>: only {listed(LIBRARIES[library])} may use it")
        return None

    def check_own(self, path, line, name, room):
        if not name.startswith("rapt/"):
            return self.say(path, line, f'"{name}": expected a path that starts with "rapt/"')
        if not (self.top / "src" / name).is_file():
            return self.say(path, line, f'"{name}": src/{name} does not exist')
        if is_public_header(path) and not is_public_header("src/" + name):
            return self.say(path, line, f"{name} is not installed, and {path} is for users")
        other = room_of("src/" + name)
        if other is None:
            return self.say(path, line, f"{name} is for users: include what is needed of it")
        may = ROOT_MAY_INCLUDE if room is None else ROOMS[room] | {room}
        if other not in may:
            what = "src/rapt/*.h" if room is None else f"{room}/"
            self.say(path, line, f"{what} may not include {other}/ (it may: {listed(may - {room})})")
        return None

    # One include of a file of cli/, tests/, bench/ or examples/.
    def check_beside(self, path, line, quote, name):
        folder = path.split("/")[0]
        rules = BESIDE[folder]
        if quote == '"':
            if name.startswith("rapt/") or name.split("/")[0] in rules["folders"]:
                return
            may = listed({"rapt", *rules["folders"]})
            self.say(path, line, f'"{name}": expected a path that starts with one of {may}')
        elif name.startswith("rapt/") or name in STANDARD or SYSTEM.match(name):
            return
        elif library_of(name, rules["libraries"]) is None:
            self.say(path, line, f"<{name}>: {folder}/ may use {listed(rules['libraries'])} only")


def read_includes(file):
    text = file.read_text(encoding="utf-8")
    found = [(m.start(), m.group(1), m.group(2)) for m in INCLUDE.finditer(text)]
    found += [(m.start(), "<", m.group(1)) for m in INCLUDE_MACRO.finditer(text)
              if m.group(1) != "HWY_TARGET_INCLUDE"]
    return [(text.count("\n", 0, start) + 1, quote, name) for start, quote, name in sorted(found)]


def room_of(path):
    """The room of src/rapt/ROOM/...; None for files of src/rapt itself."""
    parts = path.split("/")
    return parts[2] if len(parts) > 3 else None


def is_public_header(path):
    if not path.endswith(".h") or path.endswith("-inl.h") or path in PRIVATE:
        return False
    return room_of(path) in PUBLIC_ROOMS | {None} or path in PUBLIC_BESIDE


def library_of(name, libraries):
    return next((start for start in libraries if name.startswith(start)), None)


def listed(names):
    return " ".join(sorted(names)) or "nothing"


def main(arguments):
    top = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    if not (top / "src/rapt").is_dir():
        print(f"check_layers: {top} has no folder src/rapt")
        return 1
    above = set()
    for room, may in ROOMS.items():
        assert may <= above, f"ROOMS: {room} names a room that does not stand above it"
        above.add(room)
    violations = Checker(top).run()
    for violation in violations:
        print(violation)
    if violations:
        print(f"check_layers: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
