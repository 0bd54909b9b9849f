"""The program of clients/python-tools/README.md is a program: its tool is described."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


class ReadmeTest(unittest.TestCase):
    def test_the_program_is_described(self) -> None:
        programs = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
        self.assertEqual(len(programs), 1)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "my_tools.py").write_text(programs[0], "utf-8")
            command = [sys.executable, "-m", "everturn_tools", "describe", "my_tools"]
            environment = {**os.environ, "PYTHONPATH": str(README.parent / "src")}
            described = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        self.assertIn("[remote_tools.transfer]", described.stdout)
        self.assertIn('effect = "once"', described.stdout)


if __name__ == "__main__":
    unittest.main()
