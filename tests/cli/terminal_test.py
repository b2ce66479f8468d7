"""What the program shows on a terminal, and only there: a bar, colors, a heat map."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import unittest

from program import CLEAN, PROGRAM, TINY, TestCase


class Terminal(TestCase):
    def on_terminal(self, *arguments, columns=100, env=None):
        """Runs with stderr on a terminal; gives the exit code, stdout and what the terminal was sent."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        running = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=theirs, env={**CLEAN, "TERM": "xterm-256color", **(env or {})})
        os.close(theirs)
        sent = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # nobody is at the other end any more
                break
            if not piece:
                break
            sent += piece
        os.close(ours)
        out = running.communicate()[0]
        return running.returncode, out, sent.decode().replace("\r\n", "\n")

    def train(self, *flags, **how):
        self.file("a", "a b\nb\n" * 30)
        self.file("b", "x y\ny\n" * 30)
        return self.on_terminal("train", "--restart", "--source", self.folder / "a", "--target", self.folder / "b", "--out",
                                self.folder / "model", *TINY, "--epochs", "3", *flags, **how)

    def test_a_bar_that_fills(self):
        code, out, sent = self.train()
        self.assertEqual((code, out), (0, b""))
        lines = [line.split("\r")[-1] for line in sent.split("\n") if "epoch" in line]
        self.assertEqual([line.count("█") for line in lines], [8, 16, 24], sent)
        self.assertEqual([line.count("░") for line in lines], [16, 8, 0])
        for part in ("epoch 3/3", "loss", "tokens/s", "00:00 left"):
            self.assertIn(part, lines[-1])

    def test_no_line_is_wider_than_the_terminal(self):
        for columns in (100, 70, 40, 20):
            code, _, sent = self.train(columns=columns)
            self.assertEqual(code, 0)
            shown = [line for piece in sent.split("\n") if "epoch" in piece for line in piece.split("\r")]
            self.assertLessEqual(max(len(line.replace("\x1b[K", "")) for line in shown), columns - 1)

    def test_plain_lines_where_asked_for_and_on_a_dumb_terminal(self):
        for flags, env in ((["--progress", "plain"], {}), ([], {"TERM": "dumb"}), ([], {"RAPT_PROGRESS": "plain"})):
            _, _, sent = self.train(*flags, env=env)
            self.assertIn("\nepoch 3/3", sent)
            self.assertNotIn("█", sent)
            self.assertNotIn("\x1b", sent)

    def test_objects_where_asked_for_even_with_a_bar(self):
        for sent in (self.train("--log-format", "json", "--progress", "bar")[2],
                     self.on_terminal("demo", "--epochs", "1", "--out", self.folder / "demo", "--log-format", "json")[2]):
            self.assertIn("epoch", [key for line in sent.splitlines() for key in json.loads(line)])

    def test_nothing_where_asked_for(self):
        self.assertNotIn("epoch", self.train("--progress", "none")[2])
        self.assertEqual(self.train("--quiet")[2], "")

    def test_an_error_stands_on_a_line_of_its_own(self):
        code, _, sent = self.train("--learning-rate", "1e30")
        self.assertEqual(code, 6)
        self.assertRegex(sent, r"(^|\n)rapt: training diverged")

    def test_whoever_types_a_line_gets_its_translation_at_once(self):
        self.assertEqual(self.train()[0], 0)
        ours, theirs = pty.openpty()
        running = subprocess.Popen([PROGRAM, "translate", self.folder / "model"], stdin=theirs, stdout=subprocess.PIPE,
                                   env=CLEAN)
        os.close(theirs)
        for _ in range(2):
            os.write(ours, b"a b\n")
            self.assertTrue(running.stdout.readline().endswith(b"\n"))
        os.write(ours, b"\x04")  # the end of the input
        self.assertEqual(running.communicate(timeout=60)[0], b"")
        self.assertEqual(running.returncode, 0)
        os.close(ours)

    def test_a_demo_draws_a_heat_map_in_color_unless_told_not_to(self):
        for flags, env, colored in (([], {}, True), ([], {"NO_COLOR": "1"}, False), ([], {"NO_COLOR": ""}, True),
                                    (["--color", "never"], {}, False), (["--color", "always"], {"NO_COLOR": "1"}, True)):
            with self.subTest((flags, env)):
                code, out, sent = self.on_terminal("demo", "--epochs", "1", "--out", self.folder / "demo", *flags, env=env)
                self.assertEqual((code, out.count(b"\n")), (0, 1))
                self.assertIn("女", sent)
                self.assertEqual("\x1b[48;2;" in sent, colored)


if __name__ == "__main__":
    unittest.main()
