"""Reads and writes wheels and source distributions. The same contents give the same bytes."""

from __future__ import annotations

import base64
import gzip
import hashlib
import tarfile
import time
import zipfile
from pathlib import Path


def read(wheel: Path) -> dict[str, bytes]:
    """The files in a wheel by path, without RECORD."""
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if not n.endswith(("/", ".dist-info/RECORD"))]
        return {name: archive.read(name) for name in names}


def write(wheel: Path, files: dict[str, bytes], epoch: int) -> None:
    """Writes a wheel: sorted, one date, fixed modes, a new RECORD at the end.

    Args:
      wheel: the path to write.
      files: contents by path, without RECORD.
      epoch: seconds since 1970, the date of all files, not before 1980.
    """
    folder = dist_info(files)
    lines = []
    date = time.gmtime(epoch)[:6]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        # Installers want the metadata at the end of the archive.
        for name in sorted(files, key=lambda n: (n.startswith(folder), n)):
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=")
            lines.append(f"{name},sha256={digest.decode()},{len(files[name])}\n")
            _add(archive, name, files[name], date)
        record = f"{folder}/RECORD"
        _add(archive, record, "".join([*lines, f"{record},,\n"]).encode(), date)


def _add(archive: zipfile.ZipFile, name: str, data: bytes, date: tuple[int, ...]) -> None:
    entry = zipfile.ZipInfo(name, date)
    entry.create_system = 3  # Unix, whose modes these are
    entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def dist_info(files: dict[str, bytes]) -> str:
    """The name of the folder with the metadata."""
    [folder] = {n.split("/")[0] for n in files if n.split("/")[0].endswith(".dist-info")}
    return folder


def write_sdist(path: Path, built: Path, epoch: int) -> None:
    """Writes a source distribution again: sorted, one date, one owner, fixed modes.

    Args:
      path: the file to write.
      built: the one that setuptools wrote.
      epoch: seconds since 1970, the date of all files.
    """
    with (
        tarfile.open(built) as source,
        gzip.GzipFile(path, "wb", mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda m: m.name):
            if not member.isfile():
                continue
            entry = tarfile.TarInfo(member.name)
            entry.size, entry.mtime = member.size, epoch
            entry.mode = 0o755 if member.mode & 0o100 else 0o644
            target.addfile(entry, source.extractfile(member))
