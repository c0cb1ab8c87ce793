"""Whether the installed kernels are built with sanitizers that see what they should: a kernel that is given too short an array must end its process.

    make sanitize

runs it before the tests, which would all pass with other kernels too.
"""

from __future__ import annotations

import subprocess
import sys

OUT_OF_BOUNDS = """
import numpy as np
from cepheid.kernel import kernel
track = kernel("track", "compiled")
vector = np.zeros(len(track.FIELDS), np.int64)
for name, value in (("segment", -1), ("codes", 1)):
    vector[track.FIELDS.index(name)] = value
letters, indices = np.zeros(4096, np.uint64), np.zeros(4096, np.uint32)
cuts, slots = np.zeros(1, np.int64), np.full(1, -1, np.int32)
lut, table, bits, records = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint64), np.zeros(1, np.int32)
track.run(vector, letters, indices, cuts, slots, lut, table, bits, records, np.empty(2048, np.uint64))
"""


def main() -> int:
    """Say what happened; 0 if the sanitizer stopped it."""
    done = subprocess.run([sys.executable, "-c", OUT_OF_BOUNDS], capture_output=True, text=True, check=False)
    if done.returncode == 0 or "AddressSanitizer: heap-buffer-overflow" not in done.stderr:
        print(
            f"the kernels are not sanitized: a write out of bounds went unseen (status {done.returncode})\n{done.stderr}", file=sys.stderr
        )
        return 1
    print("the kernels are sanitized: a write out of bounds is found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
