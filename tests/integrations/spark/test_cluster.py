"""Two workers, a speculative attempt and an executor that is killed: the bytes of a job that nothing disturbed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.usefixtures("needs_spark")
@pytest.mark.skipif(sys.platform != "linux", reason="two hosts on one machine are two loopback addresses")
def test_lost_executors_and_speculation_change_no_byte(tmp_path):
    script = Path(__file__).with_name("cluster_job.py")
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert len(seen["calm"]) == 1200
    assert seen["disturbed"] == seen["calm"]
    # What the killed executor drew, and what the attempt that came too late would have written.
    for task in ("0", "1"):
        attempts = seen["attempts"][task]
        assert len(attempts) >= 2
        assert len(set(attempts)) == 1
        assert len(attempts[0]) > 1000
